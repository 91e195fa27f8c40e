//! All limits of this front end for clients.
//!
//! The server neither buffers nor parses anything beyond these limits, and does not wait longer. The engine has limits
//! of its own (item size, ids, keys), which apply after these.

use std::ops::RangeInclusive;
use std::time::Duration;

/// The largest request body: an item, a batch or a query. The same as the service's.
pub const BODY_BYTES: usize = 2 * 1024 * 1024;

/// How much larger than [`BODY_BYTES`] the body of a batch or bulk request may be, as in the service: the .NET client fills
/// bulk bodies up to 2,202,010 bytes.
pub const BATCH_FRAMING_BYTES: usize = 2_202_010 - BODY_BYTES;

/// The largest body of an import or of a command through the admin API: a document of 16 MiB, and the bytes around it.
pub const PAGE_BODY_BYTES: usize = 20 * 1024 * 1024;

/// Lines of an import's page.
pub const IMPORT_LINES: usize = 100_000;

/// Lines of an import that wait for their commits together.
pub const IMPORT_IN_FLIGHT: usize = 256;

/// The approximate size of an export's page by default,
pub const EXPORT_BYTES_DEFAULT: usize = 4 * 1024 * 1024;

/// and at most, unless a single item is larger.
pub const EXPORT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The time limit for a page of a query. `query` limits its computation as well.
pub const QUERY_TIMEOUT: Duration = Duration::from_mins(5);

/// How much of a too large body is read and discarded, so that the client receives 413 and not a reset.
pub const DRAIN_BYTES: usize = 16 * 1024 * 1024;

/// Bodies of this size and larger are counted among the bytes held; the number of connections bounds the smaller ones of
/// HTTP/1.1.
pub const COUNTED_BYTES: usize = 16 * 1024;

/// The charge for an HTTP/2 answer in addition to its bytes: it keeps a stream until its client has read it. Measured
/// as the growth of the process for each of some thousands that wait.
pub const STREAM_BYTES: usize = 5 * 1024;

/// The charge for a request in progress on an unauthenticated connection.
pub const REQUEST_BYTES: usize = 8 * 1024;

/// The largest number of requests in progress, or with answers not sent yet, on an HTTP/2 connection without an
/// authenticated request. Further ones wait in the peer's buffers.
pub const UNAUTHENTICATED_REQUESTS: usize = 8;

/// How much is read at once from an unauthenticated connection: some small requests, all counted before the next piece
/// is read.
pub const UNAUTHENTICATED_READ_BYTES: usize = 128;

/// The unit in which the bytes of a request head are counted on an unauthenticated connection, until the request begins.
pub const UNAUTHENTICATED_PIECE_BYTES: usize = 4 * 1024;

/// How long an unauthenticated connection is not read while answers wait for its client. The next data may be the
/// window update for them.
pub const UNAUTHENTICATED_READ_PAUSE: Duration = Duration::from_millis(100);

/// The smallest HTTP/2 request: the head of a frame, and three headers of the static table.
const REQUEST_BYTES_MIN: usize = 9 + 3;

/// A burst of the smallest requests stays within the limit of its connection, even if each has its answer, a refusal,
/// while the request is still counted.
const _: () = {
    // The first request of a piece may have begun in the previous piece.
    let burst = UNAUTHENTICATED_REQUESTS - 1 + UNAUTHENTICATED_READ_BYTES.div_ceil(REQUEST_BYTES_MIN);
    assert!(
        burst * (REQUEST_BYTES + STREAM_BYTES + UNAUTHENTICATED_MESSAGE_BYTES)
            <= transport::UNAUTHENTICATED_CONNECTION_BYTES
    );
};

/// The limits of connections in direct mode alone.
pub(crate) mod direct {
    use std::time::Duration;

    /// The largest frame: a head and its tokens.
    pub(crate) const FRAME_BYTES: usize = 64 * 1024;

    /// The largest frame until a request on the connection is authenticated. Until then there is one at a time.
    pub(crate) const UNAUTHENTICATED_FRAME_BYTES: usize = 16 * 1024;

    /// How many requests of a connection may be refused before one is authenticated,
    pub(crate) const UNAUTHENTICATED_REFUSALS: u32 = 16;

    /// and how long that may take.
    pub(crate) const UNAUTHENTICATED_TIMEOUT: Duration = Duration::from_secs(30);

    /// The largest number of a connection's requests in progress, or with answers not sent yet; further ones are not read.
    pub(crate) const REQUESTS_IN_FLIGHT: u32 = 64;

    /// How long a large payload waits for memory. The frames behind it wait as long, so it is refused sooner than a body of
    /// HTTP, which delays no other request.
    pub(crate) const PAYLOAD_WAIT: Duration = Duration::from_millis(250);

    /// The unread bytes of a connection's answers beyond which no request is read.
    pub(crate) const UNREAD_BYTES: usize = 8 * 1024 * 1024;

    /// How long a connection must be silent before a stopping server closes it.
    pub(crate) const QUIET: Duration = Duration::from_millis(500);

    /// How long the server keeps reading a connection that it closes, so that its client receives the last answers, and how
    /// long closing it may take.
    pub(crate) const LINGER: Duration = Duration::from_secs(1);

    /// The idle time of a connection after which its client is probed, and the interval of the probes: clients keep
    /// connections for ever, and the server closes one only if its client has vanished.
    pub(crate) const KEEP_ALIVE: (Duration, Duration) = (Duration::from_mins(1), Duration::from_secs(10));
}

