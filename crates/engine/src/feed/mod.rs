//! Feeds of changes: the latest version of each item, all versions with deletes and expiries, and the streams of
//! collections.

pub(crate) mod changes;
pub(crate) mod history;
pub(crate) mod watch;
