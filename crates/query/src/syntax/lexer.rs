//! Query text into tokens, one at a time, each with its place in the text.
//!
//! The lexer has no keywords: the parser decides by position whether a word is one. So `c.order` can be a property
//! although `ORDER` is reserved, and `ALL` a name as well as a quantifier. Signs are tokens of their own, so that
//! `c.a -1` is seen as the subtraction it is.

use super::ast::Span;
use crate::error::{Error, Result, TokenKind};

/// How much of an offending token an error repeats.
const NEAR_CHARS: usize = 64;

/// How every placeholder of a rewritten query begins.
const PLACEHOLDER: &str = "{documentdb-formattable";

/// Operators and punctuation, longest first so that the first match is the right one.
const SYMBOLS: [&str; 31] = [
    ">>>", "!=", "<>", "<=", ">=", "<<", ">>", "||", "??", "(", ")", "[", "]", "{", "}", ",", ".", ":", "?",
    "=", "<", ">", "+", "-", "*", "/", "%", "|", "^", "&", "~",
];

/// One token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'t> {
    /// A keyword, a name or a literal such as `true`.
    Word(&'t str),
    /// A number without sign, as written.
    Number(&'t str),
    /// A string literal with its escapes resolved.
    Text(String),
    /// A parameter with its `@`.
    Parameter(&'t str),
    /// A placeholder of a rewritten query, without its braces.
    Placeholder(&'t str),
    /// An operator or punctuation.
    Symbol(&'static str),
    /// The end of the text; every later token is this one, too.
    End,
}

/// A lexer of one text. Its clone serves to look ahead.
#[derive(Clone)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    position: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, position: 0 }
    }

    /// Returns the next token and its place.
    pub(super) fn next(&mut self) -> Result<(Token<'t>, Span)> {
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
            '.' if self.number_follows() => self.number()?,
            '{' if self.rest().starts_with(PLACEHOLDER) => self.placeholder()?,
            _ => self.symbol()?,
        };
        Ok((token, Span { start, end: self.position }))
    }

    /// Returns `true` if a number stands right here, without a blank before it.
    pub(super) fn number_follows(&self) -> bool {
        let rest = self.rest();
        rest.strip_prefix('.').unwrap_or(rest).starts_with(|c: char| c.is_ascii_digit())
    }

    /// Returns the syntax error for the token at `span`.
    pub(super) fn unexpected(&self, span: Span) -> Error {
        Error::Syntax { start: span.start, end: span.end, near: self.near(span) }
    }

    /// Returns the error for a text that is not a valid token.
    pub(super) fn invalid(&self, kind: TokenKind, start: usize) -> Error {
        let end = self.position.min(self.text.len());
        Error::InvalidToken { kind, start, end, token: self.near(Span { start, end }) }
    }

    fn near(&self, span: Span) -> String {
        self.text.get(span.start..span.end).unwrap_or_default().chars().take(NEAR_CHARS).collect()
    }

    fn rest(&self) -> &'t str {
        &self.text[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Skips blanks and `--` comments, which run to the end of their line.
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
            return Err(self.invalid(TokenKind::Other, start));
        }
        Ok(Token::Parameter(&self.text[start..self.position]))
    }

    fn placeholder(&mut self) -> Result<Token<'t>> {
        let start = self.position;
        self.position += 1;
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '-');
        if self.peek() != Some('}') {
            return Err(self.invalid(TokenKind::Other, start));
        }
        self.position += 1;
        Ok(Token::Placeholder(name))
    }

    /// Reads a number as in JSON, and also `.5` and `5.`. A letter straight after a number is an error, not the start
    /// of an alias.
    fn number(&mut self) -> Result<Token<'t>> {
        let start = self.position;
        self.take_digits();
        if self.peek() == Some('.') {
            self.position += 1;
            self.take_digits();
        }
        let rest = self.rest().as_bytes();
        let digits = &self.text.as_bytes()[start..self.position];
        // `5.e3` is not a number anywhere.
        if matches!(rest.first(), Some(b'e' | b'E')) && digits.last() != Some(&b'.') {
            let sign = usize::from(matches!(rest.get(1), Some(b'+' | b'-')));
            if rest.get(1 + sign).is_some_and(u8::is_ascii_digit) {
                self.position += 1 + sign;
                self.take_digits();
            }
        }
        if !self.take_word().is_empty() {
            return Err(self.invalid(TokenKind::Number, start));
        }
        Ok(Token::Number(&self.text[start..self.position]))
    }

    fn symbol(&mut self) -> Result<Token<'t>> {
        let rest = self.rest();
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            self.position += symbol.len();
            return Ok(Token::Symbol(symbol));
        }
        let start = self.position;
        self.position += self.peek().map_or(0, char::len_utf8);
        Err(self.invalid(TokenKind::Other, start))
    }

    /// Reads a string in either kind of quotes: JSON escapes, `\'`, and a doubled quote for the quote itself.
    fn string(&mut self, quote: char) -> Result<Token<'t>> {
        let start = self.position;
        self.position += 1;
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(|c| c != quote && c != '\\'));
            let Some(stop) = self.peek() else {
                return Err(self.invalid(TokenKind::Text, start));
            };
            self.position += 1;
            if stop == '\\' {
                let Some(c) = self.escape() else {
                    return Err(self.invalid(TokenKind::Text, start));
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

    /// Returns the character an escape stands for; the backslash is already taken.
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

    /// Returns the kind of token that a text fails to be, and how much of it the error repeats.
    fn failure(text: &str) -> (TokenKind, String) {
        match tokens(text) {
            Err(Error::InvalidToken { kind, start: 0, token, .. }) => (kind, token),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn longest_symbol_wins() {
        let symbols = ["<=", "<>", "<<", "<", ">>>", ">>", ">=", "||", "|", "??", "?"];
        let expected: Vec<_> = symbols.iter().map(|symbol| Token::Symbol(symbol)).collect();
        assert_eq!(tokens(&symbols.join(" ")).unwrap(), expected);
        assert_eq!(tokens("a>>>>=b").unwrap()[1..3], [Token::Symbol(">>>"), Token::Symbol(">=")]);
    }

    #[test]
    fn numbers_and_comments() {
        let expected = ["1", "2.5", ".5", "1e3", "1.5E-7", "7.", "007"].map(Token::Number);
        assert_eq!(tokens("1 2.5 -- a comment 9\n.5 1e3 1.5E-7--end\r\n7. 007 --end").unwrap(), expected);
        for bad in ["1abc", "1e", "2.5x", "0.E", ".12a", "1.e5", "1e+"] {
            let token = bad.trim_end_matches('+').to_owned();
            assert_eq!(failure(bad), (TokenKind::Number, token), "{bad}");
        }
        for bad in ["!", "#", "@", "é", ";", "$", "\\", "\u{0}"] {
            assert_eq!(failure(bad), (TokenKind::Other, bad.to_owned()));
        }
    }

    #[test]
    fn string_escapes() {
        for (text, expected) in [
            (r#""a\"b\\\/\b\f\n\r\t""#, "a\"b\\/\u{8}\u{c}\n\r\t"),
            (r"'it''s'", "it's"),
            (r"'it\'s'", "it's"),
            (r#""a""b""#, "a\"b"),
            (r#"'say "x"'"#, "say \"x\""),
            (r#"'""'"#, "\"\""),
            (r#""\u00e9\ud83d\ude00""#, "é😀"),
            ("'a\nb'", "a\nb"),
            ("''", ""),
            ("''''", "'"),
        ] {
            assert_eq!(tokens(text).unwrap(), [Token::Text(expected.into())], "{text}");
        }
        for bad in [
            "'open",
            "\"",
            r"'\",
            r"'\x'",
            r"'\ud83d'",
            r"'\ude00'",
            r"'\u00g0'",
            r"'\u12",
            r"'\ud83d\u0041'",
            "'\\é'",
            "'''",
        ] {
            assert_eq!(failure(bad).0, TokenKind::Text, "{bad}");
        }
    }

    #[test]
    fn placeholders_are_known_by_their_beginning() {
        let name = "documentdb-formattableorderbyquery-filter";
        assert_eq!(tokens(&format!("{{{name}}}")).unwrap(), [Token::Placeholder(name)]);
        assert_eq!(failure("{documentdb-formattable x}").0, TokenKind::Other);
        assert_eq!(tokens("{documentdb-x}").unwrap()[0], Token::Symbol("{"));
    }

    #[test]
    fn an_error_repeats_only_the_beginning_of_a_token() {
        let (_, token) = failure(&format!("'{}", "é".repeat(1000)));
        assert_eq!(token.chars().count(), NEAR_CHARS);
    }
}
