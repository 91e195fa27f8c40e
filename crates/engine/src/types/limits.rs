//! Every limit of the engine, with the reason for its value.

/// An item's stored body: the service's 2 MB.
pub const ITEM_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Operations in a transactional batch: the service's figure.
pub const BATCH_OPERATIONS_MAX: usize = 100;
/// The answer of a transactional batch, reads included: as for a page.
pub const BATCH_ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Evaluation steps of the condition of one patch: it is evaluated in a transaction, while other writes wait.
pub const PATCH_CONDITION_STEPS_MAX: u64 = 5_000_000;
/// The values of one unique key with the partition key before them; a store's keys are limited to 64 KiB.
pub const UNIQUE_VALUES_BYTES_MAX: usize = 32 * 1024;
/// Users of a database, permissions of a user, scripts of one kind of a container.
pub const RESOURCES_PER_OWNER_MAX: usize = 1000;
/// The definition of a user, permission or script.
pub const RESOURCE_BYTES_MAX: usize = 256 * 1024;
/// A page of a query or listing ends when its items reach this size: the service's 4 MB.
pub const PAGE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// A page ends, possibly empty, after it has read this many entries, so that every request ends.
pub const PAGE_ENTRIES_MAX: usize = 100_000;
/// A transaction that removes items ends once it has removed this many of their entries.
pub const SWEEP_ENTRIES: usize = 16 * 1024;
/// Events that one transaction trims of a feed of all versions,
pub const HISTORY_TRIM_ENTRIES: usize = 2048;
/// and their bytes, except for a single event.
pub const HISTORY_TRIM_BYTES: usize = 16 * 1024 * 1024;
/// Expired items of a partition that the purge sets aside because they cannot be removed. With more, the partition as
/// a whole is damaged, and its purge stops.
pub const SET_ASIDE_MAX: usize = 1000;
/// Items removed in one transaction by "delete all items of a partition key": as many as one commit number has slots
/// for, so that the transaction counts as one commit of its range.
pub const DELETE_CHUNK: usize = 128;
/// Entries of a dropped container that one transaction removes.
pub const DROP_CHUNK: usize = 2048;
/// A step of an index build ends when it has written this many entries…
pub const INDEX_BUILD_ENTRIES: usize = 2048;
/// …or has read this many bytes of items; a step adds one item at least.
pub const INDEX_BUILD_BYTES: usize = 4 * 1024 * 1024;
/// Databases, containers and partitions ever created: resource ids reserve the top bit of the number.
pub const RESOURCES_MAX: u32 = i32::MAX as u32;
/// The name of a database or collection of the MongoDB API: MongoDB's 255 bytes for both together.
pub const COLLECTION_NAME_BYTES_MAX: usize = 255;
/// Documents that one transaction inserts into a collection: the events of one commit number,
pub const INSERT_CHUNK_ITEMS: usize = 128;
/// and their bytes, except for a single document.
pub const INSERT_CHUNK_BYTES: usize = 1024 * 1024;
/// The name of a session, as the front end identifies sessions.
pub const SESSION_BYTES_MAX: usize = 128;
/// Receipts that are stored in the record of their session; further ones have entries of their own.
pub const RECEIPTS_INLINE_BYTES: usize = 512;
/// A document of a collection: MongoDB's 16 MiB, and a little for what an update adds.
pub const COLLECTION_ITEM_BYTES_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;
/// Indexes of a collection, that on `_id` included: MongoDB's figure.
pub const INDEXES_MAX: usize = 64;
/// What a transaction over several documents may write, entries included: it is held in memory, and written in one
/// commit.
pub const WORKSPACE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Items that the figures of indexes are computed from: exact up to this number, estimated beyond.
pub const INDEX_USAGE_ITEMS: usize = 1000;
/// The keys of one document in all indexes: an array beside a long value makes many long keys of few bytes.
pub const DOCUMENT_KEYS_BYTES_MAX: usize = 48 * 1024 * 1024;
/// Items that a dry run or a guarded change of rules reads where counters alone are not enough; beyond it the result
/// is an upper bound.
pub const COUNTED_ITEMS_MAX: usize = 10_000;
/// The reason of a hold.
pub const HOLD_REASON_BYTES_MAX: usize = 1024;
/// Held items on one page.
pub const HELD_PAGE: usize = 1000;
/// Lines that are appended to an archive at once,
pub const ARCHIVE_BATCH_ITEMS: usize = 256;
/// and their bytes, except for a single line.
pub const ARCHIVE_BATCH_BYTES: usize = 1024 * 1024;
/// Entries of a deletion record on one page,
pub const DELETION_PAGE_ENTRIES: usize = 10_000;
/// and their bytes, except for a single entry.
pub const DELETION_PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Items that each purge step removes while the lift of a hold waits for it,
pub const LIFT_STEP: usize = 1000;
/// and the number of such steps.
pub const LIFT_STEPS_MAX: usize = 1000;
/// Batches that a drop archives before it gives up.
pub const SETTLE_STEPS_MAX: usize = 4000;
/// Intervals of a forecast.
pub const FORECAST_INTERVALS_MAX: usize = 1440;
/// How long the feed of all versions of a watched collection is kept, unless its owner has set a retention.
pub const WATCH_MINUTES: u32 = 24 * 60;
/// Watches: of collections, databases and the deployment.
pub const WATCHES_MAX: usize = 10_000;
