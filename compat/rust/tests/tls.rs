//! TLS with a client that trusts our root and no other.

use std::fs;
use std::process::{Command, Output};

use bolide_compat::Server;

/// Runs the client with what that file holds as its only roots.
fn client(server: &Server, host: &str, roots: &str) -> Output {
    let name = format!("bolide-roots-{}-{host}.pem", std::process::id());
    let file = std::env::temp_dir().join(name);
    fs::write(&file, roots).expect("written");
    let port = server.http_address().rsplit(':').next().expect("a port");
    let output = Command::new(env!("CARGO_BIN_EXE_tls_client"))
        .arg(format!("https://{host}:{port}/"))
        .env("SSL_CERT_FILE", &file)
        .env_remove("SSL_CERT_DIR")
        .output()
        .expect("the client runs");
    fs::remove_file(&file).expect("removed");
    output
}

#[test]
fn a_client_that_trusts_our_root_connects_and_no_other_does() {
    let (ours, theirs) = (Server::start(), Server::start());
    let good = client(&ours, "localhost", &ours.root_certificate());
    assert!(good.status.success(), "{}", String::from_utf8_lossy(&good.stderr));
    assert_eq!(String::from_utf8_lossy(&good.stdout).trim(), "\"1\"");
    let bad = client(&ours, "localhost", &theirs.root_certificate());
    let told = String::from_utf8_lossy(&bad.stderr).into_owned();
    assert!(!bad.status.success(), "another server's root must not do");
    assert!(told.contains("UnknownIssuer"), "{told}");
}
