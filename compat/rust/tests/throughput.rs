//! Throughput through the Rust SDK: offers of containers and databases, and requests beyond them. Budgets run on real time
//! (T29); only the SDK waits.

use std::collections::HashMap;

use azure_core::http::headers::{HeaderName, HeaderValue};
use azure_data_cosmos::models::{ContainerProperties, ThroughputProperties};
use azure_data_cosmos::options::{
    CreateContainerOptions, CreateDatabaseOptions, ItemWriteOptions, OperationOptionsBuilder,
    ThrottlingRetryOptionsBuilder,
};
use azure_data_cosmos::{ContainerClient, CosmosClient, DatabaseClient, FeedScope, Query, SubStatusCode};
use bolide_compat::{Server, database, status};
use futures::TryStreamExt;
use serde_json::{Value, json};

/// More than three seconds' worth of 400 units: each of these items costs 50 or more to write.
const ITEMS: usize = 30;
const LARGE_BYTES: usize = 100_000;

/// The SDK has no option for it; the protocol has a header.
async fn database_with(client: &CosmosClient, id: &str, throughput: &'static str) -> DatabaseClient {
    let name = HeaderName::from_static("x-ms-offer-throughput");
    let headers = HashMap::from([(name, HeaderValue::from_static(throughput))]);
    let operation = OperationOptionsBuilder::new().with_custom_headers(headers).build();
    let options = CreateDatabaseOptions::default().with_operation_options(operation);
    client.create_database(id, Some(options)).await.expect("the database is created");
    client.database_client(id.to_owned())
}

async fn container(
    database: &DatabaseClient,
    id: &str,
    throughput: Option<ThroughputProperties>,
) -> ContainerClient {
    let properties = ContainerProperties::new(id.to_owned(), "/pk".into());
    let options = throughput.map(|throughput| CreateContainerOptions::default().with_throughput(throughput));
    database.create_container(properties, options).await.expect("the container is created");
    database.container_client(id.to_owned(), None).await.expect("the container is found")
}

fn large(number: usize) -> (String, Value) {
    let id = number.to_string();
    let item = json!({"id": id, "pk": "p", "fill": "x".repeat(LARGE_BYTES)});
    (id, item)
}

#[tokio::test]
async fn offers_of_containers_and_databases_are_read_and_replaced() {
    let server = Server::start();
    let client = server.client().await;
    let shared = database_with(&client, "shared", "600").await;
    let own = container(&shared, "own", Some(ThroughputProperties::manual(400))).await;
    let scaled = container(&shared, "scaled", Some(ThroughputProperties::autoscale(4000, Some(10)))).await;
    let none = container(&shared, "none", None).await;

    let of_database = async || shared.read_throughput(None).await.expect("read").expect("an offer");
    let of_container =
        async |container: &ContainerClient| container.read_throughput(None).await.expect("read");
    assert_eq!(of_database().await.throughput(), Some(600));
    assert_eq!(of_container(&own).await.expect("an offer").throughput(), Some(400));
    let autoscale = of_container(&scaled).await.expect("an offer");
    assert_eq!((autoscale.autoscale_maximum(), autoscale.autoscale_increment()), (Some(4000), Some(10)));
    assert!(of_container(&none).await.is_none(), "it shares its database's");

    let replaced = own.begin_replace_throughput(ThroughputProperties::manual(500), None).await;
    let replaced = replaced.expect("begun").await.expect("done").into_model().expect("an offer");
    assert_eq!(replaced.throughput(), Some(500));
    assert_eq!(of_container(&own).await.expect("an offer").throughput(), Some(500));
    let replaced = shared.begin_replace_throughput(ThroughputProperties::manual(700), None).await;
    replaced.expect("begun").await.expect("done");
    assert_eq!(of_database().await.throughput(), Some(700));
    let refused = own.begin_replace_throughput(ThroughputProperties::manual(450), None).await;
    assert_eq!(refused.err().map(|error| status(&error)), Some(400), "not a multiple of a hundred");
    assert_eq!(of_container(&own).await.expect("an offer").throughput(), Some(500));
}

#[tokio::test]
async fn beyond_the_throughput_the_sdk_waits_as_told_and_succeeds() {
    let server = Server::start_with(&["--enforce-throughput"]);
    let client = server.client().await;
    let database = database(&client, "enforced").await;

    let met = container(&database, "met", Some(ThroughputProperties::manual(400))).await;
    let no_retries = ThrottlingRetryOptionsBuilder::new().with_max_retry_count(0).build();
    let impatient = OperationOptionsBuilder::new().with_throttling_retry_options(no_retries).build();
    let mut refusal = None;
    for number in 0..ITEMS {
        let (id, item) = large(number);
        let options = ItemWriteOptions::default().with_operation_options(impatient.clone());
        if let Err(error) = met.create_item("p", &id, item, Some(options)).await {
            refusal = Some((status(&error), error.status().sub_status()));
            break;
        }
    }
    assert_eq!(
        refusal,
        Some((429, Some(SubStatusCode::new(3200)))),
        "a client that does not wait is refused"
    );

    let waited = container(&database, "waited", Some(ThroughputProperties::manual(400))).await;
    for number in 0..ITEMS {
        let (id, item) = large(number);
        waited.create_item("p", &id, item, None).await.expect("created, after a while");
    }
    let query = Query::from("SELECT VALUE COUNT(1) FROM c");
    let pages = waited.query_items::<Value>(query, FeedScope::partition("p"), None).await;
    let counted: Vec<Value> = pages.expect("the query starts").try_collect().await.expect("the query ends");
    assert_eq!(counted, [json!(ITEMS)]);
}
