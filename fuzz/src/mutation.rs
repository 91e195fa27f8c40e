//! Mutations of texts by tokens.
//!
//! libFuzzer changes bytes, which rarely leaves a text that parses. So half of the mutations change *tokens*: they insert
//! words of a dictionary, and move, remove or wrap pieces between brackets.

use std::ops::Range;
use std::sync::OnceLock;

/// The language of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Queries of the NoSQL API: `dictionary.txt`.
    Sql,
    /// Extended JSON with the operators of the MongoDB API: `operators.txt`.
    Json,
    /// Requests to the NoSQL API: `requests.txt`.
    Requests,
}

/// Pairs of texts to put around a piece.
const SQL_WRAPS: &[(&str, &str)] = &[
    ("(", ")"),
    ("[", "]"),
    ("[1,", ",null]"),
    ("{\"a\":", "}"),
    ("NOT (", ")"),
    ("-(", ")"),
    ("(", " ?? 1)"),
    ("(", ") = 1"),
    ("(c.a ? ", " : 2)"),
    ("IIF(c.a, ", ", 1)"),
    ("(SELECT VALUE ", ")"),
    ("ARRAY(SELECT VALUE ", " FROM t IN c.a)"),
    ("EXISTS(SELECT VALUE ", " FROM t IN c.a)"),
    ("COUNT(", ")"),
    ("MAX(", ")"),
    ("MAKELIST(", ")"),
    ("TOSTRING(", ")"),
    ("STRINGTOARRAY(", ")"),
    ("OBJECTTOARRAY(", ")"),
];

/// The same for Extended JSON.
const JSON_WRAPS: &[(&str, &str)] = &[
    ("[", "]"),
    ("[1,", ",null]"),
    ("{\"a\":", "}"),
    ("{\"a.b\":", "}"),
    ("{\"_id\":1,\"a\":", "}"),
    ("{\"$not\":", "}"),
    ("{\"$literal\":", "}"),
    ("{\"$elemMatch\":", "}"),
    ("{\"$or\":[", ",{\"a\":1}]}"),
    ("{\"$set\":", "}"),
    ("{\"$each\":[", "]}"),
    ("{\"$expr\":", "}"),
    ("[{\"$match\":", "}]"),
    ("[{\"$set\":{\"x\":", "}}]"),
];

impl Language {
    fn wraps(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Language::Sql => SQL_WRAPS,
            Language::Json | Language::Requests => JSON_WRAPS,
        }
    }

    /// Returns the tokens of the dictionary.
    fn dictionary(self) -> &'static [String] {
        static SQL: OnceLock<Vec<String>> = OnceLock::new();
        static JSON: OnceLock<Vec<String>> = OnceLock::new();
        static REQUESTS: OnceLock<Vec<String>> = OnceLock::new();
        match self {
            Language::Sql => SQL.get_or_init(|| read(include_str!("../dictionary.txt"))),
            Language::Json => JSON.get_or_init(|| read(include_str!("../operators.txt"))),
            Language::Requests => REQUESTS.get_or_init(|| read(include_str!("../requests.txt"))),
        }
    }

    /// Returns the tokens that begin a call; of requests, the headers.
    fn functions(self) -> &'static [String] {
        static SQL: OnceLock<Vec<String>> = OnceLock::new();
        static JSON: OnceLock<Vec<String>> = OnceLock::new();
        static REQUESTS: OnceLock<Vec<String>> = OnceLock::new();
        let begin = |begins: fn(&&String) -> bool| self.dictionary().iter().filter(begins).cloned().collect();
        match self {
            Language::Sql => SQL.get_or_init(|| begin(|word| word.len() > 2 && word.ends_with('('))),
            Language::Json => {
                JSON.get_or_init(|| begin(|word| word.starts_with("\"$") && word.ends_with('"')))
            }
            Language::Requests => REQUESTS.get_or_init(|| begin(|word| word.ends_with(": "))),
        }
    }

    /// Returns a call with its arguments.
    fn call(self, function: &str, arguments: &[&str]) -> String {
        match (self, arguments) {
            (Language::Sql, arguments) => format!("{function}{})", arguments.join(", ")),
            (Language::Json, [argument]) => format!("{{{function}:{argument}}}"),
            (Language::Json, arguments) => format!("{{{function}:[{}]}}", arguments.join(",")),
            (Language::Requests, arguments) => format!("\n{function}{}\n", arguments.join(",")),
        }
    }
}

