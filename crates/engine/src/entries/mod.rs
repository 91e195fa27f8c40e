//! The traces of an item's version in the store, besides the item itself: its entries, its weight in the counters, its LSN.

pub(crate) mod counters;
pub(crate) mod expected;
pub(crate) mod mark;
pub(crate) mod queues;
pub(crate) mod renewals;
pub(crate) mod set_aside;
pub(crate) mod traces;
pub(crate) mod writes;
