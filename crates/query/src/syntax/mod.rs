//! The text of a query: lexer, parser, tree, and the tree as text again.
//!
//! This module implements the grammar of the service's SQL and nothing else: `resolve` checks later whether a name exists, a
//! function takes three arguments or a parameter has a value. Its output is bounded: the text in length, the
//! tree in height, so that every walk over it may recurse.

pub(crate) mod ast;
mod lexer;
mod parser;
pub(crate) mod print;
pub(crate) mod shape;
#[cfg(test)]
mod tests;

use ast::{Name, Node, Query};
use parser::Parser;

use crate::error::{Error, Result};

/// Longest query text, in UTF-16 units as the service counts.
pub(crate) const MAX_TEXT_UNITS: usize = 256 * 1024;

/// Parses a whole `SELECT`. Places in errors are bytes of the text, like the spans of the tree.
pub(crate) fn parse(text: &str) -> Result<Query> {
    check_length(text)?;
    Parser::new(text)?.statement()
}

/// Parses `FROM c WHERE ...`, the condition of a patch, into the name of the item and its filter.
pub(crate) fn parse_condition(text: &str) -> Result<(Name, Node)> {
    check_length(text)?;
    Parser::new(text)?.condition()
}

fn check_length(text: &str) -> Result<()> {
    // A text of few bytes has few units, so that most are not counted.
    if text.len() <= MAX_TEXT_UNITS {
        return Ok(());
    }
    let given = text.chars().map(char::len_utf16).sum();
    if given <= MAX_TEXT_UNITS { Ok(()) } else { Err(Error::TooLong { given, limit: MAX_TEXT_UNITS }) }
}
