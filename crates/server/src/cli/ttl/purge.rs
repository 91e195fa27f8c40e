//! `bolide ttl purge now|pause|resume`.

use anyhow::Result;
use document::{Object, Value};

use crate::cli::status::number;
use crate::client::Client;
use crate::format::counted;
use crate::namespace::NamespaceArguments;

/// The tasks of `purge`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Request {
    /// Purge expired items at once, everywhere or in one container
    Now {
        /// The container or collection, as DATABASE/NAME
        #[arg(value_name = "DATABASE/NAME")]
        name: Option<String>,
        /// The API it belongs to, if both have one of that name
        #[arg(long, value_parser = ["nosql", "mongodb"])]
        api: Option<String>,
    },
    /// Purge nothing until resumed or until the server restarts. Expired items stay invisible
    Pause,
    /// Resume the purge
    Resume,
}

pub(super) fn run(request: &Request, client: &mut Client) -> Result<()> {
    let mut body = Object::new();
    match request {
        Request::Pause => body.insert("paused", true),
        Request::Resume => body.insert("paused", false),
        Request::Now { name, api } => {
            if let Some(name) = name {
                let namespace = NamespaceArguments { name: name.clone(), api: api.clone() }.find(client)?;
                body.insert("database", namespace.database);
                body.insert("container", namespace.name);
                body.insert("api", namespace.api.word());
            }
            body.insert("now", true)
        }
    };
    let before = number(&client.get_json("/_bolide/purge")?, &["purgedItems"]);
    let after = client.post_json("/_bolide/purge", &Value::Object(body))?;
    match request {
        Request::Pause => println!("the purge is paused; {} waiting", backlog(&after)),
        Request::Resume => println!("the purge is running; {} waiting", backlog(&after)),
        Request::Now { .. } => {
            let purged = number(&after, &["purgedItems"]).saturating_sub(before);
            println!("{} purged; {} left", counted(purged, "item"), backlog(&after));
        }
    }
    Ok(())
}

fn backlog(purge: &Value) -> String {
    counted(number(purge, &["backlog", "items"]), "expired item")
}
