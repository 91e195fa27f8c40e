//! All limits of the front end for peers.
//!
//! The server buffers, unpacks or waits for nothing beyond these limits. Those that clients know by name are in the answer
//! of `hello`.

use std::time::Duration;

/// The largest stored document (`maxBsonObjectSize`).
pub const DOCUMENT_BYTES: usize = 16 * 1024 * 1024;

/// The largest document in a reply: one that was computed may be a little larger than one that can be stored.
pub const SHOWN_DOCUMENT_BYTES: usize = DOCUMENT_BYTES + 16 * 1024;

/// Documents of one batch of a cursor, if it has more than one: a reply carries them and the words around them.
pub const BATCH_BYTES: usize = 16 * 1024 * 1024;

/// The largest message, compressed or not (`maxMessageSizeBytes`).
pub const MESSAGE_BYTES: usize = 48_000_000;

/// The largest message of a client that must authenticate and has not: enough for any handshake.
pub const UNAUTHENTICATED_MESSAGE_BYTES: usize = 16 * 1024;

/// The largest `client` of a hello; drivers leave out parts of theirs to stay within it.
pub const METADATA_BYTES: usize = 512;

/// The longest `client.application.name`.
pub const APPLICATION_NAME_BYTES: usize = 128;

/// The most statements in one write command (`maxWriteBatchSize`).
pub const WRITE_BATCH: usize = 100_000;

/// Documents of kind 1 sections in one message; far more than any command takes.
pub const SEQUENCE_DOCUMENTS: usize = 2 * WRITE_BATCH;

/// Kind 1 sections in one message; no command has more than two.
pub const SEQUENCES: usize = 8;

/// Open connections; one more is closed at once. Each needs a file descriptor, so the process must be allowed as many.
pub const CONNECTIONS: usize = 12_000;

/// From accepting a connection to its first whole message, TLS included.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_mins(1);

/// Between two messages. Drivers keep idle connections in their pools and notice when one was closed.
pub const IDLE_TIMEOUT: Duration = Duration::from_mins(30);

/// Silence in the middle of a message.
pub const READ_PAUSE_TIMEOUT: Duration = Duration::from_secs(20);

/// A whole message, however steadily it trickles.
pub const MESSAGE_TIMEOUT: Duration = Duration::from_mins(2);

/// How long a peer may leave a reply unread before its connection ends.
pub const WRITE_PAUSE_TIMEOUT: Duration = Duration::from_mins(1);

/// How long a shutdown waits for commands in flight.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Messages up to this size are not counted among the large ones, which wait for memory once so much of them has come.
pub const SMALL_MESSAGE_BYTES: usize = 64 * 1024;

/// How long the answer to a wrong password is delayed, twice as long for each further one on the same connection.
pub const WRONG_PROOF_PAUSE: Duration = Duration::from_secs(1);

/// The number of wrong passwords that ends a connection.
pub const WRONG_PROOFS: u32 = 3;

/// Replies of this size and larger are refused where there is no memory to hold them; smaller ones are bounded by the
/// number of connections.
pub const COUNTED_REPLY_BYTES: usize = 16 * 1024;

/// Sessions remembered at once; one user holds at most three quarters of what others leave.
pub const SESSIONS: usize = 100_000;

/// How long a session lives after its last use (`logicalSessionTimeoutMinutes`).
pub const SESSION_MINUTES: u32 = 30;

/// Cursors open at once, all clients together; one user holds at most three quarters of what others leave (see `shares`).
pub const CURSORS: usize = 10_000;

/// How long a cursor may be idle before it is closed (`cursorTimeoutMillis` at the start).
pub const CURSOR_IDLE_TIMEOUT: Duration = Duration::from_mins(10);

/// Bytes that idle cursors and open transactions hold, all clients together; one user holds at most three quarters of what
/// others leave. What stages have moved to disk does not count.
pub const IDLE_BYTES: usize = 256 * 1024 * 1024;

/// What a cursor or an open transaction counts for beside what it holds.
pub const IDLE_BASE_BYTES: usize = 4 * 1024;

/// How many bytes a byte of a command counts for in the cursor that it opens: filters and stages are kept as trees.
pub const PARSED_FACTOR: usize = 4;

/// Transactions open at once; each may hold what it has written in memory, and a snapshot. One user holds at most three
/// quarters of what others leave.
pub const TRANSACTIONS: usize = 1000;

/// How long a transaction may last (`transactionLifetimeLimitSeconds` at the start).
pub const TRANSACTION_LIFETIME: Duration = Duration::from_mins(1);

/// The window that zstd may ask for; drivers compress at levels that need a fraction of it.
pub const ZSTD_WINDOW_BYTES: u64 = 8 * 1024 * 1024;

/// The bounds that a deployment or a test may set; the rest is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// See [`CONNECTIONS`].
    pub connections: usize,
    /// See [`HANDSHAKE_TIMEOUT`].
    pub handshake_timeout: Duration,
    /// See [`IDLE_TIMEOUT`].
    pub idle_timeout: Duration,
    /// See [`READ_PAUSE_TIMEOUT`].
    pub read_pause_timeout: Duration,
    /// See [`MESSAGE_TIMEOUT`].
    pub message_timeout: Duration,
    /// See [`WRITE_PAUSE_TIMEOUT`].
    pub write_pause_timeout: Duration,
    /// See [`DRAIN_TIMEOUT`].
    pub drain_timeout: Duration,
    /// See [`WRONG_PROOF_PAUSE`].
    pub wrong_proof_pause: Duration,
    /// See [`SESSIONS`].
    pub sessions: usize,
    /// See [`CURSORS`].
    pub cursors: usize,
    /// See [`IDLE_BYTES`].
    pub idle_bytes: usize,
    /// See [`CURSOR_IDLE_TIMEOUT`].
    pub cursor_idle_timeout: Duration,
    /// See [`TRANSACTIONS`].
    pub transactions: usize,
    /// See [`TRANSACTION_LIFETIME`].
    pub transaction_lifetime: Duration,
    /// Bytes that one stage of a pipeline may keep: a sort, a group. See [`mql::STAGE_BYTES_MAX`].
    pub stage_bytes: usize,
    /// How long a query may work, all its batches together; a client may ask for less with `maxTimeMS`. Default: none.
    pub query_time: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS,
            handshake_timeout: HANDSHAKE_TIMEOUT,
            idle_timeout: IDLE_TIMEOUT,
            read_pause_timeout: READ_PAUSE_TIMEOUT,
            message_timeout: MESSAGE_TIMEOUT,
            write_pause_timeout: WRITE_PAUSE_TIMEOUT,
            drain_timeout: DRAIN_TIMEOUT,
            wrong_proof_pause: WRONG_PROOF_PAUSE,
            sessions: SESSIONS,
            cursors: CURSORS,
            idle_bytes: IDLE_BYTES,
            cursor_idle_timeout: CURSOR_IDLE_TIMEOUT,
            transactions: TRANSACTIONS,
            transaction_lifetime: TRANSACTION_LIFETIME,
            stage_bytes: mql::STAGE_BYTES_MAX,
            query_time: None,
        }
    }
}
