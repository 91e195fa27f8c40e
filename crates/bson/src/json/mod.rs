//! MongoDB Extended JSON v2: BSON as JSON that keeps every type (canonical), or that is easier to read (relaxed).
//!
//! For tests and tools. The server itself never reads or writes it.

mod lexer;
mod parse;
mod print;
mod time;

/// The old binary subtype, whose bytes begin with their length a second time.
const OLD_BINARY: u8 = 2;

pub use parse::parse_extended_json;
pub use print::to_extended_json;
pub use time::{format_date, parse_date};
