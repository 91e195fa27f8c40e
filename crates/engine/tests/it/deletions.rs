//! The deletion record: its lines, and that it cannot be changed unnoticed.

use document::PartitionKey;
use engine::{
    Consent, DeletionLog, ItemAddress, Owner, Precondition, Tampering, Throughput, Verifier, Watch,
};

use crate::collections::{by, date, item};
use crate::world::{START, World};

fn record(world: &World, owner: &Owner, is_on: bool) {
    world
        .engine
        .change_lifecycle(owner, |settings| settings.deletion_record = is_on)
        .expect("a valid setting");
}

/// Returns the only log of a container or collection.
fn log_of(world: &World, owner: &Owner) -> DeletionLog {
    let mut logs = world.engine.deletion_logs_of(owner).expect("logs");
    assert_eq!(logs.len(), 1);
    logs.remove(0)
}

fn lines_of(world: &World, log: &DeletionLog) -> Vec<String> {
    let page = world.engine.deletion_page(log.log, 0).expect("a page");
    assert_eq!((page.last, &page.log), (log.count, log));
    String::from_utf8(page.lines).expect("text").lines().map(str::to_owned).collect()
}

/// Returns a line without what differs from run to run.
fn event(line: &str) -> &str {
    let (_, event) = line.split_once(r#","event":"#).expect("an event");
    event.rsplit_once(r#","hash":"#).expect("a hash").0
}

/// Verifies lines, each with its end.
fn verify(lines: &[String], head: Option<&str>, count: Option<u64>) -> Result<String, Tampering> {
    let mut verifier = Verifier::default();
    for line in lines {
        verifier.line(format!("{line}\n").as_bytes())?;
    }
    verifier.finish(head, count)
}

#[test]
fn the_record_tells_what_was_purged_when_and_under_which_rules() {
    let mut world = World::new();
    world.container(r#","defaultTtl":60"#);
    world.create("a", r#""id":"before","ttl":1"#).expect("created");
    world.pass(1);
    world.drain();
    record(&world, &world.owner(), true);
    world.create("a", r#""id":"x","secret":"s""#).expect("created");
    world.create("a", r#""id":"y","ttl":9"#).expect("created");
    world.pass(9);
    world.create("a", r#""id":"y","ttl":-1"#).expect("over the expired item");
    world.set_default(Some(20));
    world.restart();
    world.pass(11);
    world.drain();
    world.delete("a", "y").expect("deleted by a client");
    record(&world, &world.owner(), false);
    let log = log_of(&world, &world.owner());
    assert!(!log.is_open);
    let lines = lines_of(&world, &log);
    let rules = |ttl: u32| format!(r#""rules":{{"defaultTtl":{ttl},"dateIndexes":[],"hold":null}}"#);
    let expected = [
        format!(r#""opened","api":"nosql","database":"db","container":"c","partition":0,{}"#, rules(60)),
        concat!(
            r#""purged","id":"y","partitionKey":["a"],"_ts":1700000001,"#,
            r#""expired":"2023-11-14T22:13:30.000Z","rule":"ttl","seconds":9,"under":1"#
        )
        .to_owned(),
        format!(r#""rules",{}"#, rules(20)),
        concat!(
            r#""purged","id":"x","partitionKey":["a"],"_ts":1700000001,"#,
            r#""expired":"2023-11-14T22:13:41.000Z","rule":"defaultTtl","seconds":20,"under":3"#
        )
        .to_owned(),
        r#""closed""#.to_owned(),
    ];
    assert_eq!(lines.iter().map(|line| event(line)).collect::<Vec<_>>(), expected);
    assert!(lines[1].contains(r#""n":2,"#) && lines[1].contains(r#""time":"2023-11-14T22:13:30.000Z""#));
    assert_eq!(verify(&lines, Some(&log.head), Some(log.count)), Ok(log.head.clone()));
    assert_eq!(world.engine.verify_deletion_log(&log), Ok(Ok(())));
    assert!(!lines.concat().contains("secret"), "no bodies");

    record(&world, &world.owner(), true);
    let again = log_of(&world, &world.owner());
    assert_eq!((again.count, again.is_open), (log.count + 1, true), "an earlier record goes on");
}

#[test]
fn t31_the_record_of_a_lifted_item_names_the_rule_that_it_came_under() {
    let world = World::new();
    world.container(r#","defaultTtl":5"#);
    record(&world, &world.owner(), true);
    for id in ["held", "expired"] {
        world.create("a", &format!(r#""id":"{id}""#)).expect("created");
    }
    let item = ItemAddress::Id(PartitionKey::from_header(r#"["a"]"#).expect("a key"), "held".to_owned());
    world.engine.hold_item(&world.owner(), &item, "a case").expect("held");
    world.pass(6);
    // The other one is expired and not purged: the change leaves a cutoff that would cover the held one.
    world.set_default(Some(2));
    world.engine.lift_item(&world.owner(), &item).expect("lifted");
    let log = log_of(&world, &world.owner());
    let lines = lines_of(&world, &log);
    let lifted = concat!(
        r#""purged","id":"held","partitionKey":["a"],"_ts":1700000000,"#,
        r#""expired":"2023-11-14T22:13:26.000Z","rule":"defaultTtl","seconds":2,"under":2"#
    );
    assert_eq!(event(lines.last().expect("lines")), lifted);
}

#[test]
fn the_record_outlives_its_container() {
    let world = World::new();
    let owner = Owner::Container(world.container(r#","defaultTtl":10"#));
    record(&world, &owner, true);
    for id in ["x", "y", "z"] {
        world
            .create("a", &format!(r#""id":"{id}","ttl":{}"#, if id == "x" { 1 } else { -1 }))
            .expect("created");
    }
    world.pass(1);
    world.drain();
    let open = log_of(&world, &owner);
    world.engine.delete_container(&world.current(), &Precondition::None).expect("dropped");
    world.drain();
    let logs = world.engine.deletion_logs().expect("logs");
    assert_eq!(logs.len(), 1);
    assert_eq!((logs[0].log, logs[0].count, logs[0].is_open), (open.log, open.count + 1, false));
    assert_eq!((logs[0].database.as_str(), logs[0].container.as_str()), ("db", "c"));
    assert_eq!(event(lines_of(&world, &logs[0]).last().expect("lines")), r#""dropped","items":2"#);
    assert_eq!(world.engine.verify_deletion_log(&logs[0]), Ok(Ok(())));

    world.container("");
    assert_eq!(world.engine.deletion_logs_of(&world.owner()).expect("logs"), [], "a new one has none");
}

#[test]
fn pages_go_on_where_the_last_one_ended() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    record(&world, &world.owner(), true);
    for number in 0..30 {
        world.create("a", &format!(r#""id":"{number}""#)).expect("created");
    }
    world.pass(10);
    world.drain();
    let log = log_of(&world, &world.owner());
    assert_eq!(log.count, 31);
    let rest = world.engine.deletion_page(log.log, 29).expect("a page");
    assert_eq!((rest.lines.split_inclusive(|byte| *byte == b'\n').count(), rest.last), (2, 31));
    let none = world.engine.deletion_page(log.log, 31).expect("a page");
    assert_eq!((none.lines.len(), none.last), (0, 31));
    assert!(matches!(world.engine.deletion_page(12_345, 0), Err(engine::Error::NotFound { .. })));
}

#[test]
fn each_physical_partition_has_a_log_and_all_share_the_archive() {
    let world = World::new();
    let database = world.engine.database("db").expect("made");
    let definition = crate::world::definition("c", r#","defaultTtl":10"#);
    let throughput = Some(Throughput::Manual(20_000));
    let container = world.engine.create_container(&database, definition, throughput).expect("created");
    assert_eq!(container.partitions.len(), 4);
    let settings = |settings: &mut engine::Lifecycle| {
        settings.deletion_record = true;
        settings.archive = engine::ArchiveDirectory::parse("cold");
    };
    world.engine.change_lifecycle(&world.owner(), settings).expect("a valid setting");
    for number in 0..40 {
        world.create(&format!("key {number}"), r#""id":"x""#).expect("created");
    }
    world.pass(10);
    assert_eq!(world.drain(), 40);
    assert_eq!(world.archive.lines("cold").len(), 40);
    let logs = world.engine.deletion_logs_of(&world.owner()).expect("logs");
    assert_eq!((logs.len(), logs.iter().map(|log| log.count - 1).sum::<u64>()), (4, 40));
    for (position, log) in logs.iter().enumerate() {
        assert!(log.count > 1, "each has some of them");
        assert!(lines_of(&world, log)[0].contains(&format!(r#""partition":{position},"#)));
        assert_eq!(world.engine.verify_deletion_log(log), Ok(Ok(())));
    }
}

/// The feed of a watched collection is kept for a day after the drop, and its record ends with the drop all the same.
#[test]
fn the_record_of_a_watched_collection_ends_with_its_drop() {
    let world = World::new();
    let collection = world.collection("c");
    world.engine.watch(&Watch::Database("db".into())).expect("watched");
    let owner = Owner::Collection(collection.clone());
    record(&world, &owner, true);
    world.put(&collection, &item(1)).expect("inserted");
    world.engine.drop_collection(&collection).expect("dropped");
    let log = world.engine.deletion_logs().expect("logs").remove(0);
    assert!(!log.is_open);
    assert_eq!(event(lines_of(&world, &log).last().expect("lines")), r#""dropped","items":1"#);
    world.pass(2 * 86_400);
    world.drain();
    assert_eq!(world.engine.verify_deletion_log(&log), Ok(Ok(())));
}

#[test]
fn a_collection_has_its_record_through_indexes_holds_and_another_name() {
    let world = World::new();
    let collection = world.collection("c");
    let owner = Owner::Collection(collection.clone());
    record(&world, &owner, true);
    world.index(&collection, &by("at").with("expireAfterSeconds", 30));
    world.put(&collection, &item(7).with("at", date(START))).expect("inserted");
    world
        .put(&collection, &bson::Document::new().with("_id", "i".repeat(5000)).with("at", date(START)))
        .expect("inserted");
    world.pass(30);
    world.drain();
    let engine = &world.engine;
    engine.change_lifecycle(&owner, |settings| settings.hold = Some("case".into())).expect("held");
    engine.change_lifecycle_with(&owner, Consent::Given, |settings| settings.hold = None).expect("lifted");
    let renamed = engine.rename_collection(&collection, "db", "d", false).expect("renamed");
    engine.drop_collection(&renamed).expect("dropped");
    let log = engine.deletion_logs().expect("logs").remove(0);
    assert_eq!((log.container.as_str(), log.is_open), ("d", false));
    let lines = lines_of(&world, &log);
    let events: Vec<&str> = lines.iter().map(|line| event(line)).collect();
    let rules = |dates: &str, hold: &str| {
        format!(r#""rules","rules":{{"defaultTtl":null,"dateIndexes":[{dates}],"hold":{hold}}}"#)
    };
    let index = r#"{"index":"at_1","seconds":30}"#;
    assert_eq!(events[1], rules(index, "null"));
    let expired = concat!(
        r#""purged","_id":{"$numberInt":"7"},"_ts":1700000000,"#,
        r#""expired":"2023-11-14T22:13:50.000Z","rule":"dateIndex","index":"at_1","seconds":30,"under":2"#
    );
    assert_eq!(events[2], expired);
    assert!(events[3].starts_with(r#""purged","_idSha256":""#), "{}", events[3]);
    assert_eq!(events[4], rules(index, r#""case""#));
    assert_eq!(events[5], rules(index, "null"));
    assert_eq!(events[6..], [r#""renamed","database":"db","container":"d""#, r#""dropped","items":0"#]);
    assert_eq!(verify(&lines, Some(&log.head), Some(log.count)), Ok(log.head.clone()));
}

/// Returns the logs of two containers with the same operations, so that only names and numbers differ.
fn two_logs() -> (Vec<String>, Vec<String>, String) {
    let world = World::new();
    let mut all = Vec::new();
    let database = world.engine.database("db").expect("made");
    for name in ["c", "other"] {
        let definition = crate::world::definition(name, r#","defaultTtl":10"#);
        let container = world.engine.create_container(&database, definition, None).expect("created");
        let owner = Owner::Container(container.clone());
        record(&world, &owner, true);
        for id in 0..7 {
            let body = crate::world::body("a", &format!(r#""id":"item {id}""#));
            world.engine.write(&container, None, engine::Operation::Create { body }).wait().expect("created");
        }
        all.push(owner);
    }
    world.pass(10);
    world.drain();
    let logs: Vec<_> = all.iter().map(|owner| log_of(&world, owner)).collect();
    (lines_of(&world, &logs[0]), lines_of(&world, &logs[1]), logs[0].head.clone())
}

/// Returns lines with recomputed hashes from one line on, as forged by an attacker who can write the whole file.
fn rehashed(mut lines: Vec<String>, from: usize) -> Vec<String> {
    use sha2::{Digest, Sha256};
    let hash_of = |line: &str| line.rsplit_once(r#","hash":""#).expect("a hash").1[..64].to_owned();
    for at in from..lines.len() {
        let text = lines[at].rsplit_once(r#","hash":""#).expect("a hash").0.to_owned();
        let text = if at > 0 {
            let (front, rest) = text.split_once(r#""previous":""#).expect("chained");
            format!(r#"{front}"previous":"{}{}"#, hash_of(&lines[at - 1]), &rest[64..])
        } else {
            text
        };
        let hash = format!("{:x}", Sha256::digest(text.as_bytes()));
        lines[at] = format!(r#"{text},"hash":"{hash}"}}"#);
    }
    lines
}

fn log_number(line: &str) -> u64 {
    line.strip_prefix("{\"log\":").and_then(|rest| rest.split(',').next()?.parse().ok()).expect("a log")
}

/// A kind of tampering: its name, the change, and the expected finding.
type Tamper<'a> = (&'a str, Box<dyn Fn(&mut Vec<String>) + 'a>, Tampering);

#[test]
fn ten_kinds_of_tampering_are_detected() {
    let (lines, other, head) = two_logs();
    assert_eq!(lines.len(), 8);
    assert_eq!(verify(&lines, Some(&head), Some(8)), Ok(head.clone()));
    assert_eq!(rehashed(lines.clone(), 0), lines, "the forger's tools are right");
    let out_of_order = |line, found| Tampering::OutOfOrder { line, found, expected: line };
    let change_field = |lines: &mut Vec<String>| lines[3] = lines[3].replace("item 2", "item 9");
    let kinds: Vec<Tamper<'_>> = vec![
        ("a changed field", Box::new(change_field), Tampering::Changed { line: 4 }),
        ("a removed first line", Box::new(|lines| drop(lines.remove(0))), out_of_order(1, 2)),
        ("a removed line", Box::new(|lines| drop(lines.remove(4))), out_of_order(5, 6)),
        ("swapped lines", Box::new(|lines| lines.swap(2, 5)), out_of_order(3, 6)),
        (
            "an inserted line",
            Box::new(|lines| {
                let forged = lines[3].replace("item 2", "forged");
                lines.insert(4, rehashed(vec![forged], 0).remove(0));
            }),
            out_of_order(5, 4),
        ),
        ("a doubled line", Box::new(|lines| lines.insert(6, lines[5].clone())), out_of_order(7, 6)),
        (
            "a changed hash",
            Box::new(|lines| {
                let end = lines[6].len() - 3;
                let digit = if &lines[6][end..=end] == "0" { "1" } else { "0" };
                lines[6].replace_range(end..=end, digit);
            }),
            Tampering::Changed { line: 7 },
        ),
        (
            "another container's lines",
            Box::new(|lines| lines.splice(4.., other[4..].iter().cloned()).for_each(drop)),
            Tampering::OtherLog { line: 5, found: log_number(&other[4]), expected: log_number(&lines[4]) },
        ),
        (
            "a reformatted line",
            Box::new(|lines| lines[5] = lines[5].replacen(r#","event""#, r#", "event""#, 1)),
            Tampering::Changed { line: 6 },
        ),
        (
            "a removed last line",
            Box::new(|lines| lines.truncate(7)),
            Tampering::Count { found: 7, expected: 8 },
        ),
    ];
    for (kind, tamper, expected) in kinds {
        let mut tampered = lines.clone();
        tamper(&mut tampered);
        let found = verify(&tampered, Some(&head), Some(8)).expect_err(kind);
        assert_eq!(found, expected, "{kind}");
    }
}

/// Only the head reveals a forgery that recomputes all hashes from some line on.
#[test]
fn a_forged_end_needs_the_head_to_be_detected() {
    let (lines, _, head) = two_logs();
    for (from, name) in [(7, "the last line"), (3, "a line and all behind it"), (0, "everything")] {
        let mut forged = lines.clone();
        forged[from] = forged[from].replace("2023", "2022");
        let forged = rehashed(forged, from);
        let forged_head = verify(&forged, None, Some(8)).expect("a chain of its own");
        let expected = Tampering::Head { found: forged_head, expected: head.clone() };
        assert_eq!(verify(&forged, Some(&head), Some(8)), Err(expected), "{name}");
    }
    let mut left_out = lines.clone();
    left_out.truncate(5);
    assert!(verify(&left_out, None, None).is_ok(), "a shorter log was a whole one once");
    assert!(matches!(verify(&left_out, Some(&head), None), Err(Tampering::Head { .. })));
    assert_eq!(verify(&[], None, None), Err(Tampering::Empty));
}

/// A noted head stays valid: the log may become longer, but not change before it.
#[test]
fn a_head_that_was_noted_earlier_is_checked_where_it_was() {
    let (lines, _, _) = two_logs();
    let noted = verify(&lines[..5], None, None).expect("in order");
    let check = |lines: &[String], head: Option<&str>, count| {
        let mut verifier = Verifier::with_noted(head.map(str::to_owned), count);
        for line in lines {
            verifier.line(line.as_bytes())?;
        }
        verifier.finish(None, None).map(drop)
    };
    for (head, count) in [(Some(noted.as_str()), Some(5)), (Some(noted.as_str()), None), (None, Some(5))] {
        for length in 5..=8 {
            assert_eq!(check(&lines[..length], head, count), Ok(()));
        }
        assert!(check(&lines[..4], head, count).is_err());
    }
    let mut forged = lines.clone();
    forged[3] = forged[3].replace("2023", "2022");
    let forged = rehashed(forged, 3);
    let found = verify(&forged[..5], None, None).expect("a chain of its own");
    let expected = Tampering::Noted { line: 5, found, expected: noted.clone() };
    assert_eq!(check(&forged, Some(&noted), Some(5)), Err(expected));
    let nowhere = Tampering::NotedNowhere { expected: noted.clone() };
    assert_eq!(check(&forged, Some(&noted), None), Err(nowhere));
    assert_eq!(check(&lines, Some(&noted), Some(9)), Err(Tampering::Count { found: 8, expected: 9 }));
}

/// Every change of a single byte is detected, wherever it is.
#[test]
fn no_byte_can_be_changed() {
    let (lines, _, head) = two_logs();
    let text: Vec<u8> = lines[..3].iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
    let check = |text: &[u8]| {
        let mut verifier = Verifier::default();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            verifier.line(line)?;
        }
        verifier.finish(None, Some(3))
    };
    check(&text).expect("in order");
    for at in 0..text.len() - 1 {
        for change in [1, 0x20] {
            let mut changed = text.clone();
            changed[at] ^= change;
            // A hash is written in small letters, and no other way.
            assert!(check(&changed).is_err(), "byte {at} xor {change}");
        }
        let mut shortened = text.clone();
        shortened.remove(at);
        assert!(check(&shortened).is_err(), "byte {at} removed");
    }
    assert!(check(&text[..text.len() - 1]).is_ok(), "the last line may lack its end");
    assert!(verify(&[lines[0].clone() + "\r"], Some(&head), None).is_err());
}
