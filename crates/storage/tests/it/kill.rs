//! kill -9: every acknowledged commit is there, and no commit is there in part.
//!
//! The child is this test binary again, told by the environment to write until it is killed. It prints the commits that
//! were acknowledged.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use storage::{
    ClockOptions, Durability, EmbeddedOptions, EmbeddedStore, Error, Keyspace, Lanes, ManualClock, Store,
    Time, transact,
};

const DIRECTORY: &str = "BOLIDE_KILL_DIRECTORY";
/// Every commit writes its number under these.
const KEYSPACES: [Keyspace; 3] = [Keyspace::Item, Keyspace::Index, Keyspace::Counter];

fn open(path: &std::path::Path) -> EmbeddedStore {
    let clock = Arc::new(ManualClock::new(Time::from_seconds(1_800_000_000)));
    let mut options = EmbeddedOptions::new(path, ClockOptions::new(clock));
    options.durability = Durability::Sync;
    EmbeddedStore::open(options).unwrap()
}

/// Runs the child: eight writers, each printing its acknowledged commits; does nothing in an ordinary test run.
#[test]
fn child_writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(DIRECTORY) else { return };
    let store = open(std::path::Path::new(&path));
    let store: &dyn Store = &store;
    let first = store.last_sequence();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(move || {
                loop {
                    let number = write(store).unwrap();
                    assert!(number > first);
                    let mut output = std::io::stdout().lock();
                    writeln!(output, "acknowledged {number}").unwrap();
                    output.flush().unwrap();
                }
            });
        }
    });
}

fn write(store: &dyn Store) -> Result<u64, Error> {
    transact(store, Lanes::all(), |transaction| {
        let number = transaction.next_sequence();
        let value = vec![number as u8; 2000 + (number % 3000) as usize];
        for keyspace in KEYSPACES {
            transaction.put(keyspace, number.to_be_bytes(), value.clone());
        }
        Ok(number)
    })
    .wait()
}

#[test]
fn acknowledged_commits_survive_kill_9_and_none_is_half_there() {
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..6 {
        acknowledged.extend(run_and_kill(directory.path(), 20 + 150 * round));
        // Every other time the next child recovers the store by itself.
        if round % 2 == 0 {
            continue;
        }
        let store = open(directory.path());
        assert!(!store.recovery().clean);
        let snapshot = store.snapshot().unwrap();
        let there = |keyspace, number: u64| snapshot.get(keyspace, &number.to_be_bytes()).unwrap();
        for &number in &acknowledged {
            let value = there(Keyspace::Item, number).unwrap_or_else(|| panic!("lost commit {number}"));
            assert!(value.iter().all(|&byte| byte == number as u8));
        }
        for number in 1..=store.last_sequence() + 10 {
            let whole = KEYSPACES.map(|keyspace| there(keyspace, number).is_some());
            let expected = number <= store.last_sequence();
            assert_eq!(whole, [expected; 3], "commit {number} of {}", store.last_sequence());
        }
    }
}

/// Lets a child write until it has acknowledged `count` commits, kills it, and returns all it acknowledged.
fn run_and_kill(path: &std::path::Path, count: usize) -> Vec<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child_writes_until_it_is_killed", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut numbers = Vec::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let number = |line: String| line.split_once("acknowledged ")?.1.parse::<u64>().ok();
    while numbers.len() < count {
        numbers.extend(lines.next().expect("the child writes until it is killed").ok().and_then(number));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The output from before the kill counts, too, except for a last line that may be cut off.
    let mut rest: Vec<String> = lines.map_while(Result::ok).collect();
    rest.pop();
    numbers.extend(rest.into_iter().filter_map(number));
    numbers
}
