//! Plain JSON text into tokens.

use crate::error::{Error, Result};

/// One piece of a JSON text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// One of `{ } [ ] : ,`.
    Mark(u8),
    String(String),
    /// A number as it was written.
    Number(String),
    True,
    False,
    Null,
}

/// A text and how far it was read.
pub(super) struct Lexer<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, position: 0 }
    }

    pub(super) fn wrong(&self, what: &str) -> Error {
        Error::Text(format!("{what} at byte {} of the JSON text", self.position))
    }

    fn peek_byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    /// Returns the next byte that is not white space, left where it is.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while matches!(self.peek_byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
        self.peek_byte()
    }

    /// Takes the mark if it is what comes next.
    pub(super) fn take(&mut self, mark: u8) -> bool {
        let found = self.peek() == Some(mark);
        self.position += usize::from(found);
        found
    }

    pub(super) fn token(&mut self) -> Result<Token> {
        let first = self.peek().ok_or_else(|| self.wrong("an early end"))?;
        match first {
            b'{' | b'}' | b'[' | b']' | b':' | b',' => {
                self.position += 1;
                Ok(Token::Mark(first))
            }
            b'"' => self.string().map(Token::String),
            b'-' | b'0'..=b'9' => self.number().map(Token::Number),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<Token> {
        let rest = &self.text[self.position..];
        for (word, token) in [("true", Token::True), ("false", Token::False), ("null", Token::Null)] {
            if rest.starts_with(word) {
                self.position += word.len();
                return Ok(token);
            }
        }
        Err(self.wrong("an unexpected character"))
    }

    fn number(&mut self) -> Result<String> {
        let start = self.position;
        let digits = |lexer: &mut Lexer<'_>| {
            let from = lexer.position;
            while lexer.peek_byte().is_some_and(|byte| byte.is_ascii_digit()) {
                lexer.position += 1;
            }
            if lexer.position == from { Err(lexer.wrong("a digit is missing")) } else { Ok(()) }
        };
        self.position += usize::from(self.peek_byte() == Some(b'-'));
        digits(self)?;
        if self.peek_byte() == Some(b'.') {
            self.position += 1;
            digits(self)?;
        }
        if matches!(self.peek_byte(), Some(b'e' | b'E')) {
            self.position += 1;
            self.position += usize::from(matches!(self.peek_byte(), Some(b'+' | b'-')));
            digits(self)?;
        }
        Ok(self.text[start..self.position].to_owned())
    }

    fn string(&mut self) -> Result<String> {
        self.position += 1;
        let mut string = String::new();
        loop {
            let rest = &self.text[self.position..];
            let plain = rest
                .bytes()
                .position(|byte| byte == b'"' || byte == b'\\' || byte < 0x20)
                .ok_or_else(|| self.wrong("a string without an end"))?;
            string.push_str(&rest[..plain]);
            self.position += plain + 1;
            match rest.as_bytes()[plain] {
                b'"' => return Ok(string),
                b'\\' => string.push(self.escape()?),
                _ => return Err(self.wrong("a control character in a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let escaped = self.peek_byte().ok_or_else(|| self.wrong("a string without an end"))?;
        self.position += 1;
        Ok(match escaped {
            b'"' | b'\\' | b'/' => escaped as char,
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return Err(self.wrong("an unknown escape")),
        })
    }

    fn unicode_escape(&mut self) -> Result<char> {
        let first = self.four_digits()?;
        let code = if (0xD800..0xDC00).contains(&first) {
            if !self.text[self.position..].starts_with("\\u") {
                return Err(self.wrong("half a character"));
            }
            self.position += 2;
            let second = self.four_digits()?;
            if !(0xDC00..0xE000).contains(&second) {
                return Err(self.wrong("half a character"));
            }
            0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00)
        } else {
            first
        };
        char::from_u32(code).ok_or_else(|| self.wrong("half a character"))
    }

    fn four_digits(&mut self) -> Result<u32> {
        let digits = self
            .text
            .get(self.position..self.position + 4)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .ok_or_else(|| self.wrong("four hexadecimal digits are missing"))?;
        self.position += 4;
        u32::from_str_radix(digits, 16).map_err(|_| self.wrong("four hexadecimal digits are missing"))
    }
}
