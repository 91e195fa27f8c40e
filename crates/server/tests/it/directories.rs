//! `bolide check`, `backup`, `restore` and `compact`, on real directories.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use storage::{
    ClockOptions, Direction, EmbeddedOptions, EmbeddedStore, KeyRange, Keyspace, Lanes, RealClock, Store,
    Transaction, transact,
};

use crate::process::{Server, run};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].concat().iter().map(|byte| char::from(*byte)).collect()
}

fn check(data: &Path, more: &[&str]) -> (i32, String) {
    let output = run(&[&["check", "--data", text(data)], more].concat());
    (output.status.code().unwrap(), said(&output))
}

/// Takes a backup of a running server.
fn fetch(server: &Server, file: &Path) {
    let output = run(&["backup", "--to", text(file), "--url", &format!("http://{}", server.address)]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

/// Creates two items in one transactional batch.
fn create_pair(server: &Server, number: u32) -> u16 {
    let operation = |half| {
        format!(
            r#"{{"operationType":"Create","resourceBody":{{"id":"{number}-{half}","pk":"a","number":{number}}}}}"#
        )
    };
    let headers = [
        ("x-ms-documentdb-partitionkey", "[\"a\"]"),
        ("x-ms-cosmos-is-batch-request", "true"),
        ("x-ms-cosmos-batch-atomic", "true"),
    ];
    let body = format!("[{},{}]", operation("a"), operation("b"));
    server.request("POST", "/dbs/db/colls/c/docs", &headers, &body).0
}

#[test]
fn a_backup_under_write_load_restores_to_a_state_that_was() {
    let directory = tempfile::tempdir().unwrap();
    let (data, copy, file) =
        (directory.path().join("data"), directory.path().join("copy"), directory.path().join("all.backup"));
    let server = Server::in_directory(&data, &[]);
    server.create_container(r#","defaultTtl":1000000"#);
    let (done, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    let known = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if stop.load(Ordering::Acquire) {
                    break;
                }
                assert_eq!(create_pair(&server, number), 200);
                done.store(number + 1, Ordering::Release);
            }
        });
        while done.load(Ordering::Acquire) < 20 {
            std::thread::yield_now();
        }
        let known = done.load(Ordering::Acquire);
        fetch(&server, &file);
        stop.store(true, Ordering::Release);
        known
    });
    assert_eq!(server.terminate(), Some(0));
    let output = run(&["restore", text(&file), "--data", text(&copy)]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(check(&copy, &[]).0, 0);
    let server = Server::in_directory(&copy, &[]);
    let last = done.load(Ordering::Acquire);
    for number in 0..=last {
        let halves = ["a", "b"].map(|half| server.read(&format!("{number}-{half}")));
        assert!(halves[0] == halves[1], "T16: half of batch {number} is there: {halves:?}");
        assert!(number >= known || halves[0] == 200, "write {number} was answered before the backup");
    }
    assert_eq!(server.terminate(), Some(0));
}

