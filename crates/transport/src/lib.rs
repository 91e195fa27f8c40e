//! What both front ends need below their protocols: a connection's bytes, plain or inside TLS on the same port, and
//! complaints about strangers that do not fill the log.
//!
//! Certificates are the server's business; here is only what is done with them.

mod complaints;
mod stream;

pub use complaints::Complaints;
pub use stream::{Stream, open};
pub use tokio_rustls::rustls::ServerConfig;
