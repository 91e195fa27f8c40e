//! TLS of the real process, tested with OpenSSL, which trusts our root and nothing else; and with rustls under load.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::Document;
use direct::{Account, Answers, Call, Session};
use rntbd::OperationType;
use rustls::client::Resumption;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::mongo_client::{MongoClient, is_ok};
use crate::process::{KEY, Server, now, run};

fn mongo_address(server: &Server) -> String {
    let printed = server.mongo.clone().unwrap();
    printed.strip_prefix("mongodb://").unwrap().split('/').next().unwrap().to_owned()
}

/// Returns this machine's own host name.
fn machine() -> String {
    let output = Command::new("uname").arg("--nodename").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn root(data: &Path) -> String {
    data.join("tls/root.pem").to_str().unwrap().to_owned()
}

/// Performs a handshake, and returns the server's answer to the bytes sent then.
fn openssl(address: &str, root: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", address, "-no-CAfile", "-no-CApath", "-no-CAstore"]);
    command.args(["-CAfile", root, "-verify_return_error"]).args(arguments);
    command.stdin(Stdio::null()).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[track_caller]
fn accepted(output: &Output) -> String {
    let text = text(output);
    assert!(output.status.success() && text.contains("Verification: OK"), "{text}");
    text
}

#[test]
fn a_client_that_trusts_only_our_root_connects_on_both_ports() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::in_directory(data.path(), &["--tls-name", "db.example.org,192.0.2.1"]);
    let (root, machine) = (root(data.path()), machine());
    for address in [server.address.clone(), mongo_address(&server)] {
        for version in ["-tls1_2", "-tls1_3"] {
            for name in ["localhost", "db.example.org", &machine] {
                let arguments = [version, "-servername", name, "-verify_hostname", name];
                accepted(&openssl(&address, &root, &arguments));
            }
            for ip in ["127.0.0.1", "::1", "192.0.2.1"] {
                accepted(&openssl(&address, &root, &[version, "-verify_ip", ip]));
            }
        }
        let wrong = openssl(&address, &root, &["-verify_hostname", "elsewhere.org"]);
        assert!(!wrong.status.success() && text(&wrong).contains("hostname mismatch"), "{}", text(&wrong));
        let old = openssl(&address, &root, &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]);
        assert!(!old.status.success(), "{}", text(&old));
    }
    for (offered, agreed) in [("h2,http/1.1", "h2"), ("http/1.1", "http/1.1")] {
        let text = accepted(&openssl(&server.address, &root, &["-alpn", offered]));
        assert!(text.contains(&format!("ALPN protocol: {agreed}\n")), "{text}");
    }
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_client_that_does_not_trust_the_root_does_not_connect() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::in_directory(ours.path(), &[]);
    let other = Server::in_directory(theirs.path(), &[]);
    for address in [server.address.clone(), mongo_address(&server)] {
        let refused = openssl(&address, &root(theirs.path()), &[]);
        assert!(!refused.status.success() && text(&refused).contains("verify error"), "{}", text(&refused));
    }
    drop((server, other));
}

/// The root survives restarts and new names, and a running server provides it.
#[test]
fn the_root_stays_and_is_public() {
    let data = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read_to_string(data.path().join("tls").join(name)).unwrap();
    let server = Server::in_directory(data.path(), &[]);
    let (first, certificate) = (read("root.pem"), read("certificate.pem"));
    assert_eq!(server.terminate(), Some(0));
    let server = Server::in_directory(data.path(), &["--tls-name", "later.example.org"]);
    assert_eq!(read("root.pem"), first);
    assert_ne!(read("certificate.pem"), certificate);
    accepted(&openssl(&server.address, &root(data.path()), &["-verify_hostname", "later.example.org"]));
    let (status, body) = server.open("/_explorer/emulator.pem");
    assert_eq!((status, body.as_str()), (200, first.as_str()));
    assert_eq!(server.terminate(), Some(0));
    let directory = data.path().to_str().unwrap();
    let printed = run(&["cert", "--data", directory, "--pem"]);
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), first);
    let told = String::from_utf8(run(&["cert", "--data", directory]).stdout).unwrap();
    assert!(told.contains(&root(data.path())) && told.contains("update-ca-certificates"), "{told}");
    let none = run(&["cert", "--data", &format!("{directory}/none")]);
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("the first start"), "{none:?}");
}

