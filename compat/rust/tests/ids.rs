//! The ids of `compat/ids.json` through the Rust SDK: ids that the service accepts work in every operation.

use azure_data_cosmos::models::{PatchInstructions, PatchOperation, TimeToLive};
use azure_data_cosmos::{ContainerClient, FeedScope, Query, TransactionalBatch};
use bolide_compat::{Server, container, database, refused, status};
use futures::TryStreamExt;
use serde_json::{Value, json};

const TABLE: &str = include_str!("../../ids.json");

fn ids(kinds: &[&str]) -> Vec<String> {
    let table: Value = serde_json::from_str(TABLE).expect("the table is JSON");
    let list = |kind: &&str| table[kind].as_array().expect("a list").clone();
    kinds.iter().flat_map(list).map(|id| id.as_str().expect("a text").to_owned()).collect()
}

/// The ids that this client cannot name in a path; the table says why.
fn unnamed() -> Vec<String> {
    let table: Value = serde_json::from_str(TABLE).expect("the table is JSON");
    table["unnamed"]["rust"].as_object().expect("ids with reasons").keys().cloned().collect()
}

async fn found(container: &ContainerClient, id: &str) -> Vec<String> {
    let query =
        Query::from("SELECT VALUE c.id FROM c WHERE c.id = @id").with_parameter("@id", id).expect("a text");
    let rows = container.query_items(query, FeedScope::partition("p"), None).await.expect("the query starts");
    rows.try_collect().await.expect("the query ends")
}

async fn results_of(container: &ContainerClient, batch: TransactionalBatch) -> Vec<u16> {
    match container.execute_transactional_batch(batch, None).await {
        Ok(response) => {
            let answer = response.into_model().expect("results");
            answer.results().iter().map(|result| result.status_code()).collect()
        }
        Err(error) => vec![status(&error)],
    }
}

#[tokio::test]
async fn every_operation_works_on_what_the_service_takes() {
    let server = Server::start();
    let database = database(&server.client().await, "ids").await;
    let container = container(&database, "c", TimeToLive::NoDefault).await;
    let unnamed = unnamed();
    for id in ids(&["accepted", "escaped"]).into_iter().filter(|id| !unnamed.contains(id)) {
        let item = json!({"id": id, "pk": "p", "n": 1});
        container.create_item("p", &id, &item, None).await.unwrap_or_else(|error| panic!("{id}: {error}"));
        let read = container.read_item("p", &id, None).await.unwrap_or_else(|error| panic!("{id}: {error}"));
        // Over HTTP/2, as this client speaks by default.
        let duration = read.headers().server_duration();
        assert!(duration.is_some(), "{id}");
        assert_eq!(read.into_model::<Value>().expect("a JSON body")["id"], id.as_str());
        container.replace_item("p", &id, &item, None).await.unwrap_or_else(|error| panic!("{id}: {error}"));
        let patch = PatchInstructions::new().with_operation(PatchOperation::set("/n", json!(2)));
        container.patch_item("p", &id, patch, None).await.unwrap_or_else(|error| panic!("{id}: {error}"));
        container.upsert_item("p", &id, &item, None).await.unwrap_or_else(|error| panic!("{id}: {error}"));
        assert_eq!(found(&container, &id).await, [id.as_str()]);
        let batch = TransactionalBatch::new("p").read_item(id.clone(), None);
        assert_eq!(results_of(&container, batch).await, [200], "{id}");
        container.delete_item("p", &id, None).await.unwrap_or_else(|error| panic!("{id}: {error}"));
        let missing = container.read_item("p", &id, None).await.expect_err("it was deleted");
        assert_eq!(status(&missing), 404, "{id}");
    }
}

/// Items whose address would be another: they are created, found and deleted without one. Once a request that names such an id
/// succeeds, its entry in the table is to be removed.
#[tokio::test]
async fn what_the_client_cannot_name_in_a_path_works_without_one() {
    let server = Server::start();
    let database = database(&server.client().await, "ids").await;
    let container = container(&database, "c", TimeToLive::NoDefault).await;
    for id in unnamed().into_iter().chain(ids(&["dots"])) {
        let item = json!({"id": id, "pk": "p"});
        container.create_item("p", &id, &item, None).await.unwrap_or_else(|error| panic!("{id}: {error}"));
        container.upsert_item("p", &id, &item, None).await.unwrap_or_else(|error| panic!("{id}: {error}"));
        assert_eq!(found(&container, &id).await, [id.as_str()]);
        refused(401, container.read_item("p", &id, None).await);
        refused(401, container.replace_item("p", &id, &item, None).await);
        refused(401, container.delete_item("p", &id, None).await);
        let batch = TransactionalBatch::new("p")
            .read_item(id.clone(), None)
            .replace_item(id.clone(), &item, None)
            .expect("an item")
            .delete_item(id.clone(), None);
        assert_eq!(results_of(&container, batch).await, [200, 200, 204], "{id:?}");
        assert!(found(&container, &id).await.is_empty(), "{id:?}");
    }
}

#[tokio::test]
async fn what_no_path_can_name_is_refused_at_creation() {
    let server = Server::start();
    let database = database(&server.client().await, "ids").await;
    let container = container(&database, "c", TimeToLive::NoDefault).await;
    for id in ids(&["refused"]) {
        let item = json!({"id": id, "pk": "p"});
        let refused = container.create_item("p", &id, &item, None).await.expect_err("refused");
        assert_eq!(status(&refused), 400, "{id}: {refused}");
        assert!(found(&container, &id).await.is_empty(), "{id}");
    }
}
