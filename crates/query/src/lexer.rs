//! Query text into tokens, one at a time, each with its place in the text.
//!
//! The lexer knows no keyword: a word is a word, and the parser decides by position whether it is one. That is
//! what lets `c.order` be a property although `ORDER` is reserved. Signs are tokens of their own as well, so
//! that `c.a -1` is seen as the subtraction it is.

use crate::error::{Error, Result};

/// How much of an offending token an error repeats.
const NEAR_CHARS: usize = 64;

/// Operators and punctuation, longest first so that the first match is the right one.
const SYMBOLS: [&str; 31] = [
    ">>>", "!=", "<>", "<=", ">=", "<<", ">>", "||", "??", "(", ")", "[", "]", "{", "}", ",", ".", ":", "?",
    "=", "<", ">", "+", "-", "*", "/", "%", "|", "^", "&", "~",
];

/// One token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token<'t> {
    /// A keyword, a name or a literal such as `true`.
    Word(&'t str),
    /// A number without sign, as written.
    Number(&'t str),
    /// A string literal with its escapes resolved.
    Text(String),
    /// A parameter with its `@`.
    Parameter(&'t str),
    /// An operator or punctuation.
    Symbol(&'static str),
    /// The end of the text, again and again.
    End,
}

/// Byte offsets into the text, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    /// From the start of this one to the end of the other.
    pub(crate) fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end }
    }
}

