//! The error type of this crate; its variants are grouped by what the caller can do.
//!
//! Errors are cloneable because one failed commit answers every job of its group.

/// An error of a store.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// An expectation did not hold: read again and retry.
    #[error("an entry in keyspace {keyspace} is not what the transaction expected")]
    Conflict {
        /// The keyspace of the entry that differs.
        keyspace: &'static str,
    },
    /// An earlier commit failed, so the store takes no more writes: restart it. Reads continue.
    #[error("the store takes no more writes: {cause}")]
    Poisoned {
        /// The failure that stopped the writes.
        cause: String,
    },
    /// The disk is nearly full: free some space. Writes that free space are accepted for longer.
    #[error(
        "not enough disk space for {wanted_bytes} bytes: {free_bytes} bytes free, {kept_bytes} bytes reserved"
    )]
    DiskFull {
        /// The bytes that the write needs.
        wanted_bytes: u64,
        /// The bytes that are free.
        free_bytes: u64,
        /// The bytes that must stay free.
        kept_bytes: u64,
    },
    /// The store was closed: open it again.
    #[error("the store is closed")]
    Closed,
    /// Stored bytes are not as this program wrote them: restore from a backup.
    #[error("the store is damaged: {what}")]
    Corrupt {
        /// The damage found.
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
    /// The operating system refused: check the disk.
    #[error("cannot {doing}: {cause}")]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The operating system's message.
        cause: String,
    },
    /// Another store is open on the same data: stop it first.
    #[error("{path} is in use by another process")]
    Locked {
        /// The path of the data.
        path: String,
    },
    /// The backup is not as it was written: use another.
    #[error("the backup is damaged at byte {at}: {what}")]
    Backup {
        /// The offset of the damage.
        at: u64,
        /// What is wrong there.
        what: String,
    },
    /// A directory in which a store is to be created is not empty: name another one.
    #[error("{path} is not empty")]
    NotEmpty {
        /// The directory.
        path: String,
    },
    /// The path of a store is a file: name a directory.
    #[error("{path} is a file, not a directory")]
    NotADirectory {
        /// The path.
        path: String,
    },
    /// A directory without a store holds other files: name an empty directory, or that of a store.
    #[error(
        "{path} holds '{found}', which is not part of a store: name an empty directory, or that of a store"
    )]
    NotOurs {
        /// The directory.
        path: String,
        /// The first entry in it that is not part of a store.
        found: String,
    },
    /// The test clock is advanced while the mode is off: start in test-clock mode.
    #[error("the clock cannot be moved: the store was not opened in test-clock mode")]
    TestClockOff,
    /// The store's clock was advanced: open it in test-clock mode only (T29).
    #[error("the store's test clock was advanced by {advanced_ms} ms; it opens only in test-clock mode")]
    TestClockStore {
        /// How far the clock was advanced, in all.
        advanced_ms: u64,
    },
    /// A time lies beyond what a store can show: advance by less.
    #[error("the clock cannot be moved beyond the end of the year 9999")]
    TimeOutOfRange,
    /// A defect in this program.
    #[error("internal error: {message}")]
    Internal {
        /// A description of the defect.
        message: String,
    },
}

/// The result of a store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error for an operating system error met while `doing` something.
    pub(crate) fn io(doing: &'static str, cause: &dyn std::fmt::Display) -> Self {
        Self::Io { doing, cause: cause.to_string() }
    }

    /// Returns the error for later writers after this one stopped the writes.
    pub(crate) fn poison(&self) -> Self {
        match self {
            Self::Poisoned { .. } | Self::Closed => self.clone(),
            other => Self::Poisoned { cause: other.to_string() },
        }
    }
}
