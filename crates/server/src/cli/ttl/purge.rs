//! `bolide ttl purge now|pause|resume`.

use anyhow::Result;
use document::{Object, Value};

use crate::cli::status::number;
use crate::client::Client;
use crate::figures::counted;
use crate::place::Named;

/// What the purge is told.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Request {
    /// Remove at once what has expired, everywhere or in one container.
    Now {
        /// The container or collection, as DATABASE/NAME.
        #[arg(value_name = "DATABASE/NAME")]
        name: Option<String>,
        /// Which API it belongs to, where both have one of that name.
        #[arg(long, value_parser = ["nosql", "mongodb"])]
        api: Option<String>,
    },
    /// Remove nothing until it is resumed or the server restarted. What has expired stays invisible.
    Pause,
    /// Go on.
    Resume,
}

pub(super) fn run(request: &Request, client: &mut Client) -> Result<()> {
    let mut body = Object::new();
    match request {
        Request::Pause => body.insert("paused", true),
        Request::Resume => body.insert("paused", false),
        Request::Now { name, api } => {
            if let Some(name) = name {
                let place = Named { name: name.clone(), api: api.clone() }.find(client)?;
                body.insert("database", place.database);
                body.insert("container", place.name);
                body.insert("api", place.api.word());
            }
            body.insert("now", true)
        }
    };
    let before = number(&client.get_json("/_bolide/purge")?, &["purgedItems"]);
    let after = client.post_json("/_bolide/purge", &Value::Object(body))?;
    match request {
        Request::Pause => println!("the purge is paused; {} wait for it", backlog(&after)),
        Request::Resume => println!("the purge goes on; {} wait for it", backlog(&after)),
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
