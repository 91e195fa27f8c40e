//! The operators, group by group. A new operator is a row in the table of its group.

mod arithmetic;
mod boolean;
mod comparison;
mod conditional;
mod variable;

use crate::expression::table::Group;

/// All groups.
pub(super) const GROUPS: &[&Group] =
    &[&arithmetic::GROUP, &boolean::GROUP, &comparison::GROUP, &conditional::GROUP, &variable::GROUP];
