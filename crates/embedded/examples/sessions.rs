//! Sessions in a directory, without a server: `cargo run -p bolide-embedded --example sessions`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Debug, Serialize, Deserialize)]
struct Session {
    id: String,
    user: String,
    ttl: u32,
}

fn main() -> bolide::Result<()> {
    for session in of_ann(Path::new("sessions-data"))? {
        println!("{session:?}");
    }
    Ok(())
}

/// Opens or creates the store, writes a session that expires after a minute, and reads it back.
fn of_ann(directory: &Path) -> bolide::Result<Vec<Session>> {
    let store = bolide::Bolide::open(directory)?;
    let sessions = store.container(
        "app",
        &json!({"id": "sessions", "partitionKey": {"paths": ["/user"], "kind": "Hash"}, "defaultTtl": 3600}),
    )?;
    sessions.upsert(&Session { id: "web".to_owned(), user: "ann".to_owned(), ttl: 60 })?;
    let found = sessions.query("SELECT * FROM c WHERE c.user = @user", &[("@user", json!("ann"))])?;
    store.close()?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let found = of_ann(directory.path()).unwrap();
        assert_eq!(found.iter().map(|session| session.id.as_str()).collect::<Vec<_>>(), ["web"]);
    }
}
