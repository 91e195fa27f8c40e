//! Direct mode without memory for requests or answers: clients get an error, and keep their connections.

use std::time::Duration;

use account::Kind;
use nosql::tenant;
use transport::Bounds;

use crate::direct::{Fixture, body, create, expect, item, read};

/// Half a mebibyte for payloads, and as much for answers.
fn bounds() -> Bounds {
    Bounds { held_bytes: 1 << 20, max_wait: Duration::from_millis(50), ..Bounds::default() }
}

fn large() -> String {
    body("large", &format!(r#","x":"{}""#, "x".repeat(400_000)))
}

#[tokio::test]
async fn a_write_whose_answer_finds_no_memory_is_told_without_its_item_and_a_read_is_refused() {
    let (fixture, load) = Fixture::bounded(bounds()).await;
    let mut client = fixture.connect().await;
    let taken = load.hold(tenant(Kind::Primary), 1 << 18).unwrap();
    let made = expect(&mut client, &create(&large()), 201).await;
    assert_eq!(made.payload, None);
    let tokens = made.tokens();
    assert!(tokens.etag.is_some() && tokens.request_charge.unwrap() > 10.0);
    assert!(tokens.lsn.is_some() && tokens.item_lsn == tokens.lsn && tokens.session_token.is_some());
    let path = item("large");
    let refused = expect(&mut client, &read(&path), 429).await;
    assert!(refused.tokens().retry_after_ms.is_some());
    drop(taken);
    let found = expect(&mut client, &read(&path), 200).await;
    assert_eq!(found.tokens().etag, made.tokens().etag);
}

#[tokio::test]
async fn payloads_of_all_sizes_are_refused_without_memory_and_the_frames_behind_them_are_in_step() {
    let (fixture, load) = Fixture::bounded(bounds()).await;
    let mut client = fixture.connect().await;
    let (large, small) = (large(), body("small", ""));
    let (small_path, large_path) = (item("small"), item("large"));
    let tenant = tenant(Kind::Primary);
    let payloads = load.receive(tenant, large.len()).await.unwrap();
    expect(&mut client, &create(&large), 429).await;
    expect(&mut client, &read(&large_path), 404).await;
    drop(payloads);
    let answers = [1 << 18, 1 << 17].map(|bytes| load.hold(tenant, bytes).unwrap());
    for payload in [&large, &small] {
        let refused = expect(&mut client, &create(payload), 429).await;
        assert!(refused.tokens().retry_after_ms.is_some());
    }
    drop(answers);
    for path in [&small_path, &large_path] {
        expect(&mut client, &read(path), 404).await;
    }
    for payload in [&large, &small] {
        expect(&mut client, &create(payload), 201).await;
    }
}
