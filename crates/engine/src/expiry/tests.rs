//! The tables of expiry: which items have expired when, under which rules, and what a change of rules leaves behind.

use document::Sequence;
use storage::Time;

use super::change::CUTOFFS_MAX;
use super::{Change, Millis, Policy, Queue, QueuePosition, from_seconds};
use crate::expiry::header::Header;
use crate::expiry::ttl::{DefaultTtl, OwnTtl};
use crate::types::error::Result;

const NOW: u64 = 1_000_000;

fn header(ts: u64, ttl: OwnTtl) -> Header {
    Header::new(Sequence(5), ts, ttl)
}

fn at(seconds: u64) -> Time {
    Time::from_seconds(seconds)
}

/// Returns a queue that has an entry everywhere.
#[expect(clippy::unnecessary_wraps, reason = "the signature of `occupied`")]
fn always(_: Queue, _: Millis) -> Result<bool> {
    Ok(true)
}

/// T1, T2: the nine cells, each tested a second before, at and a second after the only instant that could matter.
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
            assert_eq!(policy.is_expired(&header, at(NOW + age)), expected, "{own:?} {default:?} age {age}");
        }
    }
}

#[test]
fn t1_the_item_is_living_in_the_last_millisecond_before_the_deadline() {
    let policy = Policy::new(DefaultTtl::Seconds(10));
    let item = header(NOW, OwnTtl::Absent);
    assert!(!policy.is_expired(&item, Time::from_millis((NOW + 10) * 1000 - 1)));
    assert!(policy.is_expired(&item, Time::from_millis((NOW + 10) * 1000)));
}

#[test]
fn t7_the_far_future_never_overflows() {
    let policy = Policy::new(DefaultTtl::Seconds(i32::MAX as u32));
    for ts in [u64::MAX, u64::MAX / 1000, i64::MAX as u64] {
        assert!(!policy.is_expired(&header(ts, OwnTtl::Seconds(i32::MAX as u32)), at(NOW)));
        assert!(!policy.is_expired(&header(ts, OwnTtl::Absent), at(NOW)));
    }
}

/// T13: items that had expired under the old rule stay expired under every later one; the new rule judges living items.
#[test]
fn t13_a_cutoff_keeps_expired_items_expired() {
    let old = Policy::new(DefaultTtl::Seconds(10));
    let (expired, living) = (header(NOW - 10, OwnTtl::Absent), header(NOW - 9, OwnTtl::Absent));
    let own_expired = header(NOW - 10, OwnTtl::Seconds(10));
    for next in [DefaultTtl::Off, DefaultTtl::Never, DefaultTtl::Seconds(1000)] {
        let policy = old.change(Change::DefaultTtl(next), at(NOW), Sequence(6), always).expect("changes");
        assert!(policy.is_expired(&expired, at(NOW)), "{next:?}");
        assert!(policy.is_expired(&own_expired, at(NOW)), "{next:?}");
        assert!(!policy.is_expired(&living, at(NOW + 500)), "{next:?}");
    }
    let lowered = old
        .change(Change::DefaultTtl(DefaultTtl::Seconds(9)), at(NOW), Sequence(6), always)
        .expect("changes");
    assert!(lowered.is_expired(&living, at(NOW)));
}

#[test]
fn t13_an_item_written_after_the_change_is_not_covered_by_it() {
    let policy = Policy::new(DefaultTtl::Seconds(1))
        .change(Change::DefaultTtl(DefaultTtl::Off), at(NOW), Sequence(5), always)
        .expect("changes");
    assert!(!policy.is_expired(&header(NOW - 100, OwnTtl::Absent), at(NOW)));
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
    assert_eq!(second.expired_through(Queue::Inherit, at(NOW)), Some(from_seconds(NOW - 50)));
    assert_eq!(second.forget(Queue::Inherit, from_seconds(NOW - 51), &[]), None);
    let forgotten = second.forget(Queue::Inherit, from_seconds(NOW - 50), &[]).expect("forgets");
    assert!(forgotten.cutoffs.is_empty() && forgotten.version > second.version);
}

