//! Irreversible actions are shown in numbers and confirmed before they are done, with forms alone.

use std::time::Duration;

use account::Kind;
use hyper::StatusCode;
use storage::Time;

use crate::browser::{Browser, KEY, READ_ONLY_KEY, START, World, post};

const HOLDS: &str = "c/nosql/shop/orders/holds";

/// Returns the page after a form, which has done nothing yet.
async fn asked(browser: &Browser<'_>, path: &str, fields: &[(&str, &str)], text: &str) -> String {
    let page = browser.send(path, fields).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(page.has(text), "no '{text}' in {}", page.text);
    assert!(page.has("This cannot be undone.") && page.has("Leave it as it is"), "{}", page.text);
    page.hidden("confirmed")
}

#[tokio::test(flavor = "multi_thread")]
async fn t31_lifting_a_hold_says_how_many_items_are_overdue_and_asks() {
    let world = World::with_orders("60");
    for number in 0..4 {
        world.put(&format!(r#"{{"id":"{number}","pk":1,"ttl":{}}}"#, if number == 3 { 9000 } else { 60 }));
    }
    let browser = world.sign_in(KEY).await;
    browser.send(HOLDS, &[("do", "hold-container"), ("reason", "case 7")]).await;
    world.engine.advance_clock(3600).unwrap();
    let lift = [("do", "lift-container")];
    let number = asked(&browser, HOLDS, &lift, "3 items are overdue and expire now.").await;
    assert_eq!((number.as_str(), world.living()), ("3", 4), "nothing was done");
    assert_eq!(browser.confirm(HOLDS, &lift).await.status, StatusCode::SEE_OTHER);
    assert_eq!(world.living(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn t31_lifting_the_hold_of_an_item_asks_only_if_it_is_overdue() {
    let world = World::with_orders("60");
    world.put(r#"{"id":"a","pk":1}"#);
    let browser = world.sign_in(KEY).await;
    let form = |what| [("do", what), ("id", "a"), ("key", "[1]")];
    browser.send(HOLDS, &form("hold")).await;
    assert_eq!(browser.send(HOLDS, &form("lift")).await.status, StatusCode::SEE_OTHER, "nothing expires");
    assert_eq!(world.living(), 1);
    browser.send(HOLDS, &form("hold")).await;
    world.engine.advance_clock(3600).unwrap();
    asked(&browser, HOLDS, &form("lift"), "1 item is overdue and expires now.").await;
    assert_eq!(world.living(), 1);
    browser.confirm(HOLDS, &form("lift")).await;
    assert_eq!(world.living(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn t29_moving_the_clock_says_how_many_items_expire_and_asks() {
    let world = World::with_orders("60");
    for number in 0..3 {
        world.put(&format!(r#"{{"id":"{number}","pk":1}}"#));
    }
    let browser = world.sign_in(KEY).await;
    let before = world.engine.now().unwrap();
    asked(&browser, "clock", &[("advance", "60")], "3 items").await;
    asked(&browser, "clock", &[("advance", "59")], "0 items").await;
    assert_eq!((world.living(), world.engine.now().unwrap()), (3, before), "nothing was done");
    browser.confirm("clock", &[("advance", "60")]).await;
    assert_eq!(world.living(), 0);
}

/// A store of which three items expire within an hour and one does not, opened 90 days later.
fn leapt_at_start() -> World {
    let world = World::with_orders("60");
    for number in 0..4 {
        world.put(&format!(
            r#"{{"id":"{number}","pk":1,"ttl":{}}}"#,
            if number == 3 { 31_536_000 } else { 60 }
        ));
    }
    world.clock.reboot(Duration::from_hours(90 * 24));
    let world = world.restart();
    assert_eq!(world.living(), 1, "hidden by the wall clock");
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn t34_accepting_a_leap_at_start_says_how_many_hidden_items_it_destroys() {
    let world = leapt_at_start();
    let browser = world.sign_in(KEY).await;
    let accept = [("do", "accept")];
    let text = "expire by then and are removed for good.";
    assert_eq!(asked(&browser, "clock", &accept, text).await, "3");
    let page = browser.send("clock", &accept).await;
    assert!(page.has("3 items (") && page.has("It becomes 2027-04-15"), "{}", page.text);
    assert!(world.engine.clock_status().unwrap().suspect.is_some(), "nothing was done");
    browser.confirm("clock", &accept).await;
    assert!(world.engine.clock_status().unwrap().suspect.is_none());
    assert_eq!(world.engine.purge_at_once(None, 100).unwrap().purged_items, 3, "as many as were shown");
    assert_eq!(world.living(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn t34_accepting_a_clock_that_has_come_back_says_that_hidden_items_are_shown_again() {
    let world = leapt_at_start();
    world.clock.set_wall(Time::from_seconds(START + 10));
    let browser = world.sign_in(KEY).await;
    let accept = [("do", "accept")];
    let text = "what only the leap has hidden is shown again";
    assert_eq!(asked(&browser, "clock", &accept, text).await, "0");
    browser.confirm("clock", &accept).await;
    assert_eq!((world.engine.now().unwrap().seconds(), world.living()), (START + 10, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn t34_accepting_a_leap_while_the_server_runs_says_how_many_items_expire() {
    let world = World::with_orders("60");
    world.put(r#"{"id":"a","pk":1}"#);
    let browser = world.sign_in(KEY).await;
    let accept = [("do", "accept")];
    world.clock.set_wall(Time::from_seconds(START + 7200));
    let text = "expires by then and is removed for good.";
    assert_eq!(asked(&browser, "clock", &accept, text).await, "1");
    world.clock.set_wall(Time::from_seconds(START - 7200));
    let text = "more slowly until the system clock has caught up";
    assert_eq!(asked(&browser, "clock", &accept, text).await, "0");
    browser.confirm("clock", &accept).await;
    assert_eq!(world.living(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn t23_purging_and_deleting_say_how_much_goes_and_ask() {
    let world = World::with_orders("60");
    for number in 0..3 {
        world.put(&format!(r#"{{"id":"{number}","pk":1}}"#));
    }
    world.engine.advance_clock(60).unwrap();
    world.put(r#"{"id":"new","pk":1}"#);
    let item_owner = world.engine.owner(engine::Api::NoSql, "shop", "orders").unwrap();
    let backlog = || world.engine.purge_figures(&item_owner).unwrap().backlog.items;
    let browser = world.sign_in(KEY).await;
    for (path, form) in [("purge", vec![("do", "now")]), ("c/nosql/shop/orders/purge", vec![])] {
        asked(&browser, path, &form, "3 items").await;
        assert_eq!(backlog(), 3, "nothing was done");
    }
    browser.confirm("purge", &[("do", "now")]).await;
    assert_eq!(backlog(), 0);
    let (path, form) = ("c/nosql/shop/orders/settings/delete", [("name", "orders")]);
    asked(&browser, path, &form, "1 item").await;
    assert_eq!(world.living(), 1);
    assert_eq!(browser.confirm(path, &form).await.status, StatusCode::SEE_OTHER);
    assert_eq!(browser.get("c/nosql/shop/orders").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_an_item_names_it_and_asks() {
    let world = World::with_orders("60");
    let number = world.put(r#"{"id":"tea","pk":1}"#).rid.number;
    let browser = world.sign_in(KEY).await;
    let (item, delete) =
        (format!("c/nosql/shop/orders/item/{number}"), format!("c/nosql/shop/orders/item/{number}/delete"));
    let version = browser.get(&item).await.hidden("version");
    let form = [("version", version.as_str())];
    asked(&browser, &delete, &form, "Delete tea?").await;
    asked(&browser, &delete, &form, "1 item (").await;
    assert_eq!(world.living(), 1, "nothing was done");
    // The confirmation covers the version that was shown.
    let changed = [("text", r#"{"id":"tea","pk":1,"n":2}"#), ("version", version.as_str())];
    assert_eq!(browser.send(&item, &changed).await.status, StatusCode::SEE_OTHER);
    let stale = browser.send(&delete, &[form[0], ("confirmed", "1")]).await;
    assert_eq!((stale.status, world.living()), (StatusCode::BAD_REQUEST, 1), "{}", stale.text);
    let version = browser.get(&item).await.hidden("version");
    assert_eq!(browser.confirm(&delete, &[("version", &version)]).await.status, StatusCode::SEE_OTHER);
    assert_eq!(world.living(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_a_user_says_what_goes_with_it_and_asks() {
    let world = World::with_orders("60");
    let browser = world.sign_in(KEY).await;
    browser.send("users", &[("do", "create-nosql"), ("user", "anna"), ("database", "shop")]).await;
    for permission in ["reads", "writes"] {
        let form = [
            ("do", "permit"),
            ("of", "shop/anna"),
            ("permission", permission),
            ("mode", "Read"),
            (
                "resource",
                if permission == "reads" { "dbs/shop/colls/orders" } else { "dbs/shop/colls/orders/docs/1" },
            ),
        ];
        let made = browser.send("users", &form).await;
        assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text);
    }
    let form = [("do", "drop-nosql"), ("user", "anna"), ("database", "shop")];
    let number = asked(&browser, "users", &form, "The user and its 2 permissions are removed.").await;
    assert_eq!(number, "3");
    assert!(browser.get("users").await.has("<td>anna</td>"), "nothing was done");
    assert_eq!(browser.confirm("users", &form).await.status, StatusCode::SEE_OTHER);
    assert!(!browser.get("users").await.has("<td>anna</td>"));
    assert_eq!(browser.send("users", &form).await.status, StatusCode::NOT_FOUND, "it is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agreement_covers_the_little_that_other_clients_write_meanwhile_and_no_more() {
    let world = World::with_orders("60");
    let put = |numbers: std::ops::Range<u32>| {
        numbers.for_each(|number| drop(world.put(&format!(r#"{{"id":"{number}","pk":1}}"#))));
    };
    put(0..20);
    let browser = world.sign_in(KEY).await;
    let (path, form) = ("c/nosql/shop/orders/settings/delete", [("name", "orders")]);
    let shown = asked(&browser, path, &form, "20 items").await;
    put(20..31);
    let agreed = [form[0], ("confirmed", shown.as_str())];
    let refused = browser.send(path, &agreed).await;
    assert!(refused.has("more by now than what you were shown"), "{}", refused.text);
    assert_eq!((world.living(), refused.hidden("confirmed").as_str()), (31, "31"), "nothing was done");
    world.engine.advance_clock(60).unwrap();
    let nothing = asked(&browser, path, &form, "0 items").await;
    put(0..1);
    let refused = browser.send(path, &[form[0], ("confirmed", nothing.as_str())]).await;
    assert!(refused.has("more by now than what you were shown"), "{}", refused.text);
    put(1..30);
    assert_eq!(browser.send(path, &agreed).await.status, StatusCode::SEE_OTHER, "30 are a few more than 20");
    assert_eq!(browser.get("c/nosql/shop/orders").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn t23_purge_now_goes_on_however_much_has_expired_since_it_was_asked() {
    let world = World::with_orders("60");
    let browser = world.sign_in(KEY).await;
    let shown = asked(&browser, "purge", &[("do", "now")], "0 items").await;
    (0..30).for_each(|number| drop(world.put(&format!(r#"{{"id":"{number}","pk":1}}"#))));
    world.engine.advance_clock(60).unwrap();
    let answer = browser.send("purge", &[("do", "now"), ("confirmed", &shown)]).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    let item_owner = world.engine.owner(engine::Api::NoSql, "shop", "orders").unwrap();
    assert_eq!(world.engine.purge_figures(&item_owner).unwrap().backlog.items, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn replacing_a_key_says_which_sessions_end_and_asks() {
    let world = World::new();
    let (browser, _other) = (world.sign_in(READ_ONLY_KEY).await, world.sign_in(READ_ONLY_KEY).await);
    let owner = world.sign_in(KEY).await;
    let form = [("regenerate", "primaryReadonly")];
    let number = asked(&owner, "keys", &form, "2 sessions of this explorer signed in with it end.").await;
    assert_eq!(number, "2");
    assert!(world.keys.authenticate(READ_ONLY_KEY).is_some(), "nothing was done");
    let made = owner.confirm("keys", &form).await;
    assert!(made.has("The new primaryReadonly key"), "{}", made.text);
    assert!(world.keys.authenticate(READ_ONLY_KEY).is_none());
    assert_eq!(browser.get("help").await.status, StatusCode::SEE_OTHER, "its session is over");
    // Without an old key no client is affected.
    let made = owner.send("keys", &[("regenerate", Kind::Secondary.name())]).await;
    assert!(made.has("The new secondary key"), "{}", made.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmation_is_a_form_like_all_others() {
    let world = World::with_orders("60");
    world.put(r#"{"id":"a","pk":1}"#);
    let browser = world.sign_in(KEY).await;
    let forged = [("advance", "60"), ("confirmed", "1")];
    let refused = world.ask(post("clock", &forged, Some(&browser.cookie))).await;
    assert_eq!((refused.status, world.living()), (StatusCode::FORBIDDEN, 1), "it lacks the session's secret");
    let reader = world.sign_in(READ_ONLY_KEY).await;
    assert_eq!(reader.send("clock", &forged).await.status, StatusCode::FORBIDDEN);
    for wrong in ["", "yes", "-1", "99999999999999999999"] {
        let page = browser.send("clock", &[("advance", "60"), ("confirmed", wrong)]).await;
        assert!(page.has("This cannot be undone."), "{wrong}");
    }
    let hostile = [("advance", "60"), ("x", "\"><script>alert(1)</script>")];
    let page = browser.send("clock", &hostile).await;
    assert!(!page.has("<script>alert"), "{}", page.text);
    assert_eq!(world.living(), 1);
}
