//! `bolide export` and `bolide import` through the real binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{Server, command};
use crate::tools::{succeed, tool};

/// Items that change if a number, a text or an order is not preserved.
const ITEMS: [&str; 4] = [
    r#"{"z":9223372036854775807,"id":"1","pk":"a","a":-9223372036854775808,"half":0.1,"neg":-0.0,"big":1e+300}"#,
    r#"{"id":"2","pk":"a","text":"é \u0000 \"\\ 漢字 😀","empty":{},"list":[[],null,true,{"ttl":1}]}"#,
    r#"{"id":"3","pk":"b","ttl":1000,"whole":1.0,"int":1}"#,
    r#"{"pk":null,"id":"4"}"#,
];

fn server() -> Server {
    let server = Server::start(&["--memory", "--test-clock", "--stopped-clock"]);
    server.create_container(",\"defaultTtl\":-1");
    server
}

/// A server whose container has a unique key on the mail address.
fn strict_server() -> Server {
    let server = Server::start(&["--memory"]);
    server.create_container(
        ",\"defaultTtl\":-1,\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/mail\"]}]}",
    );
    server
}

fn fill(server: &Server) {
    let (status, text) = server.admin("POST", "/_bolide/import/db/c", &ITEMS.join("\n"));
    assert!(status == 200 && text.contains("\"created\":4"), "{text}");
}

