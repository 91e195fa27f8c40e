//! Reading the tables under `tests/vectors`: tab-separated columns, `#` starts a comment line.

/// Returns the rows of a table.
pub(crate) fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}

/// Returns bytes written as hex; `61*100` is a hundred times the byte 61.
pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in hex.split(' ') {
        let (digits, times) = piece.split_once('*').unwrap_or((piece, "1"));
        let byte = u8::from_str_radix(digits, 16).expect("the table has hex bytes");
        out.resize(out.len() + times.parse::<usize>().expect("the table has counts"), byte);
    }
    out
}

/// Returns JSON text in which `"ab"*100` is a hundred times `ab`.
pub(crate) fn json(text: &str) -> String {
    let Some((before, rest)) = text.split_once("\"*") else { return text.to_owned() };
    let (start, repeated) = before.rsplit_once('"').expect("the table repeats a plain string");
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let times = rest[..digits].parse().expect("the table has counts");
    format!("{start}\"{}\"{}", repeated.repeat(times), &rest[digits..])
}
