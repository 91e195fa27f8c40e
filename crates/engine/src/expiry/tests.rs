//! The tables of expiry: who is dead when, under which rules, and what a change of rules leaves behind.

use document::Sequence;
use storage::Time;

use super::change::CUTOFFS_MAX;
use super::{Change, Millis, Policy, Queue, from_seconds};
use crate::definition::{DefaultTtl, OwnTtl};
use crate::error::Result;
use crate::header::Header;

const NOW: u64 = 1_000_000;

fn header(ts: u64, ttl: OwnTtl) -> Header {
    Header { sequence: Sequence(5), ts, ttl, bases: Vec::new() }
}

fn at(seconds: u64) -> Time {
    Time::from_seconds(seconds)
}

/// A queue that has an entry everywhere.
#[expect(clippy::unnecessary_wraps, reason = "the signature of `occupied`")]
fn always(_: Queue, _: Millis) -> Result<bool> {
    Ok(true)
}

/// T1, T2: the nine cells, each asked a second before, at and a second after the only instant that could matter.
#[test]
fn t2_the_whole_truth_table() {
    use {DefaultTtl as D, OwnTtl as Own};
    let cells: [(Own, D, Option<u64>); 9] = [
        (Own::Absent, D::Off, None),
        (Own::Absent, D::Never, None),
        (Own::Absent, D::Seconds(10), Some(10)),
        (Own::Never, D::Off, None),
        (Own::Never, D::Never, None),
        (Own::Never, D::Seconds(10), None),
        (Own::Seconds(7), D::Off, None),
        (Own::Seconds(7), D::Never, Some(7)),
        (Own::Seconds(7), D::Seconds(10), Some(7)),
    ];
    for (own, default, lives) in cells {
        let (policy, header) = (Policy::new(default), header(NOW, own));
        for age in [0, 6, 7, 8, 9, 10, 11, 1_000_000_000] {
            let expected = lives.is_some_and(|lives| age >= lives);
            assert_eq!(policy.is_dead(&header, at(NOW + age)), expected, "{own:?} {default:?} age {age}");
        }
    }
}

#[test]
fn t1_the_last_millisecond_before_the_deadline_is_alive() {
    let policy = Policy::new(DefaultTtl::Seconds(10));
    let item = header(NOW, OwnTtl::Absent);
    assert!(!policy.is_dead(&item, Time::from_millis((NOW + 10) * 1000 - 1)));
    assert!(policy.is_dead(&item, Time::from_millis((NOW + 10) * 1000)));
}

#[test]
fn t7_the_far_future_never_overflows() {
    let policy = Policy::new(DefaultTtl::Seconds(i32::MAX as u32));
    for ts in [u64::MAX, u64::MAX / 1000, i64::MAX as u64] {
        assert!(!policy.is_dead(&header(ts, OwnTtl::Seconds(i32::MAX as u32)), at(NOW)));
        assert!(!policy.is_dead(&header(ts, OwnTtl::Absent), at(NOW)));
    }
}

/// T13: what was dead under the old rule stays dead under every later one; what lived is judged by the new rule.
#[test]
fn t13_a_cutoff_keeps_the_dead_dead() {
    let old = Policy::new(DefaultTtl::Seconds(10));
    let (dead, alive) = (header(NOW - 10, OwnTtl::Absent), header(NOW - 9, OwnTtl::Absent));
    let own_dead = header(NOW - 10, OwnTtl::Seconds(10));
    for next in [DefaultTtl::Off, DefaultTtl::Never, DefaultTtl::Seconds(1000)] {
        let policy = old.change(Change::DefaultTtl(next), at(NOW), Sequence(6), always).expect("changes");
        assert!(policy.is_dead(&dead, at(NOW)), "{next:?}");
        assert!(policy.is_dead(&own_dead, at(NOW)), "{next:?}");
        assert!(!policy.is_dead(&alive, at(NOW + 500)), "{next:?}");
    }
    let lowered = old
        .change(Change::DefaultTtl(DefaultTtl::Seconds(9)), at(NOW), Sequence(6), always)
        .expect("changes");
    assert!(lowered.is_dead(&alive, at(NOW)));
}

#[test]
fn t13_an_item_written_after_the_change_is_not_covered_by_it() {
    let policy = Policy::new(DefaultTtl::Seconds(1))
        .change(Change::DefaultTtl(DefaultTtl::Off), at(NOW), Sequence(5), always)
        .expect("changes");
    assert!(!policy.is_dead(&header(NOW - 100, OwnTtl::Absent), at(NOW)));
}

#[test]
fn an_unchanged_rule_and_an_empty_prefix_record_nothing() {
    let policy = Policy::new(DefaultTtl::Seconds(10));
    let same = policy
        .change(Change::DefaultTtl(DefaultTtl::Seconds(10)), at(NOW), Sequence(6), always)
        .expect("changes");
    assert!(same.cutoffs.is_empty());
    let empty = policy
        .change(Change::DefaultTtl(DefaultTtl::Off), at(NOW), Sequence(6), |_, _| Ok(false))
        .expect("changes");
    assert!(empty.cutoffs.is_empty());
    let own_rule_goes_on =
        policy.change(Change::DefaultTtl(DefaultTtl::Never), at(NOW), Sequence(6), always).expect("changes");
    assert_eq!(own_rule_goes_on.cutoffs.len(), 1);
}

#[test]
fn a_farther_cutoff_replaces_a_nearer_one_and_the_purge_forgets_both() {
    let first = Policy::new(DefaultTtl::Seconds(100))
        .change(Change::DefaultTtl(DefaultTtl::Seconds(50)), at(NOW), Sequence(6), always)
        .expect("changes");
    let second = first
        .change(Change::DefaultTtl(DefaultTtl::Seconds(70)), at(NOW), Sequence(7), always)
        .expect("changes");
    assert_eq!(second.cutoffs.len(), 1);
    assert_eq!(second.dead_through(Queue::Inherit, at(NOW)), Some(from_seconds(NOW - 50)));
    assert_eq!(second.forget(Queue::Inherit, from_seconds(NOW - 51)), None);
    let forgotten = second.forget(Queue::Inherit, from_seconds(NOW - 50)).expect("forgets");
    assert!(forgotten.cutoffs.is_empty() && forgotten.version > second.version);
}

#[test]
fn too_many_open_cutoffs_are_refused() {
    let mut policy = Policy::new(DefaultTtl::Seconds(1));
    let mut refused = false;
    for n in 2..2000 {
        match policy.change(
            Change::DefaultTtl(DefaultTtl::Seconds(n)),
            at(NOW),
            Sequence(u64::from(n)),
            always,
        ) {
            Ok(next) => policy = next,
            Err(_) => refused = true,
        }
    }
    assert!(refused && policy.cutoffs.len() == CUTOFFS_MAX);
}

#[test]
fn a_policy_reads_back_as_written() {
    let mut policy = Policy::new(DefaultTtl::Never);
    for default in [DefaultTtl::Seconds(5), DefaultTtl::Off, DefaultTtl::Seconds(i32::MAX as u32)] {
        policy = policy.change(Change::DefaultTtl(default), at(NOW), Sequence(9), always).expect("changes");
        assert_eq!(Policy::decode(&policy.encode()).expect("decodes"), policy);
    }
    assert!(Policy::decode(&policy.encode()[1..]).is_err());
}