/// Hands out the tokens of one text.
pub(crate) struct Lexer<'t> {
    text: &'t str,
    position: usize,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, position: 0 }
    }

    /// The next token and its place.
    pub(crate) fn next(&mut self) -> Result<(Token<'t>, Span)> {
        self.skip_blanks();
        let start = self.position;
        let Some(first) = self.peek() else {
            return Ok((Token::End, Span { start, end: start }));
        };
        let token = match first {
            '"' | '\'' => self.string(first)?,
            '@' => self.parameter()?,
            'a'..='z' | 'A'..='Z' | '_' => Token::Word(self.take_word()),
            '0'..='9' => self.number()?,
            '.' if self.rest().as_bytes().get(1).is_some_and(u8::is_ascii_digit) => self.number()?,
            _ => self.symbol()?,
        };
        Ok((token, Span { start, end: self.position }))
    }

    /// The syntax error for the text at `span`.
    pub(crate) fn syntax(&self, span: Span) -> Error {
        let near = self.text.get(span.start..span.end).unwrap_or_default();
        Error::Syntax { start: span.start, end: span.end, near: near.chars().take(NEAR_CHARS).collect() }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Blanks and `--` comments, which run to the end of their line.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.position += rest.len() - trimmed.len();
            if !trimmed.starts_with("--") {
                return;
            }
            self.position += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|c| !accept(c)).unwrap_or(rest.len())];
        self.position += taken.len();
        taken
    }

    fn take_word(&mut self) -> &'t str {
        self.take_while(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    fn take_digits(&mut self) -> &'t str {
        self.take_while(|c| c.is_ascii_digit())
    }

    fn parameter(&mut self) -> Result<Token<'t>> {
        let start = self.position;
        self.position += 1;
        if self.take_word().is_empty() {
            return Err(self.syntax(Span { start, end: self.position }));
        }
        Ok(Token::Parameter(&self.text[start..self.position]))
    }

    /// As in JSON, and `.5`. A letter straight after a number is an error, not the start of an alias.
    fn number(&mut self) -> Result<Token<'t>> {
        let start = self.position;
        self.take_digits();
        let rest = self.rest().as_bytes();
        if rest.first() == Some(&b'.') && rest.get(1).is_some_and(u8::is_ascii_digit) {
            self.position += 1;
            self.take_digits();
        }
        let rest = self.rest().as_bytes();
        if matches!(rest.first(), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(1), Some(b'+' | b'-')));
            if rest.get(1 + sign).is_some_and(u8::is_ascii_digit) {
                self.position += 1 + sign;
                self.take_digits();
            }
        }
        if !self.take_word().is_empty() {
            return Err(self.syntax(Span { start, end: self.position }));
        }
        Ok(Token::Number(&self.text[start..self.position]))
    }

    fn symbol(&mut self) -> Result<Token<'t>> {
        let rest = self.rest();
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            self.position += symbol.len();
            return Ok(Token::Symbol(symbol));
        }
        let length = self.peek().map_or(0, char::len_utf8);
        Err(self.syntax(Span { start: self.position, end: self.position + length }))
    }

    /// A string in either kind of quotes: JSON escapes, `\'`, and a doubled quote for the quote itself.
    fn string(&mut self, quote: char) -> Result<Token<'t>> {
        let start = self.position;
        self.position += 1;
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(|c| c != quote && c != '\\'));
            let Some(stop) = self.peek() else {
                return Err(self.syntax(Span { start, end: self.text.len() }));
            };
            let escape_start = self.position;
            self.position += 1;
            if stop == '\\' {
                let Some(c) = self.escape() else {
                    let end = self.position.min(self.text.len());
                    return Err(self.syntax(Span { start: escape_start, end }));
                };
                text.push(c);
            } else if self.peek() == Some(quote) {
                self.position += 1;
                text.push(quote);
            } else {
                return Ok(Token::Text(text));
            }
        }
    }

    /// The character an escape stands for; the backslash is already taken.
    fn escape(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.position += c.len_utf8();
        Some(match c {
            '"' | '\'' | '\\' | '/' => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.unicode_escape(),
            _ => return None,
        })
    }

    fn unicode_escape(&mut self) -> Option<char> {
        let first = self.hex4()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first);
        }
        self.rest().starts_with("\\u").then(|| self.position += 2)?;
        let second = self.hex4()?;
        (0xDC00..0xE000).contains(&second).then_some(())?;
        char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00))
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        self.position += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<Token<'_>>> {
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        loop {
            match lexer.next()?.0 {
                Token::End => return Ok(tokens),
                token => tokens.push(token),
            }
        }
    }

    #[test]
    fn longest_symbol_wins() {
        let symbols = ["<=", "<>", "<<", "<", ">>>", ">>", ">=", "||", "|", "??", "?"];
        let expected: Vec<_> = symbols.iter().map(|symbol| Token::Symbol(symbol)).collect();
        assert_eq!(tokens(&symbols.join(" ")).unwrap(), expected);
    }

    #[test]
    fn numbers_and_comments() {
        let expected = ["1", "2.5", ".5", "1e3", "1.5E-7"].map(Token::Number);
        assert_eq!(tokens("1 2.5 -- a comment 9\n.5 1e3 1.5E-7 --end").unwrap(), expected);
        for bad in ["1abc", "1e", "2.5x", "!", "#", "@", "é"] {
            assert!(matches!(tokens(bad), Err(Error::Syntax { start: 0, .. })), "{bad}");
        }
    }

    #[test]
    fn string_escapes() {
        for (text, expected) in [
            (r#""a\"b\\\/\b\f\n\r\t""#, "a\"b\\/\u{8}\u{c}\n\r\t"),
            (r"'it''s'", "it's"),
            (r"'it\'s'", "it's"),
            (r#"'say "x"'"#, "say \"x\""),
            (r#""\u00e9\ud83d\ude00""#, "é😀"),
            ("''", ""),
        ] {
            assert_eq!(tokens(text).unwrap(), [Token::Text(expected.into())], "{text}");
        }
        for bad in [
            "'open",
            r"'\",
            r"'\x'",
            r"'\ud83d'",
            r"'\ude00'",
            r"'\u00g0'",
            r"'\u12",
            r"'\ud83d\u0041'",
            "'\\é'",
        ] {
            assert!(matches!(tokens(bad), Err(Error::Syntax { .. })), "{bad}");
        }
    }
}
