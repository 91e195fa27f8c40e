//! The feed of all versions and deletes (T28), in containers whose owners ask for it.
//!
//! Decision 0012 in short: the instant of every expiry is a function of header and policy. So the feed is a *merge*
//! of recorded events and of expired items that are not removed yet. A reader cannot tell from which of the two an
//! event came, because it has the same [`Position`](crate::keys::Position) in both:
//!
//! ```text
//!   changes    create a | replace a | create b |              | delete c |      written by the commits that made them
//!   expiries                                   | b expires |                    written when an expired item is removed
//!   queues                                                               | a expires | …      the expired prefix of each
//!   ------------------------------------------------------------------------------------------> time
//! ```
//!
//! Writes and removals call `record`; `merge` reads the streams in order; `read` is the engine's interface to it, and
//! `feed` the same by scope and token; `retention` decides from where on the feed is kept and trims what lies before.
//! A partition has one [`State`](state::State) record, which exists as long as anything of its feed does.

mod codec;
mod feed;
mod merge;
mod read;
mod record;
mod retention;
mod state;
mod verify;

pub use feed::{History, HistoryFrom};
pub use read::{Barrier, Event, EventKind, HistoryPage, HistoryStart, Manner};
pub(crate) use record::{WriteEffect, deleted, expired, lifted, look_again, written};
pub(crate) use retention::{follow, trim};
pub(crate) use verify::{keeping, read_entry};
