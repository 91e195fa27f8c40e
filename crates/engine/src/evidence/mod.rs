//! What is recorded of a removed item where its owner asks for it: a line in the archive, an entry in the deletion
//! record.

pub(crate) mod archive;
pub(crate) mod deletions;
pub(crate) mod expiry_record;
pub(crate) mod removal;
