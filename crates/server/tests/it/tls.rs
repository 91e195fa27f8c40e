//! TLS of the real process, looked at with OpenSSL, which trusts our root and nothing else.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::process::{Server, run};

fn mongo_address(server: &Server) -> String {
    let printed = server.mongo.clone().unwrap();
    printed.strip_prefix("mongodb://").unwrap().split('/').next().unwrap().to_owned()
}

/// The name that this machine has for itself.
fn machine() -> String {
    let output = Command::new("uname").arg("--nodename").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn root(data: &Path) -> String {
    data.join("tls/root.pem").to_str().unwrap().to_owned()
}

/// A handshake, and what the server says to what is sent then.
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
fn whoever_trusts_only_our_root_connects_on_both_ports() {
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
fn a_stranger_to_the_root_does_not_connect() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::in_directory(ours.path(), &[]);
    let other = Server::in_directory(theirs.path(), &[]);
    for address in [server.address.clone(), mongo_address(&server)] {
        let refused = openssl(&address, &root(theirs.path()), &[]);
        assert!(!refused.status.success() && text(&refused).contains("verify error"), "{}", text(&refused));
    }
    drop((server, other));
}

/// The root survives restarts and new names, and is what a running server hands out.
#[test]
fn the_root_stays_and_everybody_may_have_it() {
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
    assert!(!data.path().join("tls").exists(), "nothing is made that nobody needs");
    assert_eq!(server.open("/_explorer/emulator.pem").1, std::fs::read_to_string(path("root.pem")).unwrap());
}

/// As a renewal by the operator's tools goes: new files, then a signal.
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
