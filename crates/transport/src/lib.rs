//! The layer below both protocols: accepting connections, their bytes, plain or inside TLS on the same port, admission
//! control, threads for long work, handlers that panic, and rate-limited warnings.
//!
//! Loading certificates is up to the server; this crate only uses them.

mod accept;
mod admission;
mod catch;
mod halves;
mod stream;
mod tenant;
mod threads;
mod warning_limiter;

/// The number of bytes of an answer that a client must receive within the write timeout, or all that there are: a
/// client that reads a byte now and then does not keep its connection.
pub const WRITE_STEP_BYTES: usize = 256 * 1024;

pub use accept::{Accepted, Acceptor};
pub use admission::{
    Admission, Bounds, Busy, CutOff, Held, OwnedPermit, PausedPermit, Peer, Permit, UNAUTHENTICATED_BYTES,
    UNAUTHENTICATED_CONNECTION_BYTES, UnauthenticatedStats, Work, WorkStats,
};
pub use catch::CatchPanic;
pub use halves::{Reader, Writer, halves};
pub use stream::{Secure, Stream, is_distrust, keep_alive, open};
pub use tenant::{Api, Tenant};
pub use threads::{STACK_BYTES, Threads};
pub use tokio_rustls::rustls::ServerConfig;
pub use warning_limiter::WarningLimiter;
