//! The deletion record: what was purged, when it had expired and under which rule, in containers whose owners ask for
//! it. It has ids and times, no bodies. It is evidence for auditors, who must not have to trust the operator or this
//! server.
//!
//! It is a *log* for each physical partition: lines of JSON, numbered from 1, each of which has the hash of the line
//! before. The hash of a line is the SHA-256 of its own text up to the hash:
//!
//! ```text
//!   {"log":7,"n":1,"previous":"000…","time":"…","event":"opened",…,"hash":"ab1…"}
//!   {"log":7,"n":2,"previous":"ab1…","time":"…","event":"purged","id":"x",…,"hash":"9f0…"}
//!   |------------------------ hashed ----------------------------|
//! ```
//!
//! So a line that was changed, left out, moved or inserted breaks the chain at that point. An attacker who can write
//! the file can also forge a chain from some line on. The *head*, the number and hash of the last line, detects that
//! if it was noted elsewhere. The text itself is stored, so that no line has to be formatted the same way twice.
//!
//! The store writes entries and head in the transaction that removes an item, so that the record has exactly what was
//! purged, whatever crashes. The record has a keyspace of its own, and is kept when its container is dropped; the
//! last line says that everything else was removed then.

mod events;
mod log;
mod read;
mod verify;

pub(crate) use events::{dropped, follow, opened, purged, renamed};
pub use read::{DeletionGap, DeletionLog, DeletionPage};
pub(crate) use read::{gaps, verify};
pub use verify::{Tampering, Verifier};