fn read(dictionary: &str) -> Vec<String> {
    let token = |line: &str| unescape(line.strip_prefix('"')?.strip_suffix('"')?);
    dictionary.lines().filter_map(token).collect()
}

/// Changes the first `size` bytes of `data`, which has room for `max_size`; returns the new size.
pub fn mutate(language: Language, data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut dice = Dice(u64::from(seed) << 1 | 1);
    let bytes_alone = dice.roll(2) == 0;
    let text = std::str::from_utf8(&data[..size]).ok().filter(|text| !bytes_alone && !text.is_empty());
    let Some(mut text) = text.map(str::to_owned) else {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    };
    for _ in 0..=dice.roll(3) {
        text = edit(language, &text, &mut dice);
    }
    let mut end = text.len().min(max_size);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    data[..end].copy_from_slice(&text.as_bytes()[..end]);
    end
}

/// Returns one change.
fn edit(language: Language, text: &str, dice: &mut Dice) -> String {
    let tokens = tokens(text);
    let words = language.dictionary();
    if tokens.is_empty() {
        return dice.pick(words).clone();
    }
    let piece = piece(text, &tokens, dice);
    let (before, here, after) = (&text[..piece.start], &text[piece.clone()], &text[piece.end..]);
    match dice.roll(6) {
        0 => format!("{before}{}{after}", dice.pick(words)),
        1 => format!("{before}{}{here}{after}", dice.pick(words)),
        2 => format!("{before}{after}"),
        3 => {
            let (open, close) = dice.pick(language.wraps());
            format!("{before}{open}{here}{close}{after}")
        }
        4 => {
            let function = dice.pick(language.functions());
            let mut arguments = vec![here];
            for _ in 0..dice.roll(3) {
                arguments.push(&text[self::piece(text, &tokens, dice)]);
            }
            format!("{before}{}{after}", language.call(function, &arguments))
        }
        _ => {
            let other = self::piece(text, &tokens, dice);
            format!("{before}{}{after}", &text[other])
        }
    }
}

/// Returns a token, with everything up to the closing bracket if it opens one or is the name of a call.
fn piece(text: &str, tokens: &[Range<usize>], dice: &mut Dice) -> Range<usize> {
    let first = dice.roll(tokens.len());
    let opens =
        |index: usize| tokens.get(index).is_some_and(|token| matches!(&text[token.clone()], "(" | "[" | "{"));
    let from = if opens(first + 1) && dice.roll(2) == 0 { first + 1 } else { first };
    if !opens(from) {
        return tokens[first].clone();
    }
    let mut depth = 0_usize;
    for token in &tokens[from..] {
        match &text[token.clone()] {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return tokens[first].start..token.end;
        }
    }
    tokens[first].clone()
}

/// Returns the tokens: words with their dots, numbers, quoted texts, signs; no spaces.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut tokens = Vec::new();
    let mut signs = text.char_indices().peekable();
    while let Some((start, sign)) = signs.next() {
        let mut end = start + sign.len_utf8();
        if sign.is_whitespace() {
            continue;
        }
        if matches!(sign, '"' | '\'') {
            while let Some((at, next)) = signs.next() {
                end = at + next.len_utf8();
                match next {
                    '\\' => drop(signs.next_if(|(_, escaped)| !escaped.is_control())),
                    '\n' => break,
                    _ if next == sign => break,
                    _ => {}
                }
            }
        } else if is_word(sign) {
            while let Some((at, next)) = signs.next_if(|(_, next)| is_word(*next)) {
                end = at + next.len_utf8();
            }
        }
        tokens.push(start..end);
    }
    tokens
}

fn is_word(sign: char) -> bool {
    sign.is_alphanumeric() || matches!(sign, '_' | '.' | '@' | '$')
}

/// Returns a token of the dictionary as text: `\\`, `\"` and `\xAB` stand for bytes.
fn unescape(token: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'\\' {
            bytes.push(byte);
        } else if let Some(hex) = rest.strip_prefix(b"x") {
            bytes.push(u8::from_str_radix(std::str::from_utf8(hex.get(..2)?).ok()?, 16).ok()?);
            rest = &hex[2..];
        } else {
            let (&escaped, behind) = rest.split_first()?;
            bytes.push(escaped);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Random numbers from libFuzzer's seed.
struct Dice(u64);

impl Dice {
    /// Returns a number below `sides`, which is not zero.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % sides as u64) as usize
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len())]
    }
}
