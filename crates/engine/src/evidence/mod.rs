//! Evidence of removed items, where their owner has turned it on: a line in the archive, an entry in the deletion record.

pub(crate) mod archive;
pub(crate) mod deletions;
pub(crate) mod expiry_record;
pub(crate) mod removal;
