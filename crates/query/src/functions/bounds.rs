//! Bounds on what one function call may traverse and build. Results feed other calls: without a bound a few nested
//! `REPLACE` would exhaust the memory.

use document::Value;

use crate::functions::context::{Context, Fault};

/// Longest text that a function makes, in bytes. Twice the largest item.
pub(crate) const TEXT_BYTES: usize = 4 * 1024 * 1024;

/// Largest list that a function cuts a text into, in bytes of its values.
pub(crate) const LIST_BYTES: usize = 16 * 1024 * 1024;

/// Charges a walk over that many bytes of text; `None` if the budget is used up.
pub(crate) fn walk(bytes: usize, context: &Context) -> Option<()> {
    context.spend(bytes as u64 / 64 + 1).then_some(())
}

/// Charges a text of that many bytes that is about to be built; `None` if it is too long.
pub(crate) fn make(bytes: usize, context: &Context) -> Option<()> {
    limit_text(bytes, context)?;
    walk(bytes, context)
}

/// Charges a list of that many items that is about to be built; `None` if it is too long.
pub(crate) fn list(items: usize, context: &Context) -> Option<()> {
    limit_list(items, context)?;
    walk(items.saturating_mul(size_of::<Value>()), context)
}

/// Returns `None` and fails the request if a text of that many bytes is too long.
pub(crate) fn limit_text(bytes: usize, context: &Context) -> Option<()> {
    let fits = bytes <= TEXT_BYTES;
    if !fits {
        context.fail(Fault::OutOfMemory { what: "one computed string", limit: TEXT_BYTES });
    }
    fits.then_some(())
}

/// Returns `None` and fails the request if a list of that many items is too long.
pub(crate) fn limit_list(items: usize, context: &Context) -> Option<()> {
    let fits = items <= LIST_BYTES / size_of::<Value>();
    if !fits {
        context.fail(Fault::OutOfMemory { what: "one computed array", limit: LIST_BYTES });
    }
    fits.then_some(())
}
