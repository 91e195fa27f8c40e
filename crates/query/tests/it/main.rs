//! The query language from outside: golden scripts and properties.

mod corpus;
mod limits;
mod pages;
mod plans;
mod properties;
mod random;
mod runner;
mod scripts;
