//! Connections by TLS, and the client that blocks.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use direct::{Blocking, Call, TlsClient, connector};
use rcgen::{CertificateParams, KeyPair};
use rntbd::OperationType;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::conversation::account;
use crate::peer::Peer;

/// A listener that has a certificate of its own.
struct Listener {
    socket: TcpListener,
    acceptor: TlsAcceptor,
    certificate: CertificateDer<'static>,
}

impl Listener {
    async fn bind() -> (Listener, SocketAddr) {
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let certificate = certificate.der().clone();
        (Listener { socket, acceptor, certificate }, address)
    }

    async fn accept(&self) -> Option<Peer<TlsStream<TcpStream>>> {
        let (socket, _) = self.socket.accept().await.unwrap();
        self.acceptor.accept(socket).await.ok().map(Peer)
    }
}

#[tokio::test]
async fn a_client_connects_to_the_server_whose_root_it_trusts_and_to_no_other() {
    let (listener, address) = Listener::bind().await;
    let trusting = connector(listener.certificate.clone()).unwrap();
    let serving = async {
        let mut peer = listener.accept().await.unwrap();
        assert_eq!(peer.0.get_ref().1.alpn_protocol(), None);
        peer.welcome().await;
    };
    let (client, ()) = tokio::join!(TlsClient::connect(address, &trusting, account()), serving);
    client.unwrap();
    let (other, _) = Listener::bind().await;
    let distrusting = connector(other.certificate.clone()).unwrap();
    let (client, _) = tokio::join!(TlsClient::reach(address, &distrusting, account()), listener.accept());
    assert!(client.is_err());
}

#[test]
fn a_test_without_a_runtime_calls_and_blocks() {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_io().build().unwrap();
    let (listener, address) = runtime.block_on(Listener::bind());
    let base64 = STANDARD.encode(&listener.certificate);
    let pem = format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----\n");
    let serving = runtime.spawn(async move {
        let mut peer = listener.accept().await.unwrap();
        peer.welcome().await;
        for status in [200, 404] {
            let asked = peer.request().await;
            peer.answer(&asked, status, Some(b"{}")).await;
        }
    });
    let mut client = Blocking::connect(address, pem.as_bytes(), account()).unwrap();
    let call = Call::new(OperationType::Read, "dbs/d");
    assert_eq!(client.call(&call).unwrap().expect_status(200).text(), "{}");
    let number = client.send(&call).unwrap();
    assert_eq!(client.reply_to(number).unwrap().status, 404);
    runtime.block_on(serving).unwrap();
    assert_eq!(client.reply().unwrap(), None);
}
