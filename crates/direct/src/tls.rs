//! Connections by TLS that trust one root.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client::Client;
use crate::session::Account;

/// A client over TLS.
pub type TlsClient = Client<TlsStream<TcpStream>>;

/// Returns a connector that trusts certificates of one root and offers no ALPN, as the vendor's clients.
pub fn connector(root: CertificateDer<'_>) -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add(root).map_err(io::Error::other)?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

impl TlsClient {
    /// Connects and opens the connection. The certificate must name `localhost`.
    pub async fn connect(
        address: SocketAddr,
        connector: &TlsConnector,
        account: Account,
    ) -> io::Result<Self> {
        Self::open(handshake(address, connector).await?, account).await
    }

    /// Connects, and leaves the exchange of contexts to the test.
    pub async fn reach(address: SocketAddr, connector: &TlsConnector, account: Account) -> io::Result<Self> {
        Ok(Self::new(handshake(address, connector).await?, account))
    }
}

async fn handshake(address: SocketAddr, connector: &TlsConnector) -> io::Result<TlsStream<TcpStream>> {
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    connector.connect(name, socket).await
}
