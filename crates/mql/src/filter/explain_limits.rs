//! Limits on the rules and values in an explanation: larger ones are left out. MongoDB leaves both out if the explanation
//! would exceed the size of a document.

use bson::{Document, Value, ValueRef};

use crate::context::Context;
use crate::error::Result;
use crate::size::{document_bytes, value_bytes};

/// How many bytes a value or a rule that is shown may have.
const SHOWN_BYTES_MAX: usize = 4 * 1024;
/// How many bytes of a rule are read again for one step of work: patterns are compiled.
const BYTES_PER_STEP: usize = 8;

/// Returns `true` if a value is small enough to be shown.
pub(super) fn is_shown(value: ValueRef<'_>) -> bool {
    value_bytes(value) <= SHOWN_BYTES_MAX
}

/// Adds a field, unless its value is too large to be shown.
pub(super) fn push_shown(shown: &mut Document, name: &str, value: Value) {
    if is_shown(value.view()) {
        shown.push(name, value);
    }
}

/// Counts the work of reading a rule again.
pub(super) fn spend_on(rule: &Document, context: &Context) -> Result<()> {
    context.spend(1 + (document_bytes(rule.view()) / BYTES_PER_STEP) as u64)
}
