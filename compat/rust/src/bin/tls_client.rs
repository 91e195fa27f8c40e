//! A client by TLS: `tls_client ENDPOINT` writes an item and reads it. Which roots it trusts is the process's own matter
//! (`SSL_CERT_FILE`), which is why it is one.

use azure_data_cosmos::models::TimeToLive;
use azure_data_cosmos::{AccountEndpoint, AccountReference, CosmosClient, RoutingStrategy};
use bolide_compat::{EMULATOR_KEY, container, database};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let endpoint = std::env::args().nth(1).expect("an endpoint");
    let endpoint: AccountEndpoint = endpoint.parse().expect("a well-formed endpoint");
    let account = AccountReference::with_authentication_key(endpoint, EMULATOR_KEY.to_owned());
    let routing = RoutingStrategy::ProximityTo("South Central US".into());
    let client = match CosmosClient::builder().build(account, routing).await {
        Ok(client) => client,
        Err(error) => {
            eprintln!("{error:?}");
            std::process::exit(1);
        }
    };
    let database = database(&client, "tls").await;
    let container = container(&database, "c", TimeToLive::NoDefault).await;
    container.create_item("p", "1", json!({"id": "1", "pk": "p"}), None).await.expect("created");
    let item: Value =
        container.read_item("p", "1", None).await.expect("found").into_model().expect("a JSON body");
    println!("{}", item["id"]);
}
