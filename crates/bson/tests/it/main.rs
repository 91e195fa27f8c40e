//! Properties of values, keys and collations over generated values.

mod keys;
mod values;
