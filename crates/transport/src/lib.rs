//! What both front ends need below their protocols: a connection's bytes, plain or inside TLS on the same port, how much is
//! done at once, and complaints about strangers that do not fill the log.
//!
//! Certificates are the server's business; here is only what is done with them.

mod complaints;
mod load;
mod stream;

/// Who takes an answer takes at least so much of it in the time for which it may leave it unread, or all that there is: a peer
/// that takes a byte now and then does not keep its place with it.
pub const WRITE_STEP_BYTES: usize = 256 * 1024;

pub use complaints::Complaints;
pub use load::{Bounds, Busy, Figures, Held, Load, Place, Work};
pub use stream::{Stream, open};
pub use tokio_rustls::rustls::ServerConfig;
