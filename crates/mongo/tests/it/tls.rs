//! TLS and plain text on one port.

use std::sync::Arc;

use bson::{Document, Value};
use mongo::TlsConfig;
use rcgen::{CertificateParams, KeyPair};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::client::{Client, Server, settings, texts};

fn certificate() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    (certificate.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).unwrap())
}

async fn server() -> (Server, TlsConnector) {
    let (certificate, key) = certificate();
    let tls = TlsConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let mut settings = settings();
    settings.tls = Some(Arc::new(tls));
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Server::with(settings).await, TlsConnector::from(Arc::new(client)))
}

#[tokio::test(flavor = "multi_thread")]
async fn one_port_speaks_tls_and_plain_text() {
    let (server, connector) = server().await;
    let socket = TcpStream::connect(server.address).await.unwrap();
    let stream = connector.connect(ServerName::try_from("localhost").unwrap(), socket).await.unwrap();
    let mut client = Client { stream, requests: 0 };
    let reply = client.ok(Document::new().with("hello", 1)).await;
    let dialled = format!("localhost:{}", server.address.port());
    assert_eq!(reply.get("hosts"), Some(&texts(&[&dialled])), "the name that the certificate has");
    client.ping().await;
    let mut plain = server.connect().await;
    plain.ping().await;
    // A plain message whose length begins as a TLS record does: 790 bytes are 16 03 00 00.
    let padding = "x".repeat(790 - 16 - 5 - 5 - 9 - 15 - 14);
    let ping = Document::new().with("ping", 1).with("comment", padding.as_str());
    let bytes = crate::client::op_msg(3, 0, &[crate::client::kind_0(&ping.clone().with("$db", "admin"))]);
    let missing = 790 - bytes.len() as i64;
    let padding = "x".repeat((padding.len() as i64 + missing) as usize);
    let ping = Document::new().with("ping", 1).with("comment", padding).with("$db", "admin");
    let bytes = crate::client::op_msg(3, 0, &[crate::client::kind_0(&ping)]);
    assert_eq!(bytes[..4], [0x16, 0x03, 0, 0]);
    let mut plain = server.connect().await;
    plain.send(&bytes).await;
    let answer = crate::client::reply(&plain.read().await.unwrap());
    assert_eq!(answer.get("ok"), Some(&Value::Double(1.0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_handshake_ends_the_connection() {
    let (server, _) = server().await;
    let mut client = server.connect().await;
    client.send(&[0x16, 0x03, 0x01, 0x00, 0x05, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]).await;
    // The server may send an alert, in TLS; then the connection ends.
    while client.read().await.is_some() {}
    server.connect().await.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_certificate_tls_is_refused() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.send(&[0x16, 0x03, 0x01, 0x00, 0x05]).await;
    assert!(client.is_closed().await);
    server.connect().await.ping().await;
}