#[test]
fn a_certificate_of_the_operators_is_served() {
    let (made, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    Server::in_directory(made.path(), &["--tls-name", "own.example.org"]).terminate();
    let path = |name: &str| made.path().join("tls").join(name).to_str().unwrap().to_owned();
    let given = ["--tls-cert", &path("certificate.pem"), "--tls-key", &path("key.pem")];
    let server = Server::in_directory(data.path(), &given);
    for address in [server.address.clone(), mongo_address(&server)] {
        accepted(&openssl(&address, &root(made.path()), &["-verify_hostname", "own.example.org"]));
    }
    assert!(!data.path().join("tls").exists(), "no unused files are created");
    assert_eq!(server.open("/_explorer/emulator.pem").1, std::fs::read_to_string(path("root.pem")).unwrap());
}

/// As the operator's tools renew it: new files, then a signal.
#[test]
fn a_new_certificate_is_served_without_a_restart() {
    let [first, second, data] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    for made in [&first, &second] {
        Server::in_directory(made.path(), &[]).terminate();
    }
    let file = |made: &tempfile::TempDir, name: &str| made.path().join("tls").join(name);
    let shown = |name: &str| file(&first, name).to_str().unwrap().to_owned();
    let given = ["--tls-cert", &shown("certificate.pem"), "--tls-key", &shown("key.pem")];
    let server = Server::in_directory(data.path(), &given);
    accepted(&openssl(&server.address, &root(first.path()), &[]));
    for name in ["certificate.pem", "key.pem"] {
        std::fs::copy(file(&second, name), file(&first, name)).unwrap();
    }
    server.signal("HUP");
    for address in [server.address.clone(), mongo_address(&server)] {
        let mut attempts = (0..1000).map(|_| openssl(&address, &root(second.path()), &[]));
        assert!(attempts.any(|answer| answer.status.success()), "the new certificate is served on {address}");
    }
    assert_eq!(server.terminate(), Some(0));
}

/// The first certificate of a file.
fn certificate(path: &Path) -> CertificateDer<'static> {
    let text = std::fs::read_to_string(path).unwrap();
    let body = text.split("-----BEGIN CERTIFICATE-----").nth(1).unwrap().split("-----END").next().unwrap();
    STANDARD.decode(body.split_whitespace().collect::<String>()).unwrap().into()
}

