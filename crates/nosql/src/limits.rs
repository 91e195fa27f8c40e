//! Every bound the front end puts on a peer, in one place.
//!
//! A number here is a promise: nothing a client sends is buffered, parsed or waited for beyond it. The
//! engine has limits of its own (item size, ids, keys); these are the ones that stand before it.

use std::ops::RangeInclusive;
use std::time::Duration;

/// The largest request body that is looked at: an item, a batch or a query. The service's own limit.
pub const BODY_BYTES: usize = 2 * 1024 * 1024;

/// The largest body of an import or of a command through the admin API: a document of 16 MiB, and what is around it.
pub const PAGE_BODY_BYTES: usize = 20 * 1024 * 1024;

/// Lines of an import's page.
pub const IMPORT_LINES: usize = 100_000;

/// Lines of an import that wait for their commits together.
pub const IMPORT_IN_FLIGHT: usize = 256;

/// About how large a page of an export is, unless it is asked for otherwise,
pub const EXPORT_BYTES_DEFAULT: usize = 4 * 1024 * 1024;

/// and at most, unless a single item is larger.
pub const EXPORT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long a page of a query may take. What it may compute is bounded as well, by `query`.
pub const QUERY_TIMEOUT: Duration = Duration::from_mins(5);

/// How much of a too large body is read and thrown away, so that the client hears 413 and not a reset.
pub const DRAIN_BYTES: usize = 16 * 1024 * 1024;

/// Bodies of this size and larger are counted among the bytes that are held; smaller ones of HTTP/1.1 are bounded by the
/// number of connections.
pub const COUNTED_BYTES: usize = 16 * 1024;

/// What an answer by HTTP/2 is counted with beside its bytes: it keeps a stream until its peer takes it. Measured: what
/// the process grows by for each of some thousands that wait.
pub const STREAM_BYTES: usize = 5 * 1024;

/// What a request is counted with while it is worked on, as long as nothing on its connection was authenticated.
pub const REQUEST_BYTES: usize = 8 * 1024;

/// Requests of one HTTP/2 connection that are worked on, or whose answers are not gone yet, as long as nothing on it was
/// authenticated. Further ones wait in the peer's buffers.
pub const STRANGER_REQUESTS: usize = 8;

/// How much is read at once of a connection on which nothing was authenticated: some small requests, which are all counted before
/// the next piece is read.
pub const STRANGER_READ_BYTES: usize = 128;

/// How long a connection on which nothing was authenticated is not read while answers wait that its peer must make room for. What
/// comes then may be the window for them.
pub const STRANGER_READ_PAUSE: Duration = Duration::from_millis(100);

/// The least that HTTP/2 needs for a request: the head of a frame, and three headers of the static table.
const REQUEST_BYTES_MIN: usize = 9 + 3;

/// A burst of the smallest requests stays within what may be held for its connection, each of them while its answer, a refusal, is
/// there already and the request is not gone yet.
const _: () = {
    // The first of a piece may have begun in the piece before.
    let burst = STRANGER_REQUESTS - 1 + STRANGER_READ_BYTES.div_ceil(REQUEST_BYTES_MIN);
    assert!(burst * (REQUEST_BYTES + STREAM_BYTES + STRANGER_MESSAGE_BYTES) <= transport::STRANGER_BYTES);
};

/// Pages of figures that are made at once; further requests wait.
pub const METRICS_PAGES: usize = 2;

/// Requests that wait for a page of figures; one more is refused.
pub const METRICS_WAITING: usize = 64;

/// Bytes of the message of an error that strangers are told: no more of what they sent is sent back.
pub const STRANGER_MESSAGE_BYTES: usize = 1024;

/// How much of a refused request's body is passed over before it is answered.
pub const REFUSED_BYTES: usize = 64 * 1024;

/// How long the body of a refused request is waited for.
pub const REFUSED_PATIENCE: Duration = Duration::from_millis(100);

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

/// Resource bodies in the answer to a bulk request, together; the service's page has the same size. A read past it
/// answers 413 with substatus 3402 and may be asked again alone; a write past it, which has happened, keeps its
/// status and goes without its body.
pub const BULK_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Reads and patches of a bulk request under way at once: what they bring may be far larger than the request.
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

/// From accepting a connection to its first 24 bytes, and from there on to a whole request head; on a kept
/// alive HTTP/1.1 connection also the time between two requests.
pub const HEAD_TIMEOUT: Duration = Duration::from_mins(2);

/// A TLS handshake, from its first bytes on.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(15);

/// Silence in the middle of a request body.
pub const BODY_PAUSE_TIMEOUT: Duration = Duration::from_secs(15);

/// A whole request body, however steadily it trickles.
pub const BODY_TIMEOUT: Duration = Duration::from_mins(1);

/// How long a peer may leave an answer unread before it loses its place: the time in which not one byte could be
/// written.
pub const WRITE_PAUSE_TIMEOUT: Duration = Duration::from_mins(1);

/// How often an idle HTTP/2 peer is asked whether it is there.
pub const H2_PING: Duration = Duration::from_mins(1);

/// How long it may take to answer.
pub const H2_PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Concurrent requests on one HTTP/2 connection.
pub const H2_STREAMS: u32 = 256;

/// Bytes of an HTTP/2 request body that may wait unread, per stream and per connection.
pub const H2_STREAM_WINDOW: u32 = 256 * 1024;
/// See [`H2_STREAM_WINDOW`].
pub const H2_CONNECTION_WINDOW: u32 = 1024 * 1024;

/// How long a shutdown waits for requests in flight.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The bounds a deployment or a test may want to set otherwise; the rest is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// See [`BODY_BYTES`]; at most [`DRAIN_BYTES`].
    pub body_bytes: usize,
    /// See [`HEADER_BYTES`]; at least 8 KiB, which the HTTP library wants.
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
