//! MongoDB Extended JSON v2: BSON as JSON in which no type is lost (canonical), or in which what people read is plain
//! (relaxed).
//!
//! For tests and tools. The server itself never reads or writes it.

mod lexer;
mod parse;
mod print;
mod time;

/// The subtype of old, whose bytes begin with their length once more.
const OLD_BINARY: u8 = 2;

pub use parse::parse_extended_json;
pub use print::to_extended_json;
pub use time::{format_date, parse_date};