fn lines(path: &Path) -> Vec<String> {
    let mut lines: Vec<String> = fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn sorted(items: &[&str]) -> Vec<String> {
    let mut items: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
    items.sort();
    items
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn containers_round_trip_through_every_form_of_file() {
    let server = server();
    fill(&server);
    let directory = tempfile::tempdir().unwrap();
    for (format, more, name) in [
        ("jsonl", &[][..], "c.jsonl"),
        ("json", &[], "c.json"),
        ("jsonl", &["--gzip"], "c.jsonl.gz"),
        ("json", &["--gzip", "--system"], "c.json.gz"),
    ] {
        let dir = directory.path().join(format!("{format}{}", more.len()));
        succeed(&server, &[&["export", "--dir", text(&dir), "--format", format], more].concat());
        assert!(dir.join("db").join(name).exists() && dir.join("db/c.container.json").exists());
        let other = Server::start(&["--memory"]);
        succeed(&other, &["import", "--dir", text(&dir)]);
        let again = directory.path().join("again.jsonl");
        succeed(&other, &["export", "db/c", "--file", text(&again), "--overwrite"]);
        assert_eq!(lines(&again), sorted(&ITEMS), "{format} {more:?}");
        let (_, defined) = server.admin("GET", "/_bolide/container/db/c", "");
        assert_eq!(other.admin("GET", "/_bolide/container/db/c", "").1, defined);
    }
    let printed = succeed(&server, &["export", "db/c", "--file", "-"]);
    assert!(ITEMS.iter().all(|item| printed.contains(item)), "{printed}");
}

#[test]
fn expired_items_are_not_exported_and_countdowns_begin_with_the_import_t14() {
    let server = server();
    fill(&server);
    assert_eq!(server.admin("POST", "/_bolide/clock", "{\"advanceSeconds\":1000}").0, 200);
    let file = tempfile::tempdir().unwrap().keep().join("c.jsonl");
    succeed(&server, &["export", "db/c", "--file", text(&file)]);
    assert_eq!(lines(&file), sorted(&[ITEMS[0], ITEMS[1], ITEMS[3]]));
    fs::write(&file, format!("{}\n", ITEMS[2])).unwrap();
    succeed(&server, &["import", "db/c", "--file", text(&file)]);
    let forecast =
        succeed(&server, &["ttl", "forecast", "db/c", "--by", "minute", "--count", "20", "--json"]);
    assert!(
        forecast.contains("\"later\":{\"items\":0,"),
        "it expires within the next twenty minutes: {forecast}"
    );
    fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

#[test]
fn broken_items_are_told_by_line_and_column() {
    let server = strict_server();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.jsonl");
    let import = |more: &[&str]| tool(&server, &[&["import", "db/c", "--file", text(&file)], more].concat());
    let body = "{\"id\":\"1\",\"pk\":\"a\",\"mail\":\"x\"}\n\n{\"id\":\"2\", tru}\n{\"id\":\"3\",\"pk\":\"a\",\"mail\":\"x\"}\n{\"id\":\"4\",\"pk\":\"a\"}\n";
    fs::write(&file, body).unwrap();
    let (code, told) = import(&["--continue-on-error"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("line 3 column 12: this is not JSON"), "{told}");
    assert!(told.contains("line 4 column 1: ") && told.contains("/mail"), "{told}");
    assert!(told.contains("2 items written, 2 refused"), "{told}");
    let (code, told) = import(&[]);
    assert!(code == Some(2) && told.contains("--continue-on-error"), "{told}");
    let file_of = |name: &str, body: &str| {
        let file = directory.path().join(name);
        fs::write(&file, body).unwrap();
        tool(&server, &["import", "db/c", "--file", text(&file), "--continue-on-error"])
    };
    let (code, told) = file_of(
        "x.json",
        "[\n {\"id\":\"7\",\"pk\":\"a\",\"mail\":\"7\"},\n {\"id\":\"8\",\n  \"pk\": nul}\n]",
    );
    assert!(code == Some(1) && told.contains("line 4 column 1"), "{told}");
    let (code, told) = file_of("y.json", "[{\"id\":\"9\",\"pk\":\"a\",\"mail\":\"9\"},\n{\"id\":\"10\"");
    assert!(code == Some(2) && told.contains("line 2 column 11: the file ends within an item"), "{told}");
    assert_eq!((server.read("7"), server.read("9")), (200, 200), "what stands before the break is written");
    let (code, told) = tool(&server, &["import", "db/nowhere", "--file", text(&file)]);
    assert!(code == Some(2) && told.contains("--partition-key"), "{told}");
    let key = ["import", "new/one", "--file", text(&file), "--partition-key", "/pk", "--continue-on-error"];
    assert_eq!(tool(&server, &key).0, Some(1));
    let (code, told) =
        tool(&server, &["import", "new/one", "--file", text(&file), "--partition-key", "/other"]);
    assert!(code == Some(2) && told.contains("another partition key"), "{told}");
}

#[test]
fn what_is_refused_by_a_hold_is_told_t31() {
    let server = server();
    fill(&server);
    succeed(&server, &["ttl", "hold", "place", "db/c", "--reason", "case 7"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.jsonl");
    fs::write(&file, ITEMS[0].replace("0.1", "0.2")).unwrap();
    let (code, told) = tool(&server, &["import", "db/c", "--file", text(&file)]);
    assert!(code == Some(2) && told.contains("case 7"), "{told}");
}

/// Starts a tool and kills it once its progress file says that it is in the middle. If the tool finishes first, starts it
/// again.
fn kill_in_the_middle(server: &Server, arguments: &[&str], note: &Path, is_middle: fn(&str) -> bool) {
    let url = format!("http://{}", server.address);
    for _ in 0..100 {
        let mut tool: Command = command();
        let mut child = tool.args(arguments).args(["--url", &url]).stderr(Stdio::null()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() {
            if is_middle(&fs::read_to_string(note).unwrap_or_default()) {
                child.kill().unwrap();
            }
            std::thread::yield_now();
        }
        if note.exists() {
            return;
        }
    }
    panic!("it is always faster than we are");
}

/// Creates a file of many items, in several pages.
fn many(directory: &Path, items: usize) -> PathBuf {
    let file = directory.join("many.jsonl");
    let line =
        |n: usize| format!("{{\"id\":\"{n}\",\"pk\":\"p{}\",\"text\":\"{}\"}}\n", n % 7, "x".repeat(2000));
    fs::write(&file, (0..items).map(line).collect::<String>()).unwrap();
    file
}

#[test]
fn a_killed_transfer_resumes_where_it_was() {
    let server = server();
    let directory = tempfile::tempdir().unwrap();
    let file = many(directory.path(), 8000);
    let note = directory.path().join("many.jsonl.progress");
    let import = ["import", "db/c", "--file", text(&file)];
    kill_in_the_middle(&server, &import, &note, |note| {
        note.contains("000,\"items\"") && !note.contains("\"lines\":1000,")
    });
    let (code, told) = tool(&server, &import);
    assert!(code == Some(2) && told.contains("--resume"), "{told}");
    succeed(&server, &[&import[..], &["--resume"]].concat());
    assert!(!note.exists());
    let out = directory.path().join("out.jsonl");
    let note = directory.path().join("out.jsonl.progress");
    let export = ["export", "db/c", "--file", text(&out)];
    let again = [&export[..], &["--overwrite"]].concat();
    kill_in_the_middle(&server, &again, &note, |note| note.contains("\"token\""));
    // Bytes written after the recorded progress are cut off.
    fs::OpenOptions::new()
        .append(true)
        .open(&out)
        .map(|mut file| {
            use std::io::Write;
            file.write_all(b"{\"half\":").unwrap();
        })
        .unwrap();
    let (code, told) = tool(&server, &export);
    assert!(code == Some(2) && told.contains("--resume"), "{told}");
    let (code, told) = tool(&server, &["import", "db/c", "--file", text(&out)]);
    assert!(code == Some(2) && told.contains("export --resume"), "{told}");
    succeed(&server, &[&export[..], &["--resume"]].concat());
    assert!(!note.exists());
    assert_eq!(lines(&out), lines(&file));
}

#[test]
fn an_import_waits_where_throughput_is_spent() {
    let server = Server::start(&["--memory", "--enforce-throughput"]);
    server.create_container("");
    let directory = tempfile::tempdir().unwrap();
    let file = many(directory.path(), 300);
    succeed(&server, &["import", "db/c", "--file", text(&file), "--mode", "insert"]);
    let out = directory.path().join("out.jsonl");
    succeed(&server, &["export", "db/c", "--file", text(&out)]);
    assert_eq!(lines(&out), lines(&file));
}

#[test]
fn collections_round_trip_to_the_byte() {
    let server = Server::start(&["--memory"]);
    let directory = tempfile::tempdir().unwrap();
    let dump = directory.path().join("dump");
    fs::create_dir_all(dump.join("shop")).unwrap();
    // _id, an empty timestamp, a double that is whole, a long that is small.
    let document = |id: u8| {
        let mut bytes = vec![0, 0, 0, 0, 0x10, b'_', b'i', b'd', 0, id, 0, 0, 0];
        bytes.extend_from_slice(b"\x11t\0\0\0\0\0\0\0\0\0");
        bytes.extend_from_slice(b"\x01d\0");
        bytes.extend_from_slice(&1.0_f64.to_le_bytes());
        bytes.extend_from_slice(b"\x12n\0\x01\0\0\0\0\0\0\0\0");
        bytes[0] = bytes.len() as u8;
        bytes
    };
    let all = [document(1), document(2), document(3)].concat();
    fs::write(dump.join("shop/orders.bson"), &all).unwrap();
    let metadata = r#"{"options":{},"indexes":[{"v":{"$numberInt":"2"},"key":{"_id":{"$numberInt":"1"}},"name":"_id_","ns":"shop.orders"},{"v":{"$numberInt":"2"},"key":{"d":{"$numberInt":"1"}},"name":"d_1","sparse":true}],"uuid":"0123456789abcdef0123456789abcdef","collectionName":"orders","type":"collection"}"#;
    fs::write(dump.join("shop/orders.metadata.json"), metadata).unwrap();
    let view = r#"{"options":{"viewOn":"orders","pipeline":[]},"indexes":[],"uuid":"","collectionName":"all","type":"view"}"#;
    fs::write(dump.join("shop/all.metadata.json"), view).unwrap();
    succeed(&server, &["import", "--dir", text(&dump)]);
    succeed(&server, &["import", "--dir", text(&dump)]);
    for (format, more) in [("bson", &[][..]), ("jsonl", &[]), ("json", &[]), ("bson", &["--gzip"])] {
        let out = directory.path().join(format!("{format}{}", more.len()));
        succeed(&server, &[&["export", "--dir", text(&out), "--format", format], more].concat());
        let other = Server::start(&["--memory"]);
        succeed(&other, &["import", "--dir", text(&out)]);
        let again = directory.path().join("again.bson");
        succeed(&other, &["export", "shop/orders", "--file", text(&again), "--overwrite"]);
        assert_eq!(fs::read(&again).unwrap(), all, "{format} {more:?}");
        let metadata = fs::read_to_string(out.join("shop/orders.metadata.json")).unwrap();
        assert!(metadata.contains("\"sparse\":true"), "{metadata}");
        assert!(out.join("shop/all.metadata.json").exists() && !out.join("shop/all.bson").exists());
    }
    let (code, told) =
        tool(&server, &["export", "shop/orders", "--file", "-", "--format", "bson", "--api", "nosql"]);
    assert!(code == Some(2) && told.contains("no container or collection"), "{told}");
}
