//! Regular expressions: compiled once per request, bounded in size and in work.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::Entry;

/// The patterns that a request has compiled so far.
#[derive(Debug, Default)]
pub(crate) struct Patterns(RefCell<BTreeMap<String, ()>>);

/// The functions of this file.
pub(crate) const TABLE: &[Entry] = &[];
