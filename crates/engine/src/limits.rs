//! Every limit of the engine, with where the number comes from.

/// An item's stored body: the service's 2 MB.
pub const ITEM_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Operations in a transactional batch: the service's figure.
pub const BATCH_OPERATIONS_MAX: usize = 100;
/// A page of a query or listing ends when its items reach this size: the service's 4 MB.
pub const PAGE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// A page ends, possibly empty, after this many entries were looked at, so that no request runs without end.
pub const PAGE_ENTRIES_MAX: usize = 100_000;
/// Items in a page when the caller leaves it to the server.
pub const PAGE_ITEMS_DEFAULT: usize = 100;
/// Items removed in one transaction by "delete all items of a partition key".
pub const DELETE_CHUNK: usize = 256;
/// Entries removed in one transaction when a dropped container is cleared away.
pub const DROP_CHUNK: usize = 2048;
/// Databases, containers and partitions ever made: resource ids keep the top bit of the number for themselves.
pub const RESOURCES_MAX: u32 = i32::MAX as u32;
