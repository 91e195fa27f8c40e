//! What both front ends need below their protocols: accepting connections, their bytes, plain or inside TLS on the same port,
//! admission control, and complaints about strangers that do not fill the log.
//!
//! Certificates are the server's business; here is only what is done with them.

mod accept;
mod admission;
mod complaints;
mod stream;
mod tenant;

/// Who takes an answer takes at least so much of it in the time for which it may leave it unread, or all that there is: a peer
/// that takes a byte now and then does not keep its place with it.
pub const WRITE_STEP_BYTES: usize = 256 * 1024;

pub use accept::{Accepted, Acceptor};
pub use admission::{
    Admission, Bounds, Busy, CutOff, Figures, Held, Peer, Permit, STRANGER_BYTES, STRANGERS_BYTES,
    StrangerFigures, Work,
};
pub use complaints::Complaints;
pub use stream::{Stream, open};
pub use tenant::{Api, Tenant};
pub use tokio_rustls::rustls::ServerConfig;
