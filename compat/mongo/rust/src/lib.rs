//! A Bolide process with its MongoDB port, and the checks of TTL tests.

#[path = "../../../server.rs"]
mod server;

use futures::TryStreamExt;
use mongodb::bson::{Document, doc};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::options::ClientOptions;
use mongodb::{Client, Collection};

use server::START_TIMEOUT;
pub use server::{EMULATOR_KEY, Server};

pub const DAY: i64 = 24 * 3600;

impl Server {
    pub async fn client(&self) -> Client {
        self.client_with("").await
    }

    /// With more options of a connection string, `&name=value` each.
    pub async fn client_with(&self, options: &str) -> Client {
        connect(&format!("mongodb://{}/?replicaSet=globaldb{options}", self.mongo_address())).await
    }
}

pub async fn connect(uri: &str) -> Client {
    let mut options = ClientOptions::parse(uri).await.expect("a well-formed connection string");
    options.server_selection_timeout = Some(START_TIMEOUT);
    Client::with_options(options).expect("valid options")
}

/// Returns the `_id`s of live documents, in order; every way of reading must agree (T14).
pub async fn living(collection: &Collection<Document>) -> Vec<i32> {
    let id = |document: &Document| document.get_i32("_id").expect("a number in _id");
    let found: Vec<Document> = collection
        .find(doc! {})
        .sort(doc! {"_id": 1})
        .await
        .expect("found")
        .try_collect()
        .await
        .expect("read");
    let ids: Vec<i32> = found.iter().map(id).collect();
    assert_eq!(collection.count_documents(doc! {}).await.expect("counted"), ids.len() as u64);
    assert_eq!(collection.estimated_document_count().await.expect("estimated"), ids.len() as u64);
    assert_eq!(collection.distinct("_id", doc! {}).await.expect("distinct").len(), ids.len());
    let rows: Vec<Document> = collection
        .aggregate([doc! {"$sort": {"_id": 1}}])
        .await
        .expect("run")
        .try_collect()
        .await
        .expect("read");
    assert_eq!(rows.iter().map(id).collect::<Vec<_>>(), ids);
    ids
}

/// The server's code in an error of the driver.
pub fn code(error: &Error) -> i32 {
    match error.kind.as_ref() {
        ErrorKind::Command(error) => error.code,
        ErrorKind::Write(WriteFailure::WriteError(error)) => error.code,
        ErrorKind::InsertMany(error) => {
            error.write_errors.as_ref().and_then(|all| Some(all.first()?.code)).unwrap_or(0)
        }
        _ => 0,
    }
}
