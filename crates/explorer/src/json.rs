//! JSON text for people: formatted on lines, coloured, shortened; and the position of mistakes.
//!
//! Works on text that the engine has written, token by token, so that numbers and escapes stay as they are.

use maud::{Markup, PreEscaped, Render, html};

const INDENT: &str = "  ";

/// A piece of JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    /// `{` or `[`.
    Opens(char),
    /// `}` or `]`.
    Closes(char),
    Comma,
    Colon,
    /// A string, a number or a word.
    Scalar(&'a str),
}

/// Splits JSON text into tokens; any other text gives some tokens, and no panic.
fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = text.trim_start();
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let (token, length) = match first {
            '{' | '[' => (Token::Opens(first), 1),
            '}' | ']' => (Token::Closes(first), 1),
            ',' => (Token::Comma, 1),
            ':' => (Token::Colon, 1),
            '"' => {
                let length = string_end(rest);
                (Token::Scalar(&rest[..length]), length)
            }
            _ => {
                let end = rest.find(|sign: char| "{}[],:\"".contains(sign) || sign.is_whitespace());
                let length = end.unwrap_or(rest.len()).max(first.len_utf8());
                (Token::Scalar(&rest[..length]), length)
            }
        };
        rest = rest[length..].trim_start();
        Some(token)
    })
}

/// Returns the end of the string that begins the text, including its quotes.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, sign) in text.char_indices().skip(1) {
        match sign {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Receives the tokens of a formatted text.
trait Out {
    fn plain(&mut self, text: &str);
    fn scalar(&mut self, text: &str, is_name: bool);
}

fn set<O: Out>(text: &str, out: &mut O) {
    let mut tokens = tokens(text).peekable();
    let mut depth = 0_usize;
    let line = |out: &mut O, depth: usize| out.plain(&format!("\n{}", INDENT.repeat(depth)));
    while let Some(token) = tokens.next() {
        match token {
            Token::Opens(sign) => {
                out.plain(sign.encode_utf8(&mut [0; 4]));
                if let Some(Token::Closes(_)) = tokens.peek() {
                    continue;
                }
                depth += 1;
                line(out, depth);
            }
            Token::Closes(sign) => {
                out.plain(sign.encode_utf8(&mut [0; 4]));
            }
            Token::Comma => {
                out.plain(",");
                line(out, depth);
            }
            Token::Colon => out.plain(": "),
            Token::Scalar(text) => out.scalar(text, tokens.peek() == Some(&Token::Colon)),
        }
        if let (Some(Token::Closes(_)), false) = (tokens.peek(), matches!(token, Token::Opens(_))) {
            depth = depth.saturating_sub(1);
            line(out, depth);
        }
    }
}

struct Text(String);

impl Out for Text {
    fn plain(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn scalar(&mut self, text: &str, _: bool) {
        self.0.push_str(text);
    }
}

struct Coloured(String);

impl Out for Coloured {
    fn plain(&mut self, text: &str) {
        text.render_to(&mut self.0);
    }

    fn scalar(&mut self, text: &str, is_name: bool) {
        let class = match text.as_bytes().first() {
            _ if is_name => "name",
            Some(b'"') => "string",
            Some(b'-' | b'0'..=b'9') => "number",
            _ => "word",
        };
        html! { span class=(class) { (text) } }.render_to(&mut self.0);
    }
}

/// Formats a text on several lines.
pub(crate) fn pretty(text: &str) -> String {
    let mut out = Text(String::with_capacity(text.len() * 2));
    set(text, &mut out);
    out.0
}

/// Formats a text on several lines, with colours.
pub(crate) fn coloured(text: &str) -> Markup {
    let mut out = Coloured(String::with_capacity(text.len() * 3));
    set(text, &mut out);
    html! { pre.json { code { (PreEscaped(out.0)) } } }
}

/// Returns the beginning of a text on one line.
pub(crate) fn preview(text: &str, most: usize) -> String {
    let mut shown: String = text.chars().take(most).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// An error in a text that should be JSON, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) text: String,
    /// Line and column, from 1, if the position is known.
    pub(crate) place: Option<(usize, usize)>,
}

impl Mistake {
    /// Creates an error without a position.
    pub(crate) fn of(text: impl Into<String>) -> Mistake {
        Mistake { text: text.into(), place: None }
    }

    /// Converts an error of the document parser.
    pub(crate) fn in_json(error: &document::Error) -> Mistake {
        match error {
            document::Error::Json { line, column, message } => {
                Mistake { text: message.clone(), place: Some((*line, (*column).max(1))) }
            }
            other => Mistake::of(other.to_string()),
        }
    }
}

/// Reads Extended JSON; a mistake has a position if the text is not even plain JSON.
pub(crate) fn parse_extended(text: &str) -> Result<bson::Value, Mistake> {
    bson::parse_extended_json(text).map_err(|error| match document::parse_json(text.as_bytes()) {
        Err(wrong) => Mistake::in_json(&wrong),
        Ok(_) => Mistake::of(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_set_on_lines_and_says_the_same() {
        let text = r#"{"a":1.50,"b":[],"c":{"d":[1,"x,{\"y\":1}"],"e":null},"f":{}}"#;
        let lines = pretty(text);
        assert_eq!(
            lines,
            "{\n  \"a\": 1.50,\n  \"b\": [],\n  \"c\": {\n    \"d\": [\n      1,\n      \"x,{\\\"y\\\":1}\"\n    ],\n    \"e\": null\n  },\n  \"f\": {}\n}"
        );
        let read = |text: &str| document::parse_json(text.as_bytes()).unwrap();
        assert_eq!(read(&lines), read(text));
        assert_eq!(pretty(&lines), lines);
    }

    #[test]
    fn hostile_text_is_escaped() {
        let shown = coloured(r#"{"<img src=x>":"</span><script>alert(1)</script>"}"#).0;
        assert!(!shown.contains("<script") && !shown.contains("<img"), "{shown}");
        for odd in ["", "\"", "\"\\", "}}]]", "{", ":,:", "🙂\"🙂"] {
            let _ = (pretty(odd), coloured(odd));
        }
    }

    #[test]
    fn mistakes_have_their_place() {
        let mistake = parse_extended("{\n  \"a\": 1,\n  \"b\": }").unwrap_err();
        assert_eq!(mistake.place.map(|(line, _)| line), Some(3));
        let mistake = parse_extended(r#"{"_id": {"$oid": "x"}}"#).unwrap_err();
        assert_eq!(mistake.place, None);
    }
}
