//! Views: what they may be made of.

use crate::client::{Server, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_view_does_not_look_into_itself() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for command in [
        r#"{"create": "a", "viewOn": "source", "pipeline": []}"#,
        r#"{"create": "b", "viewOn": "a", "pipeline": [{"$match": {"from": "d"}}]}"#,
        r#"{"create": "c", "viewOn": "source", "pipeline": [{"$facet": {"x": [{"$lookup": {"from": "b", "pipeline": [], "as": "o"}}]}}]}"#,
        // A field that is called like an option of a stage names no collection.
        r#"{"create": "d", "viewOn": "b", "pipeline": []}"#,
    ] {
        client.done("db", json(command)).await;
    }
    for command in [
        r#"{"create": "self", "viewOn": "self", "pipeline": []}"#,
        r#"{"create": "self", "viewOn": "x", "pipeline": [{"$unionWith": "self"}]}"#,
        r#"{"collMod": "a", "viewOn": "a", "pipeline": []}"#,
        r#"{"collMod": "a", "viewOn": "b", "pipeline": []}"#,
        r#"{"collMod": "a", "viewOn": "source", "pipeline": [{"$unionWith": {"coll": "c", "pipeline": []}}]}"#,
        r#"{"collMod": "a", "viewOn": "source", "pipeline": [{"$lookup": {"from": "x", "pipeline": [{"$unionWith": "d"}], "as": "o"}}]}"#,
    ] {
        assert_eq!(client.fails("db", json(command)).await.0, 5, "{command}");
    }
    assert_eq!(client.fails("db", json(r#"{"collMod": "a", "viewOn": "source"}"#)).await.0, 72);
    client
        .done("db", json(r#"{"collMod": "a", "viewOn": "other", "pipeline": [{"$unionWith": "source"}]}"#))
        .await;
    client.done("db", json(r#"{"find": "c"}"#)).await;
}
