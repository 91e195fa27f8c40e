//! The explorer on the port of the NoSQL API.

use std::io::{Read, Write};
use std::net::TcpStream;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::process::{KEY, Server};

/// A signed-in browser.
struct Browser<'a> {
    server: &'a Server,
    cookie: String,
}

impl Browser<'_> {
    fn sign_in(server: &Server) -> Browser<'_> {
        let unauthenticated = Browser { server, cookie: String::new() };
        let csrf = unauthenticated.hidden("sign-in", "csrf");
        let answer = unauthenticated.ask(
            "POST",
            "sign-in",
            &[("csrf", csrf.as_deref().unwrap_or_default()), ("key", KEY)],
        );
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|line| line.split(';').next());
        let cookie = cookie.unwrap_or_else(|| panic!("no session: {answer}")).to_owned();
        Browser { server, cookie }
    }

    /// The whole answer, head included.
    fn ask(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> String {
        let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let body: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let (body, address) = (body.join("&"), &self.server.address);
        let head = format!(
            "{method} /_explorer/{path} HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\ncookie: {}\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.cookie,
            body.len()
        );
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(&self, path: &str) -> String {
        self.ask("GET", path, &[])
    }

    /// Returns the value of a page's hidden field.
    fn hidden(&self, path: &str, name: &str) -> Option<String> {
        hidden(&self.get(path), name)
    }

    /// Sends a form with the secret of this session.
    fn send(&self, path: &str, fields: &[(&str, &str)]) -> String {
        let csrf = self.hidden("help", "csrf").expect("a secret");
        self.ask("POST", path, &[&[("csrf", csrf.as_str())], fields].concat())
    }
}

fn hidden(page: &str, name: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\""))?;
    Some(rest.split('"').next()?.replace("&quot;", "\"").replace("&amp;", "&"))
}

/// Documents and users of the MongoDB API, which the explorer has only in a whole server.
#[test]
fn deleting_a_document_and_removing_a_user_of_the_mongodb_api_ask_first() {
    let server = Server::start(&["--memory"]);
    server.run_mongo(r#"{"insert": "people", "documents": [{"_id": "mia"}], "$db": "app"}"#);
    server.run_mongo(
        r#"{"createUser": "ben", "pwd": "long enough", "roles": [{"role": "read", "db": "app"}], "$db": "app"}"#,
    );
    let browser = Browser::sign_in(&server);
    let list = browser.get("c/mongodb/app/people");
    let (_, rest) = list.split_once("people/item/").unwrap_or_else(|| panic!("no link in {list}"));
    let item = format!("c/mongodb/app/people/item/{}", rest.split('"').next().unwrap());
    let (delete, version) = (format!("{item}/delete"), browser.hidden(&item, "version").unwrap());
    let drop = [("do", "drop-mongodb"), ("user", "ben"), ("database", "app")];
    for (path, form, effect, page, text) in [
        (
            delete.as_str(),
            &[("version", version.as_str())][..],
            "1 item (",
            "c/mongodb/app/people",
            item.as_str(),
        ),
        ("users", &drop, "The user and its 1 role are removed.", "users", "<td>ben</td>"),
    ] {
        let asked = browser.send(path, form);
        assert!(asked.starts_with("HTTP/1.1 200") && asked.contains(effect), "{asked}");
        assert!(asked.contains("This cannot be undone."), "{asked}");
        assert!(browser.get(page).contains(text), "nothing was done");
        let number = hidden(&asked, "confirmed").unwrap();
        let done = browser.send(path, &[form, &[("confirmed", number.as_str())]].concat());
        assert!(done.starts_with("HTTP/1.1 303"), "{done}");
        let after = browser.get(page);
        assert!(!after.contains(text), "{after}");
    }
    let gone = browser.send("users", &drop);
    assert!(gone.starts_with("HTTP/1.1 404"), "{gone}");
    server.terminate();
}

#[test]
fn the_explorer_is_there_unless_it_is_off() {
    let server = Server::start(&["--memory"]);
    assert_eq!(server.explorer, Some(format!("http://{}/_explorer/", server.address)));
    let (status, page) = server.open("/_explorer/sign-in");
    assert_eq!(status, 200);
    assert!(page.contains("Account key"), "{page}");
    assert_eq!(server.open("/_explorer").0, 308);
    assert_eq!(server.open("/_explorer/clock").0, 303, "not signed in");
    assert_eq!(server.open("/_explorer/script.js").0, 200);
    let (status, certificate) = server.open("/_explorer/emulator.pem");
    assert_eq!(status, 200);
    assert!(certificate.contains("BEGIN CERTIFICATE"), "the root is no page, and needs no key");
    server.terminate();

    let server = Server::start(&["--memory", "--explorer", "off"]);
    assert_eq!(server.explorer, None, "what is off is not announced");
    assert_ne!(server.open("/_explorer/sign-in").0, 200);
    assert_eq!(server.open("/_explorer/emulator.pem").0, 200);
    server.terminate();
}
