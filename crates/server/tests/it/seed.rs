//! Data that is created at the start.

use std::fs;
use std::path::Path;

use crate::process::{Server, command};

/// The example of the documentation.
fn documented() -> String {
    let page = include_str!("../../../../docs/configuration.md");
    let (_, after) = page.split_once("```json\n").unwrap();
    after.split_once("```").unwrap().0.to_owned()
}

fn write(directory: &Path, text: &str) -> String {
    let path = directory.join("seed.json");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn item(server: &Server, customer: &str, id: &str) -> (u16, String) {
    let key = format!("[\"{customer}\"]");
    let path = format!("/dbs/shop/colls/carts/docs/{id}");
    server.request("GET", &path, &[("x-ms-documentdb-partitionkey", &key)], "")
}

#[test]
fn the_documented_seed_makes_what_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let seed = write(directory.path(), &documented());
    let server = Server::start(&["--memory", "--test-clock", "--stopped-clock", "--seed", &seed]);
    let (status, container) = server.get("/dbs/shop/colls/carts");
    assert_eq!(status, 200);
    assert!(container.contains("\"defaultTtl\":1200"), "{container}");
    let (status, found) = item(&server, "ada", "1");
    assert!(status == 200 && found.contains("[\"tea\",\"milk\"]"), "{found}");
    let (status, offers) = server.get("/offers");
    assert!(status == 200 && offers.contains("\"offerThroughput\":1000"), "{offers}");
    let (status, sessions) = server.admin("GET", "/_bolide/ttl/app/sessions?api=mongodb", "");
    assert!(status == 200 && sessions.contains("1800") && sessions.contains("\"items\":1"), "{sessions}");
    assert_eq!(server.admin("POST", "/_bolide/clock", "{\"advanceSeconds\":61}").0, 200);
    assert_eq!((item(&server, "ada", "1").0, item(&server, "bob", "2").0), (200, 404));
}

#[test]
fn t13_a_second_start_leaves_alone_what_exists_and_revives_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let seed = write(directory.path(), &documented());
    let data = directory.path().join("data");
    let arguments = ["--test-clock", "--stopped-clock", "--seed", &seed];
    let server = Server::in_directory(&data, &arguments);
    assert_eq!(server.admin("POST", "/_bolide/clock", "{\"advanceSeconds\":61}").0, 200);
    let key = [("x-ms-documentdb-partitionkey", "[\"ada\"]")];
    assert_eq!(server.request("DELETE", "/dbs/shop/colls/carts/docs/1", &key, "").0, 204);
    assert_eq!(server.terminate(), Some(0));
    // A container that did not exist before is created beside the others.
    let more = documented().replacen(
        "\"containers\": [",
        "\"containers\": [{ \"id\": \"late\", \"partitionKey\": { \"paths\": [\"/id\"] } },",
        1,
    );
    write(directory.path(), &more);
    let log = fs::File::create(directory.path().join("log")).unwrap();
    let server = Server::start_command(
        command()
            .args(["--listen", "127.0.0.1:0", "--log", "info", "--data", data.to_str().unwrap()])
            .args(arguments)
            .stderr(log),
    );
    assert_eq!((item(&server, "ada", "1").0, item(&server, "bob", "2").0), (404, 404));
    assert_eq!(server.get("/dbs/shop/colls/late").0, 200);
    let log = fs::read_to_string(directory.path().join("log")).unwrap();
    let line = "seed: created: container 'shop/late', with 0 items; left alone because it exists: database 'shop', \
                container 'shop/carts', collection 'app.sessions'";
    assert!(log.contains(line), "{log}");
}

#[test]
fn a_wrong_seed_is_told_with_its_place_and_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    for (from, to, complaint) in [
        ("\"ttl\": 60", "\"ttl\": 0", "$.databases[0].containers[0].items[1]: the input ttl '0' is invalid"),
        ("\"id\": \"2\", \"customer\": \"bob\"", "\"id\": \"1\", \"customer\": \"ada\"", "items[1]: "),
        ("\"throughput\": 1000", "\"throughput\": 10", "$.databases[0].containers[0].throughput: "),
        ("\"id\": \"shop\"", "\"id\": \"a/b\"", "$.databases[0]: "),
        ("\"expireAfterSeconds\": 1800", "\"expireAfterSeconds\": -1", "collections[0].indexes[0]: "),
        ("{ \"_id\": 7,", "{ \"_id\": 1 }, { \"_id\": 1 }, { \"_id\": 7,", "collections[0].documents[1]: "),
        ("\"name\": \"sessions\"", "\"name\": \"system.users\"", "$.mongoDatabases[0].collections[0]: "),
        ("\"databases\"", "\"database\"", "'database' is not known here"),
    ] {
        let text = documented();
        assert!(text.contains(from), "{from}");
        let seed = write(directory.path(), &text.replacen(from, to, 1));
        let output = command()
            .args(["--listen", "127.0.0.1:0", "--seed", &seed, "--data", data.to_str().unwrap()])
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{to}");
        assert!(message.contains(complaint) && message.contains(&seed), "{to}: {message}");
        assert!(!data.exists(), "{to}: something was written");
    }
}

#[test]
fn t13_a_reset_empties_the_store_and_makes_the_seed_again() {
    let directory = tempfile::tempdir().unwrap();
    let seed = write(directory.path(), &documented());
    let data = directory.path().join("data");
    let server = Server::in_directory(&data, &["--allow-reset", "--seed", &seed]);
    server.create_container("");
    assert_eq!(server.create("1"), 201);
    let key = [("x-ms-documentdb-partitionkey", "[\"ada\"]")];
    assert_eq!(server.request("DELETE", "/dbs/shop/colls/carts/docs/1", &key, "").0, 204);
    let (status, answer) = server.admin("POST", "/_bolide/reset", "");
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        answer,
        "{\"databases\":3,\"seed\":{\"made\":[\"database 'shop'\",\"container 'shop/carts'\",\
         \"collection 'app.sessions'\"],\"items\":3}}"
    );
    assert_eq!((server.get("/dbs/db").0, item(&server, "ada", "1").0), (404, 200));
    server.kill();
    let server = Server::in_directory(&data, &["--seed", &seed]);
    assert_eq!((server.get("/dbs/db").0, item(&server, "ada", "1").0), (404, 200));
    let (status, answer) = server.admin("POST", "/_bolide/reset", "");
    assert!(status == 403 && answer.contains("--allow-reset"), "{answer}");
    drop(server);
    let server = Server::start(&["--memory", "--test-clock", "--stopped-clock"]);
    assert_eq!(
        server.admin("POST", "/_bolide/reset", ""),
        (200, "{\"databases\":0,\"seed\":null}".to_owned())
    );
}
