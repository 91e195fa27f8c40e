//! TLS and plain text on one port.

use std::sync::Arc;
use std::time::Duration;

use nosql::{Limits, Service, Tls};
use rcgen::{CertificateParams, KeyPair};
use telemetry::Registry;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::client::{Reply, Server};

const ROOT: &str = "-----BEGIN CERTIFICATE-----\n";

pub(crate) async fn server(limits: Limits, protocols: &[&[u8]]) -> (Server, TlsConnector) {
    server_with(limits, protocols, |service| service).await
}

pub(crate) async fn server_with(
    limits: Limits,
    protocols: &[&[u8]],
    more: impl FnOnce(Service) -> Service,
) -> (Server, TlsConnector) {
    server_recorded(limits, protocols, Registry::default(), more).await
}

/// A server with a registry.
pub(crate) async fn server_recorded(
    limits: Limits,
    protocols: &[&[u8]],
    registry: Registry,
    more: impl FnOnce(Service) -> Service,
) -> (Server, TlsConnector) {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let certificate = certificate.der().clone();
    let provider = || Arc::new(default_provider());
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut client = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let tls = Tls { config: Arc::new(config), root: ROOT.into() };
    (Server::with_tls(limits, tls, registry, more).await, TlsConnector::from(Arc::new(client)))
}

pub(crate) async fn connect(server: &Server, connector: &TlsConnector) -> TlsStream<TcpStream> {
    let socket = TcpStream::connect(server.address).await.unwrap();
    connector.connect(ServerName::try_from("localhost").unwrap(), socket).await.unwrap()
}

#[tokio::test]
async fn one_port_speaks_both_and_the_account_echoes_how_it_was_reached() {
    let (server, connector) = server(Limits::default(), &[b"http/1.1"]).await;
    let mut stream = connect(&server, &connector).await;
    let (head, _) = server.get("/").to_bytes();
    stream.write_all(&head).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let account = Reply::parse(&answer).expect_status(200);
    assert!(account.text().contains(&format!("\"https://{}/\"", server.address)), "{}", account.text());
    let account = server.get("/").send().await.expect_status(200);
    assert!(account.text().contains(&format!("\"http://{}/\"", server.address)), "{}", account.text());
}

#[tokio::test]
async fn clients_agree_on_a_protocol_inside_the_handshake() {
    for (offered, agreed) in [
        (&[b"h2".as_slice(), b"http/1.1"][..], Some(b"h2".as_slice())),
        (&[b"http/1.1"], Some(b"http/1.1")),
        (&[], None),
    ] {
        let (server, connector) = server(Limits::default(), offered).await;
        let stream = connect(&server, &connector).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), agreed);
    }
    // The negotiated protocol is spoken: the answer to a preface is a frame of settings.
    let (server, connector) = server(Limits::default(), &[b"h2"]).await;
    let mut stream = connect(&server, &connector).await;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[3], 4);
}

#[tokio::test]
async fn every_client_may_have_the_root() {
    let (server, _) = server(Limits::default(), &[]).await;
    let pem = server.get("/_explorer/emulator.pem").unsigned().send().await.expect_status(200);
    assert_eq!(pem.text(), ROOT);
    assert_eq!(pem.header("content-type"), Some("application/x-pem-file"));
    let without = Server::start().await;
    without.get("/_explorer/emulator.pem").unsigned().send().await.expect_error(404, 0, "NotFound");
}

/// Whether the server ends a connection that begins with some bytes and sends no more.
async fn is_ended_after(server: &Server, begun: &[u8]) -> bool {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let _ = stream.write_all(begun).await;
    is_ended(stream).await
}

/// Whether the server has ended a connection, whatever it sends before.
async fn is_ended(mut stream: TcpStream) -> bool {
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_mins(1), stream.read_to_end(&mut rest)).await.is_ok()
}

#[tokio::test]
async fn a_handshake_that_breaks_or_stops_loses_its_place() {
    const BROKEN: &[u8] = &[0x16, 0x03, 0x01, 0x00, 0x05, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
    const STOPPED: &[u8] = &[0x16, 0x03, 0x01, 0x02];
    // The server waits for a client that stops, shortly here: too shortly for a whole handshake on a busy machine. The next
    // connection shows that the slot is released: it gets one, and ends no sooner than the limit allows.
    let short = Duration::from_millis(50);
    let limits = Limits { handshake_timeout: short, connections: 1, ..Limits::default() };
    let (hasty, _) = server(limits, &[b"http/1.1"]).await;
    for _ in 0..3 {
        let began = tokio::time::Instant::now();
        assert!(is_ended_after(&hasty, STOPPED).await);
        assert!(began.elapsed() >= short, "there was no place for it");
    }
    // A client in the middle of its handshake counts: there is one slot, and it was released.
    let limits = Limits { connections: 1, ..Limits::default() };
    let (server, connector) = server(limits, &[b"http/1.1"]).await;
    for _ in 0..3 {
        assert!(is_ended_after(&server, BROKEN).await);
    }
    let mut open = connect(&server, &connector).await;
    open.write_all(&server.get("/").keep_alive()).await.unwrap();
    open.read_exact(&mut [0; 12]).await.unwrap();
    assert!(is_ended(TcpStream::connect(server.address).await.unwrap()).await, "one more is closed at once");
}

#[tokio::test]
async fn without_a_certificate_tls_is_refused() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&[0x16, 0x03, 0x01, 0x00, 0x05]).await.unwrap();
    assert!(is_ended(stream).await);
    server.get("/").send().await.expect_status(200);
}
