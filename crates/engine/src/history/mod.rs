//! The feed of all versions and deletes (T28), in containers whose owners asked for it.
//!
//! Decision 0012 in short: the instant of every death is a function of header and policy, so the feed is a *merge* of what
//! is recorded and of what is dead and not removed yet. Nobody can tell which of the two an event came from, because it has
//! the same [`Position`] in both:
//!
//! ```text
//!   changes    create a | replace a | create b |              | delete c |      written by the commits that made them
//!   expiries                                   | b expires |                    written by whoever removes the dead
//!   queues                                                               | a expires | …      the dead prefix of each
//!   ------------------------------------------------------------------------------------------> time
//! ```
//!
//! `record` is what writes and removals call, `merge` walks the streams in order, `read` is the engine's door to it, `feed`
//! that by scope and token, `retention` says from where on the feed is kept and trims what lies before. A partition has one [`State`](state::State)
//! record, which exists as long as there is anything of its feed.

mod codec;
mod feed;
mod merge;
mod position;
mod read;
mod record;
mod retention;
mod state;
mod verify;

pub use feed::{History, HistoryFrom};
pub use position::Position;
pub use read::{Barrier, Event, EventKind, HistoryPage, HistoryStart, Manner};
pub(crate) use record::{Fate, deleted, expired, lifted, look_again, written};
pub(crate) use retention::{follow, trim};
pub(crate) use verify::{keeping, read_entry};
