//! The outcome of an operation on one item.

use super::renewal::SlidingRenewal;
use crate::expiry::item::Item;
use crate::types::charge::Charge;
use crate::types::error::{Error, Result};
use crate::types::lsn::RangeLsn;
use crate::types::request::Precondition;

/// What an operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A new item exists.
    Created,
    /// A living item has a new version.
    Replaced,
    /// A living item was deleted.
    Deleted,
    /// Nothing changed; the outcome has the item.
    Read,
    /// The caller's copy is current.
    NotModified,
}

/// A successful operation.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What happened.
    pub effect: Effect,
    /// The item after the operation; `None` after a delete.
    pub item: Option<Item>,
    /// The charge.
    pub charge: Charge,
    /// The item's range, at the LSN that a session must have seen to see this outcome.
    pub range: RangeLsn,
    /// The seconds until the item expires, rounded up; `None` if no rule will expire it (T33).
    pub seconds_left: Option<u64>,
    /// The renewal of the countdown that the read calls for.
    pub renewal: Option<SlidingRenewal>,
}

/// Returns the outcome of a read under the caller's precondition.
pub(crate) fn read_outcome(item: Item, precondition: &Precondition, range: RangeLsn) -> Result<Outcome> {
    let effect = match precondition {
        _ if precondition.admits(&item.etag) => Effect::Read,
        Precondition::IfNoneMatch(_) | Precondition::IfAbsent => Effect::NotModified,
        _ => return Err(Error::PreconditionFailed { what: format!("item '{}'", item.id()) }),
    };
    let charge = Charge::read(item.body.as_bytes().len() as u64);
    Ok(Outcome { effect, item: Some(item), charge, range, seconds_left: None, renewal: None })
}