/// How often a test checks for something that the server does in the background; a check takes a millisecond or more.
const TRIES: u32 = 30_000;

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A client that trusts these roots and remembers no session.
fn client(roots: &[&Path]) -> Arc<ClientConfig> {
    let mut trusted = RootCertStore::empty();
    for data in roots {
        trusted.add(certificate(&data.join("tls/root.pem"))).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(trusted).with_no_client_auth();
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

fn connect(address: &str, client: &Arc<ClientConfig>) -> Tls {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::clone(client), name).unwrap();
    StreamOwned::new(connection, TcpStream::connect(address).unwrap())
}

/// Opens a connection of a protocol and returns a function that sends a request on it, and fails unless it is answered.
type Open = fn(&Server, &Arc<ClientConfig>) -> Box<dyn FnMut()>;

/// One for each protocol.
const OPEN: [Open; 3] = [open_http, open_direct, open_mongo];

fn open_http(server: &Server, client: &Arc<ClientConfig>) -> Box<dyn FnMut()> {
    let mut tls = connect(&server.address, client);
    Box::new(move || ask(&mut tls))
}

fn open_mongo(server: &Server, client: &Arc<ClientConfig>) -> Box<dyn FnMut()> {
    let mut client = MongoClient::over(connect(&mongo_address(server), client));
    Box::new(move || {
        let answer = client.run("admin", Document::new().with("hello", 1));
        assert!(is_ok(&answer), "{answer:?}");
    })
}

fn open_direct(server: &Server, client: &Arc<ClientConfig>) -> Box<dyn FnMut()> {
    let mut tls = connect(&server.address, client);
    let mut session = Session::new(Account { key: KEY.to_owned(), date: now() });
    let mut answers = Answers::default();
    tls.write_all(&session.context().unwrap()).unwrap();
    await_answer(&mut tls, &mut answers, Answers::greeting);
    Box::new(move || {
        let (_, bytes) = session.request(&Call::new(OperationType::Read, "dbs/none")).unwrap();
        tls.write_all(&bytes).unwrap();
        let _ = await_answer(&mut tls, &mut answers, Answers::reply).expect_status(404);
    })
}

/// Reads until there is an answer.
fn await_answer<T>(
    tls: &mut Tls,
    answers: &mut Answers,
    take: fn(&mut Answers) -> std::io::Result<Option<T>>,
) -> T {
    let mut piece = [0; 1024];
    loop {
        if let Some(answer) = take(answers).unwrap() {
            return answer;
        }
        let count = tls.read(&mut piece).unwrap();
        assert_ne!(count, 0, "the connection ended");
        answers.push(&piece[..count]);
    }
}

/// Checks that the server is alive.
fn ask(tls: &mut Tls) {
    tls.write_all(b"GET /alive HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"{\"alive\":true}") {
        let mut piece = [0; 1024];
        let count = tls.read(&mut piece).unwrap();
        assert_ne!(count, 0, "the connection ended: {}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&piece[..count]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200"));
}

/// New and kept connections, while certificates change again and again: every request is answered.
#[test]
fn certificates_are_renewed_under_load_and_no_request_fails() {
    let [first, second, used, data] = [(); 4].map(|()| tempfile::tempdir().unwrap());
    for made in [&first, &second] {
        Server::in_directory(made.path(), &[]).terminate();
    }
    let file = |made: &tempfile::TempDir, name: &str| made.path().join("tls").join(name);
    let serve = |made: &tempfile::TempDir| {
        for name in ["certificate.pem", "key.pem"] {
            std::fs::copy(file(made, name), used.path().join(name)).unwrap();
        }
    };
    serve(&first);
    let [cert, key] = ["certificate.pem", "key.pem"].map(|name| used.path().join(name).display().to_string());
    let server = Server::in_directory(data.path(), &["--tls-cert", &cert, "--tls-key", &key]);
    let client = client(&[first.path(), second.path()]);
    let stop = AtomicBool::new(false);
    let [stayed, came] = [(); 2].map(|()| OPEN.map(|_| AtomicU64::new(0)));
    let figures =
        || [&stayed, &came].map(|each| each.each_ref().map(|figure| figure.load(Ordering::Relaxed)));
    std::thread::scope(|scope| {
        for ((open, stayed), came) in OPEN.iter().zip(&stayed).zip(&came) {
            scope.spawn(|| {
                let mut asking = open(&server, &client);
                while !stop.load(Ordering::Relaxed) {
                    asking();
                    stayed.fetch_add(1, Ordering::Relaxed);
                }
            });
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    open(&server, &client)();
                    came.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let shown = || {
            let mut tls = connect(&server.address, &client);
            ask(&mut tls);
            tls.conn.peer_certificates().unwrap()[0].clone()
        };
        let mut is_renewed = true;
        for round in 0..6 {
            let made = if round % 2 == 0 { &second } else { &first };
            let (wanted, before) = (certificate(&file(made, "certificate.pem")), figures());
            serve(made);
            server.signal("HUP");
            is_renewed &= (0..TRIES).any(|_| shown() == wanted);
            // Both kinds of clients continue with it, by all protocols.
            let goes_on = || {
                figures().as_flattened().iter().zip(before.as_flattened()).all(|(now, before)| now > before)
            };
            is_renewed &= (0..TRIES).any(|_| shown() == wanted && goes_on());
        }
        stop.store(true, Ordering::Relaxed);
        assert!(is_renewed, "{:?}", figures());
    });
    assert_eq!(server.terminate(), Some(0));
}