#[test]
fn t13_a_cutoff_stays_for_each_item_that_the_purge_leaves_and_no_more() {
    let (mut policy, mut now) = (Policy::new(DefaultTtl::Seconds(10)), NOW);
    policy.lifecycle.history_minutes = Some(60);
    let left = [NOW - 20, NOW - 15].map(from_seconds);
    let place = |base| QueuePosition { queue: Queue::Inherit, base };
    let instants = |policy: &Policy| left.map(|base| policy.instant(place(base), Sequence(0)));
    let before = instants(&policy);
    for change in 0..600 {
        let ttl = if change % 2 == 0 { 20 } else { 10 };
        let change = Change::DefaultTtl(DefaultTtl::Seconds(ttl));
        policy = policy.change(change, at(now), Sequence(6 + now), always).expect("changes");
        let through = policy.expired_through(Queue::Inherit, at(now)).expect("something has expired");
        policy = policy.forget(Queue::Inherit, through, &left).unwrap_or(policy);
        assert!(policy.cutoffs.len() <= 2, "{:?}", policy.cutoffs);
        assert_eq!(instants(&policy), before, "they expired when they did");
        now += 5;
    }
    let off = policy.change(Change::DefaultTtl(DefaultTtl::Off), at(now), Sequence(9999), always);
    let off = off.expect("changes").forget(Queue::Inherit, Millis::MAX, &left).expect("forgets");
    assert!(left.iter().all(|base| off.expires(place(*base), Sequence(5), at(now))));
    let forgotten = off.forget(Queue::Inherit, Millis::MAX, &[]).expect("forgets");
    assert!(forgotten.cutoffs.iter().all(|cutoff| cutoff.queue != Queue::Inherit));
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

/// Returns a policy with date rules in force: (id, delay in milliseconds).
fn dated(default_ttl: DefaultTtl, rules: &[(u32, Millis)]) -> Policy {
    rules.iter().fold(Policy::new(default_ttl), |policy, (id, delay_ms)| {
        let added = policy.change(Change::AddRule { id: *id }, at(NOW), Sequence(1), never).expect("adds");
        let delay = Change::SetDelay { id: *id, delay_ms: *delay_ms };
        added.change(delay, at(NOW), Sequence(1), never).expect("comes into force")
    })
}

/// Returns a queue without entries.
#[expect(clippy::unnecessary_wraps, reason = "the signature of `occupied`")]
fn never(_: Queue, _: Millis) -> Result<bool> {
    Ok(false)
}

/// Queues up to this number have an entry everywhere, others have none.
fn up_to(last: u16) -> impl Fn(Queue, Millis) -> Result<bool> {
    move |queue, _| Ok(queue.number() <= last)
}

/// Returns the header of an item that is written under a policy, with the same date for every rule.
fn dated_header(policy: &Policy, sequence: u64, ttl: OwnTtl, date: Option<Millis>) -> Header {
    Header { bases: policy.bases(|_| date), ..Header::new(Sequence(sequence), NOW, ttl) }
}

fn millis(millis: Millis) -> Time {
    Time::from_millis(millis.unsigned_abs())
}

#[test]
fn t27_expired_from_the_millisecond_of_date_and_delay() {
    let now = from_seconds(NOW);
    for delay in [0, 1, 999, 60_000, from_seconds(i32::MAX as u64)] {
        let policy = dated(DefaultTtl::Off, &[(7, delay)]);
        for date in [now, now + 1, now - 1, 0] {
            let item = dated_header(&policy, 5, OwnTtl::Absent, Some(date));
            for instant in
                [date + delay - 1, date + delay, date + delay + 1].into_iter().filter(|at| *at >= 0)
            {
                let expected = instant >= date + delay;
                assert_eq!(policy.is_expired(&item, millis(instant)), expected, "{delay} {date} {instant}");
            }
            assert_eq!(policy.expiry_time(&item), Some(millis(date + delay)));
        }
    }
}

#[test]
fn t27_no_date_never_and_a_date_before_1970_at_once() {
    let policy = dated(DefaultTtl::Off, &[(7, 1000)]);
    let dateless = dated_header(&policy, 5, OwnTtl::Absent, None);
    assert!(!policy.is_expired(&dateless, Time::LAST) && policy.expiry_time(&dateless).is_none());
    for date in [Millis::MIN, -1_000_000, -1] {
        let item = dated_header(&policy, 5, OwnTtl::Absent, Some(date));
        assert!(policy.is_expired(&item, at(1)), "written expired: {date}");
    }
    let far = dated_header(&policy, 5, OwnTtl::Absent, Some(Millis::MAX));
    assert!(!policy.is_expired(&far, Time::LAST), "T7: the far future means not yet");
}

/// T27: the earliest rule wins; `ttl` = -1 stops only the ttl rule.
#[test]
fn t27_the_earliest_rule_wins() {
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
    for (own, default, by_ttl) in cells {
        for delays in [[3, 30], [30, 3], [8, 9], [50, 60]] {
            let policy = dated(default, &[(1, delays[0] * 1000), (2, delays[1] * 1000)]);
            let item = dated_header(&policy, 5, own, Some(from_seconds(NOW)));
            let by_date = delays.iter().min().map(|delay| delay.unsigned_abs());
            let lives = by_ttl.into_iter().chain(by_date).min().expect("it expires by a date at the latest");
            for age in 0..70 {
                let expired = policy.is_expired(&item, at(NOW + age));
                assert_eq!(expired, age >= lives, "{own:?} {default:?} {delays:?} age {age}");
            }
        }
    }
}

#[test]
fn t27_a_rule_expires_no_item_until_it_is_in_force() {
    let policy = Policy::new(DefaultTtl::Off)
        .change(Change::AddRule { id: 7 }, at(NOW), Sequence(1), never)
        .expect("adds");
    let item = dated_header(&policy, 5, OwnTtl::Absent, Some(0));
    assert_eq!(item.bases.len(), 1, "but an item that is written joins its queue");
    assert!(
        !policy.is_expired(&item, Time::LAST)
            && policy.expired_through(item.bases[0].queue, Time::LAST).is_none()
    );
    let force = Change::SetDelay { id: 7, delay_ms: 0 };
    assert!(!policy.judges(&force), "it comes into force whatever the clock says");
    let policy = policy.change(force, at(NOW), Sequence(9), always).expect("comes into force");
    assert!(policy.is_expired(&item, at(NOW)) && policy.cutoffs.is_empty());
    assert!(policy.judges(&Change::DropRule { id: 7 }));
}

/// T13, T27: items that had expired when a rule was relaxed or dropped stay expired. Items written later are judged
/// by the new rules, however far back their dates lie.
#[test]
fn t27_a_relaxed_or_dropped_rule_revives_nothing() {
    let old = dated(DefaultTtl::Off, &[(7, 10_000)]);
    let before = |age: u64| dated_header(&old, 5, OwnTtl::Absent, Some(from_seconds(NOW - age)));
    for change in [Change::SetDelay { id: 7, delay_ms: 1_000_000 }, Change::DropRule { id: 7 }] {
        let policy = old.change(change.clone(), at(NOW), Sequence(6), up_to(16)).expect("changes");
        for now in [NOW, NOW + 900] {
            assert!(policy.is_expired(&before(10), at(now)), "{change:?}");
            assert!(!policy.is_expired(&before(9), at(now)), "{change:?}");
            let later = dated_header(&policy, 7, OwnTtl::Absent, Some(from_seconds(NOW - 90)));
            assert!(!policy.is_expired(&later, at(now)), "{change:?}");
        }
    }
}

/// A stricter rule expires everything that the old one had expired, at every later time: it needs no cutoff and no
/// other queue.
#[test]
fn t27_a_stricter_rule_leaves_nothing_behind() {
    let old = dated(DefaultTtl::Off, &[(7, 10_000)]);
    let stricter = Change::SetDelay { id: 7, delay_ms: 9_999 };
    let policy = old.change(stricter, at(NOW), Sequence(6), up_to(16)).expect("changes");
    assert!(policy.cutoffs.is_empty() && policy.rules[0].queues == old.rules[0].queues);
}

#[test]
fn a_queue_with_a_cutoff_is_never_the_newest_and_is_so_again_once_it_has_none() {
    let longer = |policy: &Policy, delay_ms, occupied: &[u16]| {
        let change = Change::SetDelay { id: 7, delay_ms };
        let occupied = |queue: Queue, _| Ok(occupied.contains(&queue.number()));
        policy.change(change, at(NOW), Sequence(6), occupied).expect("changes")
    };
    let queues = |numbers: &[u16]| numbers.iter().map(|number| Queue::Date(*number)).collect::<Vec<_>>();
    let policy = dated(DefaultTtl::Off, &[(7, 0)]);
    assert_eq!(policy.rules[0].queues, queues(&[16]));
    let policy = longer(&policy, 1000, &[]);
    assert_eq!(policy.rules[0].queues, queues(&[16]), "no item had expired");
    let policy = longer(&policy, 2000, &[16]);
    assert_eq!(policy.rules[0].queues, queues(&[16, 17]));
    let policy = longer(&policy, 3000, &[16, 17]);
    assert_eq!(policy.rules[0].queues, queues(&[16, 17, 18]));
    assert_eq!(policy.cutoffs.len(), 2, "a nearer cutoff adds nothing to a farther one");
    let policy = policy.forget(Queue::Date(16), from_seconds(NOW), &[]).expect("forgets");
    let policy = longer(&policy, 4000, &[17, 18]);
    assert_eq!(
        policy.rules[0].queues,
        queues(&[17, 18, 16]),
        "who is left there is judged like all who join"
    );
    let dropped = policy.change(Change::DropRule { id: 7 }, at(NOW), Sequence(7), up_to(18)).expect("drops");
    assert!(dropped.queues().contains(&Queue::Date(18)), "the purge still visits what had expired");
    assert!(dropped.groups().iter().all(|group| group.len() == 1 || group[0] == Queue::Inherit));
}

#[test]
fn numbers_of_queues_are_not_used_again_while_items_may_be_in_them() {
    let mut policy = dated(DefaultTtl::Off, &[(1, 0), (2, 0)]);
    policy.last_queue = u16::MAX - 1;
    let add = |policy: &Policy, id| policy.change(Change::AddRule { id }, at(NOW), Sequence(6), up_to(19));
    policy = add(&policy, 3).expect("adds");
    assert_eq!(policy.rule(3).expect("there").newest(), Queue::Date(u16::MAX));
    policy = add(&policy, 4).expect("adds");
    assert_eq!(policy.rule(4).expect("there").newest(), Queue::Date(20), "those before are taken or in use");
    assert!(policy.change(Change::AddRule { id: 5 }, at(NOW), Sequence(6), always).is_err(), "none is free");
}

#[test]
fn a_rule_is_added_once_and_changed_only_if_it_is_there() {
    let policy = dated(DefaultTtl::Off, &[(1, 0)]);
    assert!(policy.change(Change::AddRule { id: 1 }, at(NOW), Sequence(6), never).is_err());
    assert!(policy.change(Change::SetDelay { id: 2, delay_ms: 0 }, at(NOW), Sequence(6), never).is_err());
    assert!(
        !policy.differs(&Change::DropRule { id: 2 })
            && !policy.differs(&Change::SetDelay { id: 1, delay_ms: 0 })
    );
}

#[test]
fn an_index_build_adds_a_base_and_leaves_the_others() {
    let policy = dated(DefaultTtl::Off, &[(1, 0), (2, 0)]);
    let item = dated_header(&policy, 5, OwnTtl::Absent, Some(50));
    let dropped = policy.change(Change::DropRule { id: 1 }, at(NOW), Sequence(6), never).expect("drops");
    let added = dropped.change(Change::AddRule { id: 3 }, at(NOW), Sequence(7), never).expect("adds");
    let bases = added.rebase(&item, 3, Some(60));
    let expected = [(Queue::Date(17), 50), (Queue::Date(18), 60)];
    assert_eq!(bases.iter().map(|place| (place.queue, place.base)).collect::<Vec<_>>(), expected);
    let item = Header { bases, ..item };
    assert_eq!(added.rebase(&item, 3, None).len(), 1, "a date that is gone");
}

#[test]
fn a_policy_with_rules_reads_back_as_written_and_one_without_has_no_byte_for_them() {
    let mut policy = dated(DefaultTtl::Never, &[(1, 0), (2, 2_147_483_647_000)]);
    assert_eq!(Policy::decode(&policy.encode()), Ok(policy.clone()));
    for change in [
        Change::SetDelay { id: 1, delay_ms: 5 },
        Change::AddRule { id: u32::MAX },
        Change::DropRule { id: 2 },
        Change::DropRule { id: 1 },
        Change::DropRule { id: u32::MAX },
    ] {
        policy = policy.change(change, at(NOW), Sequence(9), up_to(17)).expect("changes");
        let bytes = policy.encode();
        assert_eq!(Policy::decode(&bytes), Ok(policy.clone()));
        assert!(Policy::decode(&bytes[..bytes.len() - 1]).is_err());
    }
    assert!(policy.rules.is_empty() && policy.last_queue != 0, "the numbers that were used are remembered");
    assert_eq!(Policy::new(DefaultTtl::Seconds(5)).encode(), [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0]);
}
