//! A client for tests without a runtime: each call blocks.

use std::io;
use std::net::SocketAddr;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::runtime::{Builder, Runtime};

use crate::call::Call;
use crate::session::{Account, Reply};
use crate::tls::{TlsClient, connector};

/// A TLS client with a runtime of its own.
#[derive(Debug)]
pub struct Blocking {
    // Dropped before its runtime.
    client: TlsClient,
    runtime: Runtime,
}

impl Blocking {
    /// Connects to `host:port` and opens the connection. `root` is the certificate to trust, as PEM.
    pub fn connect(address: SocketAddr, root: &[u8], account: Account) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let root = CertificateDer::from_pem_slice(root).map_err(io::Error::other)?;
        let client = runtime.block_on(TlsClient::connect(address, &connector(root)?, account))?;
        Ok(Self { client, runtime })
    }

    /// Sends a request and waits for its answer.
    pub fn call(&mut self, call: &Call<'_>) -> io::Result<Reply> {
        self.runtime.block_on(self.client.call(call))
    }

    /// Sends a request and returns its number.
    pub fn send(&mut self, call: &Call<'_>) -> io::Result<u32> {
        self.runtime.block_on(self.client.sender.send(call))
    }

    /// Sends bytes, whatever they are.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.runtime.block_on(self.client.sender.write(bytes))
    }

    /// Waits for the next answer in the order of arrival; nothing if the server closes the connection instead.
    pub fn reply(&mut self) -> io::Result<Option<Reply>> {
        self.runtime.block_on(self.client.receiver.reply())
    }

    /// Waits for the answer to a request. Others that arrive before are kept for their own calls.
    pub fn reply_to(&mut self, number: u32) -> io::Result<Reply> {
        self.runtime.block_on(self.client.receiver.reply_to(number))
    }
}
