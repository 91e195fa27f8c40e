//! A Bolide process and an account client for it.
//!
//! The SDK itself is used untouched: HTTP/2 with prior knowledge and item bodies in Cosmos binary JSON are its defaults.

#[path = "../../server.rs"]
mod server;

use azure_data_cosmos::models::{ContainerProperties, TimeToLive};
use azure_data_cosmos::{
    AccountEndpoint, AccountReference, ContainerClient, CosmosClient, CosmosError, DatabaseClient,
    RoutingStrategy,
};

pub use server::{EMULATOR_KEY, Server};

impl Server {
    pub async fn client(&self) -> CosmosClient {
        let endpoint: AccountEndpoint =
            format!("http://{}/", self.http_address()).parse().expect("a well-formed endpoint");
        let account = AccountReference::with_authentication_key(endpoint, EMULATOR_KEY.to_owned());
        CosmosClient::builder()
            .build(account, RoutingStrategy::ProximityTo("South Central US".into()))
            .await
            .expect("the account is readable")
    }
}

/// A database of its own, made on this server.
pub async fn database(client: &CosmosClient, id: &str) -> DatabaseClient {
    client.create_database(id, None).await.expect("the database is created");
    client.database_client(id.to_owned())
}

/// A container with partition key `/pk` and that default TTL.
pub async fn container(database: &DatabaseClient, id: &str, default_ttl: TimeToLive) -> ContainerClient {
    let properties = ContainerProperties::new(id.to_owned(), "/pk".into()).with_default_ttl(default_ttl);
    database.create_container(properties, None).await.expect("the container is created");
    database.container_client(id.to_owned(), None).await.expect("the container is found")
}

/// Checks that the server refused with that status, and returns what it said.
#[track_caller]
pub fn refused<T>(expected: u16, outcome: Result<T, CosmosError>) -> String {
    let Err(error) = outcome else { panic!("expected {expected}, not success") };
    assert!(error.is_from_wire(), "the client itself refused: {error}");
    assert_eq!(status(&error), expected, "{error}");
    error.to_string()
}

/// The HTTP status behind an SDK error.
pub fn status(error: &CosmosError) -> u16 {
    u16::from(error.status().status_code())
}
