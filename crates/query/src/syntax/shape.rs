//! A query's text without its literals, for logs.

use super::lexer::{Lexer, Token};

/// Returns the text with a question mark for each literal, without comments and with single blanks. It ends where the text
/// stops being a query, because what follows might be anything.
pub(crate) fn shape(text: &str) -> String {
    let (mut lexer, mut shape, mut behind) = (Lexer::new(text), String::new(), 0);
    loop {
        let Ok((token, span)) = lexer.next() else {
            shape.push('…');
            return shape;
        };
        if token == Token::End {
            return shape;
        }
        if span.start > behind && behind > 0 {
            shape.push(' ');
        }
        behind = span.end;
        match token {
            Token::Number(_) | Token::Text(_) => shape.push('?'),
            _ => shape.push_str(&text[span.start..span.end]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_literal_is_left() {
        for (text, expected) in [
            ("SELECT * FROM c", "SELECT * FROM c"),
            (
                "SELECT TOP 5 c.id\n  FROM c WHERE c.a = 'it\\'s' AND c.b=\"x\" -- secret\nAND c.d > -1.5e3 AND c.e = @e",
                "SELECT TOP ? c.id FROM c WHERE c.a = ? AND c.b=? AND c.d > -? AND c.e = @e",
            ),
            ("SELECT c['name'] FROM c", "SELECT c[?] FROM c"),
            ("SELECT * FROM c WHERE c.a = 'open secret", "SELECT * FROM c WHERE c.a =…"),
            ("", ""),
        ] {
            assert_eq!(shape(text), expected);
        }
    }
}
