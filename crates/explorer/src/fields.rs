//! Names and values as browsers send them, in a query string or in a form, and as links carry them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_decode_str, utf8_percent_encode};

/// Characters that are not escaped in a link.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The largest number of fields read.
const FIELDS_MAX: usize = 64;

/// The fields of a form or query string. Of several with one name the first counts.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads `application/x-www-form-urlencoded`.
    pub(crate) fn parse(bytes: &[u8]) -> Fields {
        let pairs = bytes.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).take(FIELDS_MAX);
        let read = |pair: &[u8]| {
            let at = pair.iter().position(|byte| *byte == b'=');
            let (name, value) = at.map_or((pair, &pair[..0]), |at| (&pair[..at], &pair[at + 1..]));
            (decode(name), decode(value))
        };
        Fields(pairs.map(read).collect())
    }

    /// Returns the value of a field.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns all fields in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the value of a field that is not empty, trimmed.
    pub(crate) fn filled(&self, name: &str) -> Option<&str> {
        self.text(name).map(str::trim).filter(|text| !text.is_empty())
    }
}

/// Decodes a value: a plus is a space; line ends arrive as two characters and are kept as one.
fn decode(bytes: &[u8]) -> String {
    let spaced: Vec<u8> = bytes.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    let text = String::from_utf8_lossy(&percent_decode(&spaced).collect::<Vec<u8>>()).into_owned();
    if text.contains('\r') { text.replace("\r\n", "\n") } else { text }
}

/// Decodes a segment of a path.
pub(crate) fn decode_segment(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

/// Encodes a text for a link.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_browsers_write_them() {
        let fields = Fields::parse(b"a=1+2&b=%3Cb%3E%0D%0A&a=other&c&=x&d=%zz");
        assert_eq!(fields.text("a"), Some("1 2"));
        assert_eq!(fields.text("b"), Some("<b>\n"));
        assert_eq!(fields.text("c"), Some(""));
        assert_eq!(fields.filled("c"), None);
        assert_eq!(fields.text("d"), Some("%zz"));
        assert_eq!(fields.text("e"), None);
    }

    #[test]
    fn what_a_link_carries_comes_back() {
        for text in ["a/b?c#d&e=f", "ü \"<>'", "..", "100%"] {
            assert_eq!(decode_segment(&encode(text)), text);
        }
    }
}
