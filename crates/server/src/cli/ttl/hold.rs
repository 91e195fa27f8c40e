//! `bolide ttl hold place|lift|list`.

use anyhow::{Result, bail};
use document::{Object, Value};
use hyper::Method;

use crate::cli::status::{at, number};
use crate::client::Client;
use crate::figures::{Lean, date, table};
use crate::place::{Api, Named, Place};

/// What becomes of a hold.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Request {
    /// Hold a whole container, or one item of it.
    Place {
        #[command(flatten)]
        target: Target,
        /// Why; whoever is refused is told.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Lift the hold of a container, or of one item of it.
    Lift {
        #[command(flatten)]
        target: Target,
        /// Lift it however many items expire at once by that.
        #[arg(long)]
        confirm: bool,
    },
    /// List what is held.
    List {
        #[command(flatten)]
        place: Named,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What is held.
#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    #[command(flatten)]
    place: Named,
    /// The item of that id, of a container.
    #[arg(long, value_name = "ID", requires = "partition_key")]
    id: Option<String>,
    /// Its partition key: a JSON value or array; what is no JSON is text.
    #[arg(long, value_name = "KEY", requires = "id")]
    partition_key: Option<String>,
    /// The document whose _id this is, of a collection: Extended JSON; what is no JSON is text.
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    document_id: Option<String>,
}

impl Target {
    /// The item as a body names it; none if the whole container is meant.
    fn item(&self, place: &Place) -> Result<Option<Object>> {
        let mut body = Object::new();
        match (place.api, &self.id, &self.partition_key, &self.document_id) {
            (_, None, _, None) => return Ok(None),
            (Api::NoSql, Some(id), Some(key), None) => {
                body.insert("id", id.as_str());
                body.insert("partitionKey", lenient(key));
            }
            (Api::MongoDb, None, None, Some(id)) => {
                body.insert("_id", lenient(id));
            }
            (Api::NoSql, ..) => bail!("an item of a container is named by --id and --partition-key"),
            (Api::MongoDb, ..) => bail!("a document of a collection is named by --document-id"),
        }
        Ok(Some(body))
    }
}

/// JSON, or text for whoever does not like quotes within quotes.
fn lenient(text: &str) -> Value {
    document::parse_json(text.as_bytes()).unwrap_or_else(|_| Value::String(text.to_owned()))
}

pub(super) fn run(request: &Request, client: &mut Client) -> Result<()> {
    match request {
        Request::Place { target, reason } => {
            let place = target.place.find(client)?;
            let told = if let Some(mut item) = target.item(&place)? {
                item.insert("reason", reason.as_str());
                client.send_json(&Method::PUT, &place.path("hold"), &Value::Object(item))?;
                "the item is held"
            } else {
                let mut hold = Object::new();
                hold.insert("reason", reason.as_str());
                wish(client, &place, Value::Object(hold))?;
                "all of it is held"
            };
            println!("{place}: {told}");
            Ok(())
        }
        Request::Lift { target, confirm } => {
            if *confirm {
                client.confirm_expiry();
            }
            let place = target.place.find(client)?;
            if let Some(item) = target.item(&place)? {
                client.send_json(&Method::DELETE, &place.path("hold"), &Value::Object(item))?;
                println!("{place}: the item is held no more");
            } else {
                wish(client, &place, Value::Null)?;
                println!("{place}: it is held no more");
            }
            Ok(())
        }
        Request::List { place, json } => {
            let place = place.find(client)?;
            list(client, &place, *json)
        }
    }
}

fn wish(client: &mut Client, place: &Place, hold: Value) -> Result<()> {
    let mut body = Object::new();
    body.insert("hold", hold);
    client.send_json(&Method::PATCH, &place.path("ttl"), &Value::Object(body))?;
    Ok(())
}

fn list(client: &mut Client, place: &Place, json: bool) -> Result<()> {
    let whole = client.get_json(&place.path("ttl"))?;
    let whole = at(&whole, &["wishes", "hold", "reason"]).and_then(Value::as_str).map(str::to_owned);
    let items = items(client, place)?;
    if json {
        let mut all = Object::new();
        all.insert("container", whole.map_or(Value::Null, Value::String));
        all.insert("items", Value::Array(items));
        println!("{}", Value::Object(all).to_json());
        return Ok(());
    }
    match whole {
        Some(reason) => println!("{place}: all of it is held: {reason}"),
        None if items.is_empty() => println!("{place}: nothing is held"),
        None => {}
    }
    let rows = items.iter().map(|item| {
        let shown = |name| item.get(name).map(Value::to_json).unwrap_or_default();
        let name = item
            .get("_id")
            .map_or_else(|| format!("{} {}", shown("partitionKey"), shown("id")), Value::to_json);
        let reason = at(item, &["reason"]).and_then(Value::as_str).unwrap_or_default().to_owned();
        vec![name, date(number(item, &["since"])), reason]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        print!(
            "{}",
            table(&[("item", Lean::Left), ("held since", Lean::Left), ("reason", Lean::Left)], &rows)
        );
    }
    Ok(())
}

/// All held items, page after page.
fn items(client: &mut Client, place: &Place) -> Result<Vec<Value>> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = client.get_json(&format!("{}{after}", place.path("hold")))?;
        all.extend_from_slice(page.get("held").and_then(Value::as_array).unwrap_or_default());
        match page.get("last").and_then(Value::as_i64) {
            Some(last) => after = format!("&after={last}"),
            None => return Ok(all),
        }
    }
}
