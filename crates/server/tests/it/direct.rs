//! Direct mode of the real process: which clients are told that a certificate is not trusted, over kills of the server.
//!
//! A killed server forgets its clients. Tests with controlled time (`service/trust.rs` of `nosql`) cover the pauses between
//! their requests; here everything happens as fast as it can, which is the worst case for clients that the server must not
//! suspect: nothing is regular, and nothing is forgotten.

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use direct::{Account, Blocking, Call};
use rntbd::OperationType;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::process::{KEY, Server, now, sign};
use crate::tools::succeed;

/// How often the server is killed.
const KILLS: usize = 2;
/// How often a test checks for something that the server does in the background.
const TRIES: u32 = 500;

fn root(data: &Path) -> Vec<u8> {
    std::fs::read(data.join("tls/root.pem")).unwrap()
}

/// Opens a connection in direct mode.
fn connect(server: &Server, data: &Path) -> Blocking {
    let account = Account { key: KEY.to_owned(), date: now() };
    Blocking::connect(server.address.parse().unwrap(), &root(data), account).unwrap()
}

/// Reads a database that may exist or not; returns the status.
fn read(client: &mut Blocking) -> std::io::Result<u32> {
    client.call(&Call::new(OperationType::Read, "dbs/none")).map(|reply| reply.status)
}

/// Asks for the addresses of the databases, as clients in direct mode do that cannot use the addresses that they have.
fn ask(server: &Server, client: &str) -> (u16, String) {
    let date = now();
    let token = sign("GET", "/dbs", &date, KEY);
    let headers = [
        ("x-ms-date", date.as_str()),
        ("authorization", token.as_str()),
        ("x-ms-client-id", client),
        ("x-ms-force-refresh", "true"),
    ];
    server.exchange("GET", "//addresses/?$resolveFor=dbs&$filter=protocol%20eq%20rntbd", &headers, "")
}

#[track_caller]
fn is_told(server: &Server, client: &str) {
    let (status, text) = ask(server, client);
    assert!(status == 200 && text.contains("rntbd://"), "{status}: {text}");
}

#[track_caller]
fn is_refused(server: &Server, client: &str) {
    let (status, text) = ask(server, client);
    assert_eq!(status, 400, "{text}");
    assert!(text.contains("certificate") && text.contains("bolide cert"), "{text}");
}

/// Waits until the server has noticed the ends of all connections but those in direct mode.
#[track_caller]
fn wait_for_ends(server: &Server) {
    let are_seen = || {
        let (_, page) = server.admin("GET", "/metrics", "");
        let value = |name: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(name)).expect("the metric");
            line.trim().parse::<u64>().expect("a number")
        };
        // The connection of this request is one more.
        value("bolide_connections_open{api=\"nosql\"}") == value("bolide_direct_connections_open ") + 1
    };
    assert!((0..TRIES).any(|_| are_seen()), "there are connections still");
}

/// Returns the TLS settings of a client that trusts the server's root or nothing.
fn tls(trusted: Option<&[u8]>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if let Some(root) = trusted {
        roots.add(CertificateDer::from_pem_slice(root).unwrap()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

/// Connects, makes a handshake and ends the connection without a byte; returns whether the certificate was trusted.
fn shake_hands(server: &Server, config: &Arc<ClientConfig>) -> bool {
    let mut socket = TcpStream::connect(&server.address).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    while connection.is_handshaking() {
        if connection.complete_io(&mut socket).is_err() {
            return false;
        }
    }
    true
}

#[test]
fn health_checks_beside_a_trusting_client_get_it_no_refusal_over_kills() {
    let data = tempfile::tempdir().unwrap();
    for _ in 0..=KILLS {
        let server = Server::in_directory(data.path(), &[]);
        let config = tls(Some(&root(data.path())));
        let check_health = || (0..4).for_each(|_| assert!(shake_hands(&server, &config)));
        // They reach the server before the client is back.
        check_health();
        wait_for_ends(&server);
        is_told(&server, "trusting");
        let mut client = connect(&server, data.path());
        for _ in 0..3 {
            check_health();
            wait_for_ends(&server);
            assert_eq!(read(&mut client).unwrap(), 404);
            is_told(&server, "trusting");
        }
        server.kill();
        assert!(read(&mut client).is_err());
    }
}

#[test]
fn of_two_clients_behind_one_address_the_trusting_one_is_not_refused_over_kills() {
    let data = tempfile::tempdir().unwrap();
    let trusts_nothing = tls(None);
    for _ in 0..=KILLS {
        let server = Server::in_directory(data.path(), &[]);
        // Both ask, and only the second does not trust the certificate.
        is_told(&server, "trusting");
        is_told(&server, "other");
        let distrust = || {
            (0..3).for_each(|_| assert!(!shake_hands(&server, &trusts_nothing)));
            wait_for_ends(&server);
        };
        distrust();
        is_refused(&server, "other");
        let mut client = connect(&server, data.path());
        for _ in 0..3 {
            distrust();
            is_told(&server, "trusting");
            assert_eq!(read(&mut client).unwrap(), 404);
        }
        server.kill();
    }
}

#[test]
fn a_client_that_does_not_trust_the_certificate_is_told_so_after_a_kill_as_well() {
    let data = tempfile::tempdir().unwrap();
    let trusts_nothing = tls(None);
    for _ in 0..=KILLS {
        let server = Server::in_directory(data.path(), &[]);
        is_told(&server, "client");
        (0..3).for_each(|_| assert!(!shake_hands(&server, &trusts_nothing)));
        wait_for_ends(&server);
        is_told(&server, "one that comes now");
        is_refused(&server, "client");
        server.kill();
    }
}

#[test]
fn status_shows_the_connections_by_protocol() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::in_directory(data.path(), &[]);
    let mut clients: Vec<Blocking> = (0..2).map(|_| connect(&server, data.path())).collect();
    for client in &mut clients {
        assert_eq!(read(client).unwrap(), 404);
    }
    let address = server.mongo.as_ref().unwrap().strip_prefix("mongodb://").unwrap().to_owned();
    let mongo = TcpStream::connect(address.split('/').next().unwrap()).unwrap();
    // The tool's own connection is the one by HTTP; earlier ones end later.
    let shows = |part: &str| {
        let mut shown = String::new();
        let found = (0..TRIES).any(|_| {
            shown = succeed(&server, &["status"]);
            shown.contains(part)
        });
        assert!(found, "{part:?} in {shown}");
    };
    shows("\nconnections 1 HTTP, 2 in direct mode, 1 MongoDB\n");
    let json = succeed(&server, &["status", "--json"]);
    assert!(json.contains(r#""direct":2,"mongodb":1"#), "{json}");
    drop(mongo);
    clients.pop();
    shows("\nconnections 1 HTTP, 1 in direct mode, 0 MongoDB\n");
}
