//! Stemmers and stop words of natural languages.
//!
//! [`Language`] has the stemmers of the Snowball project and a list of stop words for each language that text indexes of
//! MongoDB know. [`stem`] is the older English stemmer of full-text functions, and of text indexes made before file format
//! 10. Callers split texts into words: the two APIs differ in that.

mod language;
mod porter;

pub use language::{Language, SNOWBALL};
pub use porter::{LONGEST_WORD, stem};
