//! Tests of admission control as a whole: queues, shares and pools together, in paused time.

use std::net::Ipv4Addr;

use tokio::task::JoinHandle;
use tokio::time::{Instant, advance};

use super::queue::WAITING_MAX;
use super::*;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn tenant(name: &str) -> Tenant {
    Tenant::new(Api::Nosql, name)
}

fn admission(queries: usize) -> Arc<Admission> {
    Arc::new(Admission::new(Bounds { queries, held_bytes: 800, connections: 1, ..Bounds::default() }))
}

/// A waiting request of this tenant; it holds its permit for `works`.
async fn wait_for_permit(
    admission: &Arc<Admission>,
    tenant: Tenant,
    works: Duration,
) -> JoinHandle<Result<(), Busy>> {
    let (other, before) = (Arc::clone(admission), admission.stats(Work::Query).waiting);
    let task = tokio::spawn(async move {
        let _permit = other.enter(tenant, Work::Query).await?;
        tokio::time::sleep(works).await;
        Ok(())
    });
    while admission.stats(Work::Query).waiting == before {
        tokio::task::yield_now().await;
    }
    task
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_waited_out_in_the_order_of_arrival() {
    let admission = admission(1);
    let a = tenant("a");
    let permit = admission.enter(a, Work::Query).await.unwrap();
    let first = wait_for_permit(&admission, a, Duration::ZERO).await;
    let second = wait_for_permit(&admission, a, Duration::ZERO).await;
    assert_eq!(admission.stats(Work::Query), WorkStats { working: 1, waiting: 2, shed: 0 });
    advance(Duration::from_millis(4_900)).await;
    drop(permit);
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (Ok(()), Ok(())));
    assert_eq!(admission.stats(Work::Query), WorkStats { working: 0, waiting: 0, shed: 0 });
    assert!(admission.enter(a, Work::Brief).await.is_ok(), "each kind has its own queue");
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_stands_is_waited_in_for_a_short_while_only_and_recovers() {
    let admission = admission(1);
    let a = tenant("a");
    let permit = admission.enter(a, Work::Query).await.unwrap();
    let began = Instant::now();
    let overlapping = wait_for_permit(&admission, a, Duration::ZERO).await;
    advance(Duration::from_millis(4_900)).await;
    let long = wait_for_permit(&admission, a, Duration::ZERO).await;
    assert!(overlapping.await.unwrap().is_err());
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    let short = wait_for_permit(&admission, a, Duration::ZERO).await;
    assert!(short.await.unwrap().is_err());
    assert_eq!(began.elapsed(), Duration::from_millis(5_500), "a tenth of the wait");
    assert!(long.await.unwrap().is_err());
    drop(permit);
    assert!(admission.enter(a, Work::Query).await.is_ok());
    assert_eq!(admission.stats(Work::Query), WorkStats { working: 0, waiting: 0, shed: 3 });

    let permit = admission.enter(a, Work::Query).await.unwrap();
    let burst = wait_for_permit(&admission, a, Duration::ZERO).await;
    advance(Duration::from_secs(4)).await;
    drop(permit);
    assert_eq!(burst.await.unwrap(), Ok(()), "a new queue is a burst again");
}

/// Forty queries of eight seconds by one key: the cheap ones of another key are all answered at once.
#[tokio::test(start_paused = true)]
async fn a_greedy_tenant_does_not_hold_up_the_work_of_another() {
    let admission = admission(8);
    let (greedy, honest) = (tenant("greedy"), tenant("honest"));
    let mut attack = Vec::new();
    for _ in 0..40 {
        let other = Arc::clone(&admission);
        attack.push(tokio::spawn(async move {
            let _permit = other.enter(greedy, Work::Query).await?;
            tokio::time::sleep(Duration::from_secs(8)).await;
            Ok::<(), Busy>(())
        }));
        tokio::task::yield_now().await;
    }
    assert_eq!(admission.stats(Work::Query), WorkStats { working: 6, waiting: 34, shed: 0 });
    for _ in 0..8 {
        let began = Instant::now();
        assert!(admission.enter(honest, Work::Query).await.is_ok());
        assert_eq!(began.elapsed(), Duration::ZERO);
        advance(Duration::from_secs(1)).await;
    }
    let mut done = 0;
    for task in attack {
        done += usize::from(task.await.unwrap().is_ok());
    }
    assert!((6..40).contains(&done), "{done}: the greedy one waits and is refused");
    assert_eq!(admission.starved(), None, "it is refused beyond its share, which says nothing of the server");
}

/// Running time is shared out, not the number of requests.
#[tokio::test(start_paused = true)]
async fn a_free_permit_goes_to_the_tenant_that_has_used_the_least_time() {
    let admission = Arc::new(Admission::new(Bounds {
        queries: 1,
        max_wait: Duration::from_secs(1000),
        ..Bounds::default()
    }));
    let (long, short) = (tenant("long"), tenant("short"));
    let mut tasks = Vec::new();
    let blocker = admission.enter(tenant("other"), Work::Query).await.unwrap();
    for _ in 0..5 {
        tasks.push(wait_for_permit(&admission, long, Duration::from_secs(10)).await);
    }
    for _ in 0..20 {
        tasks.push(wait_for_permit(&admission, short, Duration::from_secs(1)).await);
    }
    drop(blocker);
    tokio::time::sleep(Duration::from_millis(22_500)).await;
    let done = |tasks: &[JoinHandle<_>]| tasks.iter().filter(|task| task.is_finished()).count();
    let (long_done, short_done) = (done(&tasks[..5]), done(&tasks[5..]));
    assert_eq!((long_done, short_done), (1, 10), "ten seconds each");
}

#[tokio::test(start_paused = true)]
async fn too_long_a_queue_refuses_at_once_and_leaves_positions_to_others() {
    let admission = admission(1);
    let (greedy, honest) = (tenant("greedy"), tenant("honest"));
    let permit = admission.enter(greedy, Work::Query).await.unwrap();
    let mut waiting = Vec::new();
    while waiting.len() < WAITING_MAX / 4 * 3 {
        waiting.push(wait_for_permit(&admission, greedy, Duration::ZERO).await);
    }
    let began = Instant::now();
    assert!(admission.enter(greedy, Work::Query).await.is_err());
    assert_eq!(began.elapsed(), Duration::ZERO);
    let other = wait_for_permit(&admission, honest, Duration::ZERO).await;
    drop(permit);
    assert_eq!(other.await.unwrap(), Ok(()));
    for task in waiting {
        assert_eq!(task.await.unwrap(), Ok(()));
    }
    assert_eq!(admission.stats(Work::Query), WorkStats { working: 0, waiting: 0, shed: 1 });
}

/// Otherwise one tenant's statements of open transactions, or its paused writes, have every request of others refused.
#[tokio::test(start_paused = true)]
async fn requests_that_are_not_refused_take_no_position_from_those_that_are() {
    let admission = admission(8);
    let (greedy, honest) = (tenant("greedy"), tenant("honest"));
    let mut held = Vec::new();
    for _ in 0..6 {
        held.push(admission.enter(greedy, Work::Query).await.unwrap());
    }
    let wait_unbounded = || {
        let admission = Arc::clone(&admission);
        tokio::spawn(async move { drop(admission.enter_unbounded(greedy, Work::Query).await.unwrap()) })
    };
    let unbounded: Vec<_> = (0..2 * WAITING_MAX).map(|_| wait_unbounded()).collect();
    while admission.stats(Work::Query).waiting < unbounded.len() {
        tokio::task::yield_now().await;
    }
    let began = Instant::now();
    let two = (
        admission.enter(honest, Work::Query).await.unwrap(),
        admission.enter(honest, Work::Query).await.unwrap(),
    );
    assert_eq!(began.elapsed(), Duration::ZERO);
    // With all permits held, others wait as long as ever, and the greedy tenant has its own positions.
    let third = wait_for_permit(&admission, honest, Duration::ZERO).await;
    let own = wait_for_permit(&admission, greedy, Duration::ZERO).await;
    unbounded[0].abort();
    drop((held, two));
    assert_eq!((third.await.unwrap(), own.await.unwrap()), (Ok(()), Ok(())));
    for task in unbounded.into_iter().skip(1) {
        task.await.unwrap();
    }
    assert_eq!(admission.stats(Work::Query), WorkStats { working: 0, waiting: 0, shed: 0 });
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_given_up_leaves_the_queue_or_gives_back_its_permit() {
    let admission = admission(1);
    let a = tenant("a");
    let permit = admission.enter(a, Work::Query).await.unwrap();
    let given_up = wait_for_permit(&admission, a, Duration::ZERO).await;
    given_up.abort();
    assert!(given_up.await.unwrap_err().is_cancelled());
    assert_eq!(admission.stats(Work::Query).waiting, 0);
    let mut granted = Box::pin(admission.enter(a, Work::Query));
    assert!(tokio::time::timeout(Duration::from_millis(1), &mut granted).await.is_err());
    drop(permit);
    assert_eq!(admission.stats(Work::Query).working, 1, "it was granted, but not polled since");
    drop(granted);
    assert_eq!(admission.stats(Work::Query), WorkStats { working: 0, waiting: 0, shed: 0 });
}

#[tokio::test]
async fn answers_are_counted_while_they_are_held_and_refused_beyond_the_share() {
    let admission = admission(1);
    let a = tenant("a");
    let held = admission.hold(a, 200).unwrap();
    assert_eq!(admission.check_memory(a, Work::Query), Err(Busy { retry_after_ms: 100 }));
    assert_eq!(admission.check_memory(a, Work::Brief), Ok(()));
    let more = admission.hold(a, 100).unwrap();
    assert!(admission.check_memory(a, Work::Brief).is_err() && admission.hold(a, 1).is_err());
    assert!(admission.enter(tenant("b"), Work::Query).await.is_ok(), "another tenant has room");
    assert!(admission.enter(a, Work::Query).await.is_err(), "memory is checked when the permit is granted");
    assert_eq!(admission.stats(Work::Query).working, 0);
    drop((held, more));
    assert_eq!((admission.held_bytes(), admission.refused_for_bytes()), (0, 4));
}

/// Otherwise queries that begin together would all find memory, and together exceed it.
#[tokio::test]
async fn a_query_under_way_is_counted_with_a_page() {
    let admission = Admission::new(Bounds { queries: 2, held_bytes: 16 * PAGE_BYTES, ..Bounds::default() });
    let a = tenant("a");
    let first = admission.enter(a, Work::Query).await.unwrap();
    let second = admission.enter(a, Work::Query).await.unwrap();
    assert_eq!(admission.held_bytes(), 2 * PAGE_BYTES);
    let answers = admission.hold(a, 2 * PAGE_BYTES).unwrap();
    assert!(admission.check_memory(a, Work::Query).is_err(), "half is held, pages included");
    assert_eq!(admission.check_memory(a, Work::Brief), Ok(()));
    drop((first, second, answers));
    assert_eq!(admission.held_bytes(), 0);
    let small = Admission::new(Bounds { queries: 2, held_bytes: 800, ..Bounds::default() });
    let _all = (small.enter(a, Work::Query).await.unwrap(), small.enter(a, Work::Query).await.unwrap());
    assert_eq!(small.held_bytes(), 100, "there is room for as many as there are permits");
}

#[tokio::test(start_paused = true)]
async fn large_bodies_wait_for_each_other_and_take_no_room_from_answers() {
    let admission = Admission::new(Bounds { held_bytes: 8 * PIECE_BYTES, ..Bounds::default() });
    let a = tenant("a");
    let first = admission.receive(a, 2 * PIECE_BYTES + 1).await.unwrap();
    assert_eq!(admission.held_bytes(), 3 * PIECE_BYTES);
    let (second, ()) = tokio::join!(admission.receive(a, PIECE_BYTES + 1), async {
        tokio::task::yield_now().await;
        drop(first);
    });
    assert_eq!(admission.held_bytes(), 2 * PIECE_BYTES);
    let began = Instant::now();
    assert!(admission.receive(a, 3 * PIECE_BYTES).await.is_err(), "none is given back");
    assert_eq!((began.elapsed(), admission.refused_for_bytes()), (Duration::from_secs(5), 1));
    assert_eq!(admission.check_memory(a, Work::Brief), Ok(()));
    drop(second);
    let all = admission.receive_unbounded(a, 1000 * PIECE_BYTES).await;
    assert_eq!(admission.held_bytes(), 4 * PIECE_BYTES, "a body larger than the capacity gets all of it");
    drop(all);
    assert_eq!(admission.held_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_large_body_is_not_kept_waiting_by_small_ones_that_come_later() {
    let admission = Arc::new(Admission::new(Bounds { held_bytes: 8 * PIECE_BYTES, ..Bounds::default() }));
    let (a, b) = (tenant("a"), tenant("b"));
    let small = admission.receive(a, PIECE_BYTES).await.unwrap();
    let mut large = Box::pin(admission.receive(b, 4 * PIECE_BYTES));
    assert!(tokio::time::timeout(Duration::from_millis(1), &mut large).await.is_err());
    let mut later = Box::pin(admission.receive(a, PIECE_BYTES));
    assert!(tokio::time::timeout(Duration::from_millis(1), &mut later).await.is_err(), "it is not its turn");
    drop(small);
    let large = large.await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(1), &mut later).await.is_err());
    drop(large);
    assert!(later.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_tenants_which_hold_nothing_is_starved_until_one_is_admitted() {
    let admission = admission(1);
    let permit = admission.enter(tenant("a"), Work::Query).await.unwrap();
    for _ in 0..3 {
        assert!(admission.enter(tenant("a"), Work::Query).await.is_err());
    }
    assert_eq!(admission.starved(), None);
    for _ in 0..3 {
        assert!(admission.enter(tenant("b"), Work::Query).await.is_err());
    }
    let (what, lasts) = admission.starved().unwrap();
    assert_eq!((what, lasts), ("query", Duration::from_secs(10)));
    assert!(admission.enter(tenant("b"), Work::Brief).await.is_ok());
    assert!(admission.starved().is_some(), "other work does not count");
    drop(permit);
    assert!(admission.enter(tenant("b"), Work::Query).await.is_ok());
    assert_eq!(admission.starved(), None);
}

/// Protocols that cannot refuse make such tenants wait instead.
#[tokio::test(start_paused = true)]
async fn a_tenant_that_holds_nothing_and_waits_for_long_is_starved_as_if_it_were_refused() {
    let admission = admission(1);
    let permit = admission.enter(tenant("a"), Work::Query).await.unwrap();
    let mut waits = Box::pin(admission.enter_unbounded(tenant("b"), Work::Query));
    let second = Duration::from_secs(1);
    assert!(tokio::time::timeout(9 * second, &mut waits).await.is_err());
    assert_eq!(admission.starved(), None, "others would have been refused for four seconds");
    assert!(tokio::time::timeout(3 * second, &mut waits).await.is_err());
    assert_eq!(admission.starved(), Some(("query", 7 * second)));
    assert_eq!(admission.stats(Work::Query).shed, 0, "it was not refused");
    drop(permit);
    assert!(waits.await.is_some());
    assert_eq!(admission.starved(), None);
}

#[tokio::test]
async fn connections_are_counted_for_all_front_ends_together() {
    let (admission, permits) = (admission(1), Arc::new(Semaphore::new(5)));
    let first = admission.connect(Api::Nosql, &permits).await;
    assert!(first.is_some() && admission.connect(Api::Mongo, &permits).await.is_none());
    drop(first);
    assert!(admission.connect(Api::Mongo, &permits).await.is_some());
}

/// However long the evicted connection takes to end.
#[tokio::test(start_paused = true)]
async fn a_new_connection_waits_for_the_permit_of_the_evicted_one() {
    let (admission, permits) = (admission(1), Arc::new(Semaphore::new(5)));
    let place = admission.connect(Api::Nosql, &permits).await.unwrap();
    let peer = admission.peer(Api::Nosql, LOOPBACK);
    let leaving = tokio::spawn(async move {
        peer.cut_off().await;
        tokio::time::sleep(EVICTION_TIMEOUT / 2).await;
        drop(place);
    });
    let newcomer = admission.connect(Api::Nosql, &permits).await;
    assert!(newcomer.is_some() && leaving.is_finished());
    assert_eq!(admission.unauthenticated().cut_off, 1, "and no more than one");
    let stays = admission.peer(Api::Nosql, LOOPBACK);
    assert!(
        admission.connect(Api::Nosql, &permits).await.is_none(),
        "the wait for an evicted connection is limited"
    );
    drop(stays);
    let known = admission.peer(Api::Nosql, LOOPBACK);
    known.authenticate(tenant("a"));
    assert!(
        admission.connect(Api::Nosql, &permits).await.is_none(),
        "an authenticated connection is not evicted"
    );
    assert_eq!(permits.available_permits(), 4, "an unused permit is released");
}

#[test]
fn refused_clients_come_back_one_after_another() {
    let mut times: Vec<u64> = (0..400).map(|count| Busy::spread(count).retry_after_ms).collect();
    times.sort_unstable();
    times.dedup();
    assert_eq!((times.len(), times[0], times[399]), (400, 100, 499));
}

/// Work that waits for other work holds no permit meanwhile, and is not refused one afterwards.
#[tokio::test(start_paused = true)]
async fn a_permit_can_be_given_back_and_taken_again() {
    let admission = Arc::new(admission(1));
    let permit = admission.enter_owned(tenant("a"), Work::Query).await.unwrap();
    assert!(admission.enter(tenant("b"), Work::Query).await.is_err());
    let paused = permit.pause().expect("it is the only one");
    assert_eq!(admission.stats(Work::Query).working, 0);
    let other = admission.enter(tenant("b"), Work::Query).await.unwrap();
    let mut resumed = Box::pin(paused.resume());
    assert!(tokio::time::timeout(Duration::from_mins(1), &mut resumed).await.is_err());
    drop(other);
    let resumed = resumed.await;
    assert!(resumed.is_some() && admission.stats(Work::Query).working == 1);
    drop(resumed);
    assert_eq!(admission.stats(Work::Query).working, 0);
}

#[tokio::test]
async fn one_tenant_leaves_positions_of_paused_work_to_others() {
    let admission = Arc::new(Admission::default());
    let (greedy, honest) = (tenant("greedy"), tenant("honest"));
    let mut paused = Vec::new();
    let refused = loop {
        let permit = admission.enter_owned(greedy, Work::Brief).await.unwrap();
        match permit.pause() {
            Ok(permit) => paused.push(permit),
            Err(permit) => break permit,
        }
    };
    assert_eq!((paused.len(), admission.stats(Work::Brief).working), (24, 1), "it keeps its permit");
    let other = admission.enter_owned(honest, Work::Brief).await.unwrap().pause();
    assert!(other.is_ok());
    drop(refused);
    let resumed = paused.pop().unwrap().resume().await.unwrap();
    assert!(resumed.pause().is_ok(), "a position is free again");
}
