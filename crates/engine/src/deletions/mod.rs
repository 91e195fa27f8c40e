//! The deletion record: what was purged, when it had died and under which rule, in containers whose owners ask for it; ids and
//! times, no bodies. The evidence that somebody asks for who is not allowed to trust us.
//!
//! It is a *log* for each physical partition: lines of JSON, numbered from 1, each of which names the hash of the one before.
//! The hash of a line is the SHA-256 of its own text up to the hash:
//!
//! ```text
//!   {"log":7,"n":1,"previous":"000…","time":"…","event":"opened",…,"hash":"ab1…"}
//!   {"log":7,"n":2,"previous":"ab1…","time":"…","event":"purged","id":"x",…,"hash":"9f0…"}
//!   |------------------------ hashed ----------------------------|
//! ```
//!
//! So a line that was changed, left out, moved or put in breaks the chain where it happened. Whoever can write the file can
//! also forge a chain of their own from some line on; that is told by the *head*, the number and hash of the last line, if it
//! was noted elsewhere. What is stored is the text itself: nothing has to be written the same way twice.
//!
//! The store has entries and head in the transaction that removes an item, so that the record has exactly what was purged,
//! whatever crashes. It has a keyspace of its own, and is not cleared away when its container is dropped: that the rest went
//! then is its last line.

mod events;
mod log;
mod read;
mod verify;

pub(crate) use events::{dropped, follow, opened, purged, renamed};
pub use read::{DeletionGap, DeletionLog, DeletionPage};
pub(crate) use read::{gaps, verify};
pub use verify::{Tampering, Verifier};
