//! Reading: the gate that hides expired items and the view that holds it, point reads, sliding renewals, browsing,
//! exports, and continuation tokens.

pub(crate) mod browse;
pub(crate) mod continuation;
pub(crate) mod document;
pub(crate) mod export;
pub(crate) mod gate;
pub(crate) mod outcome;
pub(crate) mod read;
pub(crate) mod renewal;
