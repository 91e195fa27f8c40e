//! The crate from outside: properties over generated values, tables of recorded facts, hostile input.

mod binary_json;
mod corpus;
mod hostile;
mod ids;
mod json;
mod keys;
mod partition_keys;
mod stored;
mod strategies;
mod tables;
