//! Sessions in a directory, without a server: `cargo run -p bolide-embedded --example sessions`.

use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Debug, Serialize, Deserialize)]
struct Session {
    id: String,
    user: String,
    ttl: u32,
}

fn main() -> bolide::Result<()> {
    let store = bolide::Bolide::open("bolide-data")?;
    let sessions = store.container(
        "app",
        &json!({"id": "sessions", "partitionKey": {"paths": ["/user"], "kind": "Hash"}, "defaultTtl": 3600}),
    )?;
    sessions.upsert(&Session { id: "web".to_owned(), user: "ann".to_owned(), ttl: 60 })?;
    let of_ann = "SELECT * FROM c WHERE c.user = @user";
    for session in sessions.query::<Session>(of_ann, &[("@user", json!("ann"))])? {
        println!("{session:?}");
    }
    store.close()
}
