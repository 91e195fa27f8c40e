//! Properties of values, keys and collations over generated values.

mod corpus;
mod keys;
mod values;
