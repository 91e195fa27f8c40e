//! Data directories that servers of every format have written: every later version must open them.
//!
//! `tests/formats/N.tar.gz` was made by a server of format N, stopped cleanly. Each has the same content:
//!
//! | where | what |
//! |---|---|
//! | `db/sessions`, `defaultTtl` 3600 | `by default`; `short` with a ttl of 60; `for ever` with -1; `written twice` |
//! | `db/plain`, expiry off | `plain`, whose ttl of 10 does nothing |
//! | `shop.carts`, from format 3 on | 1 without a date; 2 that expires 600 s after the write; 3 that does 4200 s after it |
//!
//! That of format 11 is that of format 10 and has `db/purged`, whose items a watermark has removed.
//!
//! A new format adds its directory here in the commit that introduces it.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bson::ValueRef;
use document::ValueRef as JsonRef;
use engine::{Engine, Error, ItemName, Precondition};
use storage::{ClockOptions, EmbeddedOptions, EmbeddedStore, ManualClock, Time};

use crate::world::key;

/// Every format, and the second in which its directory was written.
const FORMATS: &[(u32, u64)] = &[
    (1, 1_795_017_498),
    (2, 1_795_017_499),
    (3, 1_795_017_501),
    (4, 1_795_017_503),
    (5, 1_795_017_504),
    (6, 1_795_017_506),
    (7, 1_795_017_508),
    (8, 1_795_017_509),
    (9, 1_795_017_510),
    (10, 1_795_017_511),
    (11, 1_795_017_513),
];

/// Collections came with this format.
const WITH_COLLECTIONS: u32 = 3;

fn unpack(format: u32, into: &Path) {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/formats/{format}.tar.gz"));
    let unpacked = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(into).status();
    assert!(unpacked.expect("tar runs").success(), "{}", archive.display());
}

fn open(directory: &Path, clock: &Arc<ManualClock>) -> Engine {
    let options = EmbeddedOptions::new(directory, ClockOptions::new(clock.clone()));
    let store = EmbeddedStore::open(options).expect("the store opens");
    let engine = Engine::open(Arc::new(store)).expect("the engine opens");
    while engine.index_step(1000).expect("indexes are built").more {}
    let report = engine.check().expect("an inspection");
    assert!(report.is_sound(), "{:#?}", report.told);
    engine
}

/// Returns the value of `n` of an item, none if it is not there.
fn item(engine: &Engine, container: &str, user: &str, id: &str) -> Option<f64> {
    let container = engine.container(&engine.database("db").expect("there"), container).expect("there");
    match engine.read(&container, &key(user), &ItemName::Id(id.into()), &Precondition::None) {
        Ok(read) => read.item.expect("a body").body.get("n").and_then(JsonRef::as_f64),
        Err(Error::NotFound { .. }) => None,
        Err(other) => panic!("{id}: {other}"),
    }
}

fn items(engine: &Engine) -> [Option<f64>; 5] {
    [
        item(engine, "sessions", "ann", "by default"),
        item(engine, "sessions", "ann", "short"),
        item(engine, "sessions", "bob", "for ever"),
        item(engine, "sessions", "bob", "written twice"),
        item(engine, "plain", "eve", "plain"),
    ]
}

/// Returns which of the three documents are there.
fn documents(engine: &Engine) -> Vec<i32> {
    let carts = engine.collection("shop", "carts").expect("there");
    let reading = engine.reading(&[&carts]).expect("a view");
    let is_there = |id: &i32| reading.by_id(&carts, ValueRef::Int32(*id)).expect("read").is_some();
    [1, 2, 3].into_iter().filter(is_there).collect()
}

#[test]
fn t1_t13_data_directories_of_every_format_open_and_expire_on_time() {
    for (format, written_at) in FORMATS {
        let directory = tempfile::tempdir().expect("a directory");
        unpack(*format, directory.path());
        let clock = Arc::new(ManualClock::new(Time::from_seconds(written_at + 30)));
        let engine = open(directory.path(), &clock);
        assert_eq!(
            items(&engine),
            [Some(1.0), Some(2.0), Some(3.0), Some(4.0), Some(5.0)],
            "format {format}"
        );
        let expected = |living: &[i32]| if *format < WITH_COLLECTIONS { Vec::new() } else { living.to_vec() };
        let documents =
            |engine: &Engine| if *format < WITH_COLLECTIONS { Vec::new() } else { documents(engine) };
        assert_eq!(documents(&engine), expected(&[1, 2, 3]), "format {format}");
        clock.advance(Duration::from_mins(1));
        assert_eq!(items(&engine), [Some(1.0), None, Some(3.0), Some(4.0), Some(5.0)], "format {format}");
        clock.advance(Duration::from_mins(10));
        assert_eq!(documents(&engine), expected(&[1, 3]), "format {format}");
        while engine.purge_step(1000).expect("a step").purged_items > 0 {}
        engine.close().expect("closed");
        drop(engine);
        let engine = open(directory.path(), &clock);
        clock.advance(Duration::from_mins(50));
        assert_eq!(items(&engine), [None, None, Some(3.0), None, Some(5.0)], "format {format}");
        assert_eq!(documents(&engine), expected(&[1, 3]), "format {format}");
        clock.advance(Duration::from_mins(10));
        assert_eq!(documents(&engine), expected(&[1]), "format {format}");
    }
}

#[test]
fn there_is_a_directory_of_every_format() {
    let formats: Vec<u32> = FORMATS.iter().map(|(format, _)| *format).collect();
    assert_eq!(formats, (1..=storage::FORMAT).collect::<Vec<_>>());
}
