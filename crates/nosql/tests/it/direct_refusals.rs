//! Refusals in direct mode: they speak of the request, and not of headers, which it does not have.

use direct::Call;
use nosql::{AccountSettings, Consistency, Limits};
use rntbd::ConsistencyLevel;
use rntbd::OperationType::{Query, Read, ReadFeed};

use crate::direct::{Fixture, ITEMS, body, create, expect, item, read};

#[tokio::test]
async fn refusals_name_no_header() {
    let fixture = Fixture::start().await;
    let mut client = fixture.connect().await;
    let payload = body("1", "");
    let feed = Call::new(ReadFeed, ITEMS).with(|tokens| tokens.partition_key_range_id = Some("0"));
    let query = Call::new(Query, ITEMS).key(r#"["p"]"#).payload(r#"{"query":"SELECT * FROM c"}"#);
    for (call, part) in [
        (
            create(&payload).with(|tokens| tokens.pre_trigger_include = Some("t")),
            "running pre-triggers ('t')",
        ),
        (
            create(&payload).with(|tokens| tokens.post_trigger_include = Some("t")),
            "running post-triggers ('t')",
        ),
        (feed.with(|tokens| tokens.a_im = Some("Everything")), "The mode of a change feed ('a-im')"),
        (
            feed.with(|tokens| {
                tokens.a_im = Some("Incremental Feed");
                tokens.if_modified_since = Some("yesterday");
            }),
            "The start of a change feed ('if-modified-since')",
        ),
        (query.with(|tokens| tokens.a_im = Some("Incremental Feed")), "A change feed with a query"),
    ] {
        let text = expect(&mut client, &call, 400).await.text();
        assert!(text.contains(part), "{text}");
        assert!(!text.contains("header"), "{text}");
    }
}

/// Clients read databases and containers at the strongest level, whatever the account's is.
#[tokio::test]
async fn a_level_stronger_than_the_one_of_the_account_is_refused_for_items_alone() {
    let account = AccountSettings { default_consistency: Some(Consistency::Session), ..Default::default() };
    let fixture = Fixture::made(Limits::default(), |service| service.with_account(account)).await;
    let mut client = fixture.connect().await;
    expect(&mut client, &create(&body("1", "")), 201).await;
    let path = item("1");
    for (level, status) in [
        (ConsistencyLevel::Strong, 400),
        (ConsistencyLevel::BoundedStaleness, 400),
        (ConsistencyLevel::Session, 200),
        (ConsistencyLevel::Eventual, 200),
    ] {
        let at_level = |call: Call<'static>| call.with(|tokens| tokens.consistency_level = Some(level));
        expect(&mut client, &read(&path).with(|tokens| tokens.consistency_level = Some(level)), status).await;
        expect(&mut client, &at_level(Call::new(Read, "dbs/db")), 200).await;
        expect(&mut client, &at_level(Call::new(Read, "dbs/db/colls/c")), 200).await;
    }
}
