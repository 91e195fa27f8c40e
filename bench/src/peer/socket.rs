//! A blocking connection, plain or inside TLS that trusts one root.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The settings of TLS for one server.
pub(super) type Trust = Arc<ClientConfig>;

pub(super) enum Socket {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Socket {
    pub(super) fn connect(address: &str, trust: Option<&Trust>) -> Result<Socket> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let Some(trust) = trust else { return Ok(Socket::Plain(stream)) };
        let name = ServerName::try_from("localhost")?;
        let connection = ClientConnection::new(Arc::clone(trust), name)?;
        Ok(Socket::Tls(Box::new(StreamOwned::new(connection, stream))))
    }
}

/// Returns the trust in the root of the server that keeps its data in that directory.
pub(super) fn trust_in(directory: &Path) -> Result<Trust> {
    let root = directory.join("tls/root.pem");
    let root =
        CertificateDer::from_pem_file(&root).with_context(|| format!("cannot read {}", root.display()))?;
    let mut roots = RootCertStore::empty();
    roots.add(root)?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(stream) => stream.read(bytes),
            Socket::Tls(stream) => stream.read(bytes),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(stream) => stream.write(bytes),
            Socket::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Socket::Plain(stream) => stream.flush(),
            Socket::Tls(stream) => stream.flush(),
        }
    }
}