/// A directory with some items in it, closed.
fn filled(data: &Path) {
    let server = Server::in_directory(data, &[]);
    server.create_container(r#","defaultTtl":1000000"#);
    for id in 0..20 {
        assert_eq!(server.create(&id.to_string()), 201);
    }
    // More than the store reads when it opens.
    let mut random = fastrand::Rng::with_seed(1);
    for id in 0..30 {
        let padding: String = std::iter::repeat_with(|| random.alphanumeric()).take(20_000).collect();
        let body = format!(r#"{{"id":"large-{id}","pk":"a","padding":"{padding}"}}"#);
        let key = [("x-ms-documentdb-partitionkey", "[\"a\"]")];
        assert_eq!(server.request("POST", "/dbs/db/colls/c/docs", &key, &body).0, 201);
    }
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn t13_a_backup_is_restored_only_whole_and_only_into_an_empty_directory() {
    let directory = tempfile::tempdir().unwrap();
    let (data, copy, file) =
        (directory.path().join("data"), directory.path().join("copy"), directory.path().join("all.backup"));
    filled(&data);
    let output = run(&["backup", "--to", text(&file), "--data", text(&data)]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!directory.path().join("all.backup.partial").exists());
    let again = run(&["backup", "--to", text(&file), "--data", text(&data)]);
    assert!(again.status.code() == Some(2) && said(&again).contains("already exists"), "{}", said(&again));
    let whole = std::fs::read(&file).unwrap();
    for at in [3, 20, 60, whole.len() / 2, whole.len() - 40, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        std::fs::write(&file, &damaged).unwrap();
        let output = run(&["restore", text(&file), "--data", text(&copy)]);
        assert_eq!(output.status.code(), Some(2), "byte {at}");
        assert!(said(&output).contains("the backup is damaged at byte"), "{}", said(&output));
        assert!(!copy.exists(), "nothing is written");
    }
    std::fs::write(&file, &whole[..whole.len() - 9]).unwrap();
    assert!(said(&run(&["restore", text(&file), "--data", text(&copy)])).contains("it ends in the middle"));
    std::fs::write(&file, &whole).unwrap();
    let output = run(&["restore", text(&file), "--data", text(&copy), "--disable-ttl"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("expiry is off"), "{}", said(&output));
    let output = run(&["restore", text(&file), "--data", text(&copy)]);
    assert!(output.status.code() == Some(2) && said(&output).contains("is not empty"), "{}", said(&output));
    let server = Server::in_directory(&copy, &[]);
    assert_eq!(server.read("7"), 200);
    assert!(!server.get("/dbs/db/colls/c").1.contains("defaultTtl"));
    let refused = run(&["check", "--data", text(&copy)]);
    assert!(refused.status.code() == Some(2) && said(&refused).contains("in use"), "{}", said(&refused));
    assert_eq!(server.terminate(), Some(0));
}

/// Returns the tables of a keyspace, the largest first. The name of a keyspace's directory does not identify it: the items
/// have the most bytes.
fn tables(data: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for keyspace in std::fs::read_dir(data.join("keyspaces")).unwrap() {
        let Ok(tables) = std::fs::read_dir(keyspace.unwrap().path().join("tables")) else { continue };
        found.extend(tables.map(|entry| entry.unwrap().path()));
    }
    found.sort_by_key(|path| std::cmp::Reverse(std::fs::metadata(path).unwrap().len()));
    found
}

#[test]
fn a_flipped_byte_and_a_cut_file_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    filled(&data);
    let (code, words) = check(&data, &[]);
    assert!(code == 0 && words.contains("50 items") && words.contains("everything is in order"), "{words}");
    let table = tables(&data).remove(0);
    let whole = std::fs::read(&table).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 8] ^= 1;
    std::fs::write(&table, &damaged).unwrap();
    for more in [&[][..], &["--repair"]] {
        let (code, words) = check(&data, more);
        let is_told = words.contains("container 'db/c'") && words.contains("cannot be read");
        assert!(code == 1 && is_told && words.contains("restore a backup"), "{code}: {words}");
    }
    assert!(std::fs::read(&table).unwrap() == damaged, "what cannot be read is left as it is");
    std::fs::write(&table, &whole[..whole.len() / 2]).unwrap();
    let (code, words) = check(&data, &[]);
    assert!(code != 0 && words.contains("restore a backup"), "{code}: {words}");
    std::fs::write(&table, &whole).unwrap();
    assert_eq!(check(&data, &[]).0, 0);
}

/// Removes the first entry by id from a closed store, below the engine.
fn lose_an_entry_by_id(data: &Path) {
    let clock = ClockOptions::new(Arc::new(RealClock::new()));
    let store = EmbeddedStore::open(EmbeddedOptions::new(data, clock)).unwrap();
    let snapshot = store.snapshot().unwrap();
    let first = snapshot.scan(Keyspace::Id, KeyRange::all(), Direction::Forward).next();
    let (key, _) = first.expect("there are items").unwrap();
    let key = key.to_vec();
    drop(snapshot);
    let remove = move |transaction: &mut Transaction<'_>| {
        transaction.remove(Keyspace::Id, key);
        Ok::<_, storage::Error>(())
    };
    transact(&store, Lanes::all(), remove).wait().unwrap();
    store.close().unwrap();
}

#[test]
fn what_follows_from_the_items_is_told_and_repaired() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    filled(&data);
    lose_an_entry_by_id(&data);
    let (code, words) = check(&data, &[]);
    assert!(code == 1 && words.contains("its entry by id is missing"), "{code}: {words}");
    assert!(words.contains("'db/c'") && words.contains("1 of which --repair can repair"), "{words}");
    let (code, words) = check(&data, &["--repair"]);
    assert!(code == 0 && words.contains("repaired 1 of 1 findings"), "{code}: {words}");
    let (code, words) = check(&data, &[]);
    assert!(code == 0 && words.contains("everything is in order"), "{code}: {words}");
    let server = Server::in_directory(&data, &[]);
    for id in 0..20 {
        assert_eq!(server.read(&id.to_string()), 200, "item {id}");
    }
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_directory_is_rewritten_without_what_was_removed() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    filled(&data);
    let output = run(&["compact", "--data", text(&data)]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("bytes before"), "{}", said(&output));
    assert!(said(&output).contains("rewriting: 100 %"), "{}", said(&output));
    assert_eq!(check(&data, &[]).0, 0);
    let nowhere = run(&["compact", "--data", text(&directory.path().join("nowhere"))]);
    assert!(
        nowhere.status.code() == Some(2) && said(&nowhere).contains("there is no store"),
        "{}",
        said(&nowhere)
    );
}

/// A mistyped path: nothing is written there, and the error names what is there.
#[test]
fn a_directory_that_holds_something_else_and_a_file_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::write(path.join("thesis.tex"), "years of work").unwrap();
    std::fs::write(path.join(".profile"), "").unwrap();
    for (data, why) in [
        (path.to_owned(), "holds 'thesis.tex', which is not part of a store"),
        (path.join("thesis.tex"), "is a file, not a directory"),
    ] {
        let output =
            run(&["serve", "--listen", "127.0.0.1:0", "--mongo-listen", "off", "--data", text(&data)]);
        assert_ne!(output.status.code(), Some(0), "{}", said(&output));
        assert!(said(&output).contains(why) && said(&output).contains(text(&data)), "{}", said(&output));
        let mut left: Vec<_> = std::fs::read_dir(path).unwrap().map(|it| it.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".profile", "thesis.tex"], "nothing was written");
    }
    std::fs::rename(path.join("thesis.tex"), directory.path().join(".thesis")).unwrap();
    std::fs::create_dir(path.join("lost+found")).unwrap();
    let server = Server::in_directory(path, &[]);
    assert_eq!(server.terminate(), Some(0));
}
