//! The explorer on the port of the NoSQL API.

use crate::process::Server;

#[test]
fn the_explorer_is_there_unless_it_is_off() {
    let server = Server::start(&["--memory"]);
    assert_eq!(server.explorer, Some(format!("http://{}/_explorer/", server.address)));
    let (status, page) = server.open("/_explorer/sign-in");
    assert_eq!(status, 200);
    assert!(page.contains("Account key"), "{page}");
    assert_eq!(server.open("/_explorer").0, 308);
    assert_eq!(server.open("/_explorer/clock").0, 303, "nobody has signed in");
    assert_eq!(server.open("/_explorer/script.js").0, 200);
    let (status, certificate) = server.open("/_explorer/emulator.pem");
    assert_eq!(status, 200);
    assert!(certificate.contains("BEGIN CERTIFICATE"), "the root is no page, and open to everybody");
    server.terminate();

    let server = Server::start(&["--memory", "--explorer", "off"]);
    assert_eq!(server.explorer, None, "what is off is not announced");
    assert_ne!(server.open("/_explorer/sign-in").0, 200);
    assert_eq!(server.open("/_explorer/emulator.pem").0, 200);
    server.terminate();
}
