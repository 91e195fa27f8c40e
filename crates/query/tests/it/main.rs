//! The query language from outside: golden scripts and properties.

mod properties;
mod scripts;