/// How many pages of metrics are made at once; further requests wait.
pub const METRICS_PAGES: usize = 2;

/// How many requests may wait for a page of metrics; one more is refused.
pub const METRICS_WAITING: usize = 64;

/// The largest error message to unauthenticated clients: no more of their request is echoed.
pub const UNAUTHENTICATED_MESSAGE_BYTES: usize = 1024;

/// How much of a refused request's body is read and discarded before the answer.
pub const REFUSED_BYTES: usize = 64 * 1024;

/// How long to wait for the body of a refused request.
pub const REFUSED_TIMEOUT: Duration = Duration::from_millis(100);

/// All request headers together, and the request line. Their number is bounded too, by the HTTP library (100).
pub const HEADER_BYTES: usize = 64 * 1024;

/// The request path, still percent-encoded: an item id of 1,023 bytes may take three characters for each.
pub const PATH_BYTES: usize = 8 * 1024;

/// Segments in a path; the deepest route has eight.
pub const PATH_SEGMENTS: usize = 8;

/// Bytes of an echoed `x-ms-activity-id`.
pub const ACTIVITY_BYTES: usize = 64;

/// Session tokens in one request header, comma separated.
pub const SESSION_TOKENS: usize = 256;

/// The size of all resource bodies in the answer to a bulk request; the service's page has the same size. A read beyond it
/// is answered with 413 and substatus 3402, and the client may repeat it alone; a write beyond it, which has happened,
/// keeps its status and has no body.
pub const BULK_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Reads and patches of a bulk request in progress at once: their results may be far larger than the request.
pub const BULK_IN_FLIGHT: usize = 16;

/// Query parameters in one request.
pub const QUERY_PARAMETERS: usize = 4096;

/// Items in a page when the client leaves it open (-1 or absent).
pub const PAGE_ITEMS_DEFAULT: usize = 100;

/// Items in a page however many the client asks for.
pub const PAGE_ITEMS_MAX: usize = 10_000;

/// Clock difference a signature may have, either way.
pub const SKEW_SECONDS: u64 = 15 * 60;

/// Life of a resource token, unless the client asks for another one.
pub const TOKEN_SECONDS_DEFAULT: u64 = 60 * 60;

/// Lives of a resource token that a client may ask for.
pub const TOKEN_SECONDS: RangeInclusive<u64> = 10..=5 * 60 * 60;

/// Open connections; one more is closed at once. Each needs a file descriptor, so the process must be allowed as many
/// (`ulimit -n`); with fewer, new connections wait until others end.
pub const CONNECTIONS: usize = 12_000;

/// The time from accepting a connection to its first 24 bytes, and from there to a complete request head; on an
/// HTTP/1.1 keep-alive connection also the time between two requests.
pub const HEAD_TIMEOUT: Duration = Duration::from_mins(2);

/// The time for a TLS handshake, from its first bytes on.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(15);

/// Silence in the middle of a request body.
pub const BODY_PAUSE_TIMEOUT: Duration = Duration::from_secs(15);

/// The time for a complete request body, however steadily it arrives.
pub const BODY_TIMEOUT: Duration = Duration::from_mins(1);

/// How long a client may leave an answer unread before its connection is closed: the time without a single byte
/// written.
pub const WRITE_PAUSE_TIMEOUT: Duration = Duration::from_mins(1);

/// The interval of pings to an idle HTTP/2 client.
pub const H2_PING: Duration = Duration::from_mins(1);

/// The time limit for the answer to a ping.
pub const H2_PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Concurrent requests on one HTTP/2 connection.
pub const H2_STREAMS: u32 = 256;

/// Bytes of an HTTP/2 request body that may wait unread, per stream and per connection.
pub const H2_STREAM_WINDOW: u32 = 256 * 1024;
/// See [`H2_STREAM_WINDOW`].
pub const H2_CONNECTION_WINDOW: u32 = 1024 * 1024;

/// How long a shutdown waits for running requests.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The limits that a deployment or a test may change; the rest is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// See [`BODY_BYTES`]; at most [`DRAIN_BYTES`].
    pub body_bytes: usize,
    /// See [`HEADER_BYTES`]; at least 8 KiB, as the HTTP library requires.
    pub header_bytes: usize,
    /// See [`QUERY_TIMEOUT`].
    pub query_timeout: Duration,
    /// See [`CONNECTIONS`].
    pub connections: usize,
    /// See [`HEAD_TIMEOUT`].
    pub head_timeout: Duration,
    /// See [`HANDSHAKE_TIMEOUT`].
    pub handshake_timeout: Duration,
    /// See [`BODY_PAUSE_TIMEOUT`].
    pub body_pause_timeout: Duration,
    /// See [`BODY_TIMEOUT`].
    pub body_timeout: Duration,
    /// See [`WRITE_PAUSE_TIMEOUT`].
    pub write_pause_timeout: Duration,
    /// See [`DRAIN_TIMEOUT`].
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: BODY_BYTES,
            header_bytes: HEADER_BYTES,
            query_timeout: QUERY_TIMEOUT,
            connections: CONNECTIONS,
            head_timeout: HEAD_TIMEOUT,
            handshake_timeout: HANDSHAKE_TIMEOUT,
            body_pause_timeout: BODY_PAUSE_TIMEOUT,
            body_timeout: BODY_TIMEOUT,
            write_pause_timeout: WRITE_PAUSE_TIMEOUT,
            drain_timeout: DRAIN_TIMEOUT,
        }
    }
}
