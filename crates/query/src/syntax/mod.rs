//! The text of a query: lexer, parser, tree, and the tree as text again.

pub(crate) mod ast;
