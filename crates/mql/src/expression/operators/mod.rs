//! The operators, group by group. A new operator is a row in the table of its group.

mod accumulate;
mod arithmetic;
mod array;
mod binary;
mod bits;
mod boolean;
mod comparison;
mod conditional;
mod conversion;
mod date;
mod hashed;
mod map_filter_reduce;
mod n_values;
mod object;
mod power;
mod regex;
mod replace;
mod rounding;
mod set;
mod sort_array;
mod string;
mod trigonometry;
mod unsupported;
mod variable;
mod zip;

use crate::expression::table::Group;

/// All groups.
pub(super) const GROUPS: &[&Group] = &[
    &accumulate::GROUP,
    &arithmetic::GROUP,
    &array::GROUP,
    &bits::GROUP,
    &boolean::GROUP,
    &comparison::GROUP,
    &conditional::GROUP,
    &conversion::GROUP,
    &date::PARTS,
    &date::TEXTS,
    &date::ARITHMETIC,
    &date::BUILD,
    &map_filter_reduce::GROUP,
    &hashed::GROUP,
    &object::GROUP,
    &power::GROUP,
    &regex::GROUP,
    &replace::GROUP,
    &rounding::GROUP,
    &set::GROUP,
    &n_values::GROUP,
    &sort_array::GROUP,
    &string::GROUP,
    &trigonometry::GROUP,
    &unsupported::GROUP,
    &variable::GROUP,
    &zip::GROUP,
];
