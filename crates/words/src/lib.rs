//! Words of languages: their endings, and which of them are too common to search for.
//!
//! [`Language`] has the stemmers of the Snowball project and a list of stop words for each language that text indexes of MongoDB
//! know. [`stem`] is the older English stemmer of full-text functions, and of text indexes made before file format 10.
//! What a word of a text is, is decided by the callers: the two APIs differ in it.

mod language;
mod porter;

pub use language::{Language, SNOWBALL};
pub use porter::{LONGEST_WORD, stem};
