//! Time to live: created, tried in a dry run, changed, watched.

use engine::PaceStatus;
use hyper::StatusCode;
use storage::{TestClock, Time};

use crate::browser::{Browser, KEY, World};

#[tokio::test(flavor = "multi_thread")]
async fn t29_a_container_is_made_and_its_items_are_gone_when_the_clock_has_moved() {
    let world = World::new();
    let browser = world.sign_in(KEY).await;
    let form = [
        ("api", "nosql"),
        ("database", "shop"),
        ("name", "carts"),
        ("key", "/user"),
        ("ttl", "after"),
        ("amount", "10"),
        ("unit", "minutes"),
    ];
    let made = browser.send("new", &form).await;
    assert!(browser.follow(&made).await.has("TTL 10 m"));
    browser.send("c/nosql/shop/carts/new", &[("text", r#"{"id":"a","user":"u"}"#)]).await;
    browser.send("c/nosql/shop/carts/new", &[("text", r#"{"id":"b","user":"u","ttl":-1}"#)]).await;
    let list = browser.get("c/nosql/shop/carts").await;
    assert_eq!(
        (list.text.matches("data-expiry=").count(), list.text.matches("never").count()),
        (1, 2),
        "{}",
        list.text
    );
    let before = bars(&browser, "c/nosql/shop/carts/timeline?range=hour").await;
    assert_eq!((before.iter().sum::<u64>(), before[10] + before[9]), (1, 1));

    browser.confirm("clock", &[("advance", "540")]).await;
    let nearer = bars(&browser, "c/nosql/shop/carts/timeline?range=hour").await;
    assert_eq!(nearer[0], 1, "the chart moves: {nearer:?}");

    browser.confirm("clock", &[("advance", "60")]).await;
    let list = browser.get("c/nosql/shop/carts").await;
    assert_eq!(list.text.matches("data-row").count(), 1);
    assert!(list.has("1 expired"), "it waits for the purge and is not shown");
    assert_eq!(bars(&browser, "c/nosql/shop/carts/timeline?range=hour").await.iter().sum::<u64>(), 0);
    browser.confirm("c/nosql/shop/carts/purge", &[]).await;
    assert!(!browser.get("c/nosql/shop/carts").await.has("1 expired"));
}

/// T23: how fast items expire, and how the backlog develops, as the loop around the purge has measured it.
#[tokio::test(flavor = "multi_thread")]
async fn t23_the_pace_of_the_purge_is_shown_with_what_becomes_of_the_backlog() {
    let world = World::with_orders("60");
    let browser = world.sign_in(KEY).await;
    let pace = |expiring_per_second, drained_in_seconds, is_capacity_short| PaceStatus {
        expiring_per_second,
        purging_per_second: 1200,
        drained_in_seconds,
        is_capacity_short,
    };
    for (pace, rate, outlook) in [
        (pace(0, Some(0), false), "0/s", "the purge keeps up"),
        (pace(20, Some(90), false), "20/s", "drained in 1 m 30 s"),
        (pace(4400, None, false), "4,400/s", "the backlog grows"),
        (pace(4400, None, true), "4,400/s", "more than can be purged: the backlog grows"),
    ] {
        world.engine.note_purge_pace(pace);
        for path in ["purge", "purge/live"] {
            let shown = browser.get(path).await;
            assert!(shown.has(&format!(">{rate}<")) && shown.has(&format!(">{outlook}<")), "{}", shown.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_front_page_shows_the_open_connections_by_protocol() {
    let world = World::new();
    let browser = world.sign_in(KEY).await;
    for path in ["", "live"] {
        let page = browser.get(path).await;
        let shown = page.has(">1,203<") && page.has(">3 HTTP, 1,200 direct, 0 MongoDB<");
        assert!(shown, "{path}: {}", page.text);
    }
}

/// In a sentence on the clock's own page, as a badge on every page.
#[tokio::test(flavor = "multi_thread")]
async fn t34_an_offset_from_the_system_clock_is_shown_on_every_page() {
    let world = World::with_clock(TestClock::Off);
    let browser = world.sign_in(KEY).await;
    let page = browser.get("clock").await;
    assert!(page.has("in step with the system clock") && !page.has("clock offset"), "{}", page.text);
    world.clock.set_wall(Time::from_millis(1_800_000_000_000 - 12_400));
    let ahead = "12.4 s ahead of the system clock, slowing down until they agree";
    assert!(browser.get("clock").await.has(&format!("<dd>{ahead}</dd>")));
    for path in ["", "purge", "keys"] {
        let page = browser.get(path).await;
        assert!(page.has("clock offset") && page.has(ahead), "{path}: {}", page.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn t34_a_suspect_clock_is_shown_with_the_commands_that_decide() {
    let world = World::with_clock(TestClock::Off);
    let browser = world.sign_in(KEY).await;
    world.clock.set_wall(Time::from_seconds(1_800_000_000 + 7200));
    let page = browser.get("clock").await;
    for text in [
        "clock suspect",
        "while the server ran, the system clock leapt 2 h ahead",
        "<code>bolide clock accept</code>",
        "<code>bolide clock reject</code>",
    ] {
        assert!(page.has(text), "{text}: {}", page.text);
    }
    browser.confirm("clock", &[("do", "accept")]).await;
    assert!(!browser.get("clock").await.has("clock suspect"));
}

#[tokio::test(flavor = "multi_thread")]
async fn t29_a_clock_that_stands_still_is_shown_as_one() {
    for (clock, stands_still) in
        [(TestClock::Off, false), (TestClock::Runs, false), (TestClock::Stopped, true)]
    {
        let world = World::with_clock(clock);
        let page = world.sign_in(KEY).await.get("clock").await;
        assert_eq!(page.has("it stands still until it is moved"), stands_still, "{clock:?}");
        assert_eq!(page.has(" data-stopped>"), stands_still, "countdowns: {clock:?}");
    }
}

/// Returns the items of each bar of the timeline.
async fn bars(browser: &Browser<'_>, path: &str) -> Vec<u64> {
    let page = browser.get(path).await;
    let bars = page.text.split("<g class=\"bar").skip(1).map(|bar| {
        let title = bar.split("UTC: ").nth(1).unwrap();
        title.split(' ').next().unwrap().replace(',', "").parse().unwrap()
    });
    bars.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn t30_a_dry_run_tells_what_then_happens() {
    let world = World::with_orders("3600");
    for number in 0..10 {
        world.put(&format!(r#"{{"id":"{number}","pk":{number}}}"#));
        world.engine.advance_clock(60).unwrap();
    }
    let browser = world.sign_in(KEY).await;
    let form = [("ttl", "after"), ("amount", "5"), ("unit", "minutes")];
    let page = browser.get("c/nosql/shop/orders/settings/dry-run?ttl=after&amount=5&unit=minutes").await;
    let expiring: u64 =
        page.text.split("data-expiring=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    assert_eq!((expiring, world.living()), (6, 10), "nothing has changed");
    let applied = browser.send("c/nosql/shop/orders/settings/ttl", &form).await;
    assert_eq!(applied.status, StatusCode::SEE_OTHER, "{}", applied.text);
    assert_eq!(world.living(), 10 - expiring);
}

#[tokio::test(flavor = "multi_thread")]
async fn t30_the_guard_wants_to_be_told_that_it_is_meant() {
    let world = World::with_orders("3600");
    for number in 0..4 {
        world.put(&format!(r#"{{"id":"{number}","pk":{number}}}"#));
    }
    world.engine.advance_clock(600).unwrap();
    let browser = world.sign_in(KEY).await;
    let saved = browser.send("c/nosql/shop/orders/settings/lifecycle", &[("guard", "50")]).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
    let form = [("ttl", "after"), ("amount", "300"), ("unit", "seconds")];
    assert!(
        browser
            .get("c/nosql/shop/orders/settings/dry-run?ttl=after&amount=300&unit=seconds")
            .await
            .has("name=\"consent\"")
    );
    let refused = browser.send("c/nosql/shop/orders/settings/ttl", &form).await;
    assert_eq!((refused.status, world.living()), (StatusCode::CONFLICT, 4));
    assert!(refused.has("maxInstantExpiry"), "{}", refused.text);
    let meant = [form[0], form[1], form[2], ("consent", "given")];
    assert_eq!(browser.send("c/nosql/shop/orders/settings/ttl", &meant).await.status, StatusCode::SEE_OTHER);
    assert_eq!(world.living(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn t31_what_is_held_is_listed_does_not_expire_and_can_be_released() {
    let world = World::with_orders("60");
    world.put(r#"{"id":"a","pk":1}"#);
    let browser = world.sign_in(KEY).await;
    let held = browser
        .send(
            "c/nosql/shop/orders/holds",
            &[("do", "hold"), ("id", "a"), ("key", "[1]"), ("reason", "case 7")],
        )
        .await;
    assert_eq!(held.status, StatusCode::SEE_OTHER, "{}", held.text);
    world.engine.advance_clock(3600).unwrap();
    assert!(browser.get("c/nosql/shop/orders/holds").await.has("case 7"));
    assert!(browser.get("c/nosql/shop/orders").await.has("held"));
    let deleted = browser.confirm("c/nosql/shop/orders/settings/delete", &[("name", "orders")]).await;
    assert_eq!(deleted.status, StatusCode::LOCKED);
    browser.confirm("c/nosql/shop/orders/holds", &[("do", "lift"), ("id", "a"), ("key", "[1]")]).await;
    assert_eq!(world.living(), 0, "overdue: it expires when the hold ends");
    let wrong = browser.send("c/nosql/shop/orders/settings/delete", &[("name", "order")]).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    browser.confirm("c/nosql/shop/orders/settings/delete", &[("name", "orders")]).await;
    assert_eq!(browser.get("c/nosql/shop/orders").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn t28_the_tail_of_the_feed_tells_of_expiries_where_all_versions_are_kept() {
    let world = World::new();
    let browser = world.sign_in(KEY).await;
    let form = [
        ("api", "nosql"),
        ("database", "shop"),
        ("name", "log"),
        ("key", "/id"),
        ("ttl", "after"),
        ("amount", "30"),
        ("unit", "seconds"),
        ("history", "60"),
    ];
    assert_eq!(browser.send("new", &form).await.status, StatusCode::SEE_OTHER);
    browser.send("c/nosql/shop/log/new", &[("text", r#"{"id":"a"}"#)]).await;
    assert!(browser.get("c/nosql/shop/log/feed").await.has(">created<"));
    world.engine.advance_clock(30).unwrap();
    let feed = browser.get("c/nosql/shop/log/feed/live").await;
    assert!(feed.has(">expired<") && feed.has(">created<"), "{}", feed.text);
}
