//! The one error of this crate, its variants chosen by what the caller can do about them.
//!
//! Errors are cloneable because one failed commit answers every job of its group.

/// What went wrong in a store.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// An expectation did not hold: look again and decide anew.
    #[error("an entry in keyspace {keyspace} is not what the transaction expected")]
    Conflict {
        /// The keyspace of the entry that differs.
        keyspace: &'static str,
    },
    /// An earlier commit failed, so nothing is written any more: restart the store. Reads go on.
    #[error("the store takes no more writes: {cause}")]
    Poisoned {
        /// The failure that stopped the writes.
        cause: String,
    },
    /// The disk is nearly full: make room. What makes room itself is taken for longer.
    #[error(
        "no room on the disk for {wanted_bytes} bytes: {free_bytes} are left, and {kept_bytes} are kept back"
    )]
    NoRoom {
        /// Bytes that this would take.
        wanted_bytes: u64,
        /// Bytes that could be written.
        free_bytes: u64,
        /// Bytes that must be left.
        kept_bytes: u64,
    },
    /// The store was closed: open it again.
    #[error("the store is closed")]
    Closed,
    /// Stored bytes are not what this program wrote: restore from a backup.
    #[error("the store is damaged: {what}")]
    Corrupt {
        /// What was found.
        what: String,
    },
    /// The store has another format: use the version of Bolide that wrote it, or migrate.
    #[error("the store has format {found}, this version of Bolide reads format {supported}")]
    Unsupported {
        /// The format found.
        found: u32,
        /// The format this program reads and writes.
        supported: u32,
    },
    /// The operating system refused: look at the disk.
    #[error("cannot {doing}: {cause}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the operating system said.
        cause: String,
    },
    /// Another store is open on the same data: stop it first.
    #[error("{path} is in use by another process")]
    Locked {
        /// The data's place.
        path: String,
    },
    /// A backup that is not what was written: use another.
    #[error("the backup is damaged at byte {at}: {what}")]
    Backup {
        /// Where.
        at: u64,
        /// What is wrong there.
        what: String,
    },
    /// Something is in a directory in which a store is to be made: name another one.
    #[error("{path} is not empty")]
    NotEmpty {
        /// The directory.
        path: String,
    },
    /// The path of a store is that of a file: name a directory.
    #[error("{path} is a file, not a directory")]
    NotADirectory {
        /// The path.
        path: String,
    },
    /// A directory without a store holds something else: name an empty directory, or that of a store.
    #[error(
        "{path} holds '{found}', which is no part of a store: name an empty directory, or that of a store"
    )]
    NotOurs {
        /// The directory.
        path: String,
        /// The first thing in it that is not of a store.
        found: String,
    },
    /// The test clock is moved while the mode is off: start in test-clock mode.
    #[error("the clock cannot be moved: the store was not opened in test-clock mode")]
    TestClockOff,
    /// The store's clock was moved: open it in test-clock mode only (T29).
    #[error("the store's test clock was advanced by {advanced_ms} ms; it opens only in test-clock mode")]
    TestClockStore {
        /// By how much the clock was moved, in all.
        advanced_ms: u64,
    },
    /// A time lies beyond what a store can show: ask for less.
    #[error("the clock cannot be moved beyond the end of the year 9999")]
    TimeOutOfRange,
    /// A defect in this program.
    #[error("internal error: {message}")]
    Internal {
        /// What happened.
        message: String,
    },
}

/// What a store answers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of the operating system met while `doing` something.
    pub(crate) fn io(doing: &'static str, cause: &dyn std::fmt::Display) -> Self {
        Self::Io { doing, cause: cause.to_string() }
    }

    /// What later writers are told after this error stopped the writes.
    pub(crate) fn poison(&self) -> Self {
        match self {
            Self::Poisoned { .. } | Self::Closed => self.clone(),
            other => Self::Poisoned { cause: other.to_string() },
        }
    }
}
