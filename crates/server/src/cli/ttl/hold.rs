//! `bolide ttl hold place|lift|list`.

use anyhow::{Result, bail};
use document::{Object, Value};
use hyper::Method;

use crate::cli::status::{at, number};
use crate::client::Client;
use crate::format::{Align, date, table};
use crate::namespace::{Api, Namespace, NamespaceArguments};

/// The tasks of `hold`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Request {
    /// Hold a whole container, or one item of it
    Place {
        #[command(flatten)]
        target: Target,
        /// The reason, which is shown when a change is refused
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Lift the hold of a container, or of one item of it
    Lift {
        #[command(flatten)]
        target: Target,
        /// Lift it however many items expire at once because of that
        #[arg(long)]
        confirm: bool,
    },
    /// List what is held
    List {
        #[command(flatten)]
        namespace: NamespaceArguments,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// The target of a hold.
#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    #[command(flatten)]
    namespace: NamespaceArguments,
    /// The id of the item, for a container
    #[arg(long, value_name = "ID", requires = "partition_key")]
    id: Option<String>,
    /// The partition key of the item: a JSON value or array; anything else is text
    #[arg(long, value_name = "KEY", requires = "id")]
    partition_key: Option<String>,
    /// The _id of the document, for a collection: Extended JSON; anything else is text
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    document_id: Option<String>,
}

impl Target {
    /// Returns the item as the request body names it; `None` for the whole container.
    fn item(&self, namespace: &Namespace) -> Result<Option<Object>> {
        let mut body = Object::new();
        match (namespace.api, &self.id, &self.partition_key, &self.document_id) {
            (_, None, _, None) => return Ok(None),
            (Api::NoSql, Some(id), Some(key), None) => {
                body.insert("id", id.as_str());
                body.insert("partitionKey", lenient(key));
            }
            (Api::MongoDb, None, None, Some(id)) => {
                body.insert("_id", lenient(id));
            }
            (Api::NoSql, ..) => bail!("name an item of a container with --id and --partition-key"),
            (Api::MongoDb, ..) => bail!("name a document of a collection with --document-id"),
        }
        Ok(Some(body))
    }
}

/// Parses JSON; other text is taken as a string, to save quotes within quotes.
fn lenient(text: &str) -> Value {
    document::parse_json(text.as_bytes()).unwrap_or_else(|_| Value::String(text.to_owned()))
}

pub(super) fn run(request: &Request, client: &mut Client) -> Result<()> {
    match request {
        Request::Place { target, reason } => {
            let namespace = target.namespace.find(client)?;
            let outcome = if let Some(mut item) = target.item(&namespace)? {
                item.insert("reason", reason.as_str());
                client.send_json(&Method::PUT, &namespace.path("hold"), &Value::Object(item))?;
                "the item is held"
            } else {
                let mut hold = Object::new();
                hold.insert("reason", reason.as_str());
                set_hold(client, &namespace, Value::Object(hold))?;
                "the whole container is held"
            };
            println!("{namespace}: {outcome}");
            Ok(())
        }
        Request::Lift { target, confirm } => {
            if *confirm {
                client.confirm_expiry();
            }
            let namespace = target.namespace.find(client)?;
            if let Some(item) = target.item(&namespace)? {
                client.send_json(&Method::DELETE, &namespace.path("hold"), &Value::Object(item))?;
                println!("{namespace}: lifted the hold of the item");
            } else {
                set_hold(client, &namespace, Value::Null)?;
                println!("{namespace}: lifted the hold");
            }
            Ok(())
        }
        Request::List { namespace, json } => {
            let namespace = namespace.find(client)?;
            list(client, &namespace, *json)
        }
    }
}

fn set_hold(client: &mut Client, namespace: &Namespace, hold: Value) -> Result<()> {
    let mut body = Object::new();
    body.insert("hold", hold);
    client.send_json(&Method::PATCH, &namespace.path("ttl"), &Value::Object(body))?;
    Ok(())
}

fn list(client: &mut Client, namespace: &Namespace, json: bool) -> Result<()> {
    let whole = client.get_json(&namespace.path("ttl"))?;
    let whole = at(&whole, &["lifecycle", "hold", "reason"]).and_then(Value::as_str).map(str::to_owned);
    let items = items(client, namespace)?;
    if json {
        let mut all = Object::new();
        all.insert("container", whole.map_or(Value::Null, Value::String));
        all.insert("items", Value::Array(items));
        println!("{}", Value::Object(all).to_json());
        return Ok(());
    }
    match whole {
        Some(reason) => println!("{namespace}: the whole container is held: {reason}"),
        None if items.is_empty() => println!("{namespace}: nothing is held"),
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
            table(&[("item", Align::Left), ("held since", Align::Left), ("reason", Align::Left)], &rows)
        );
    }
    Ok(())
}

/// Lists all held items, page by page.
fn items(client: &mut Client, namespace: &Namespace) -> Result<Vec<Value>> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = client.get_json(&format!("{}{after}", namespace.path("hold")))?;
        all.extend_from_slice(page.get("held").and_then(Value::as_array).unwrap_or_default());
        match page.get("last").and_then(Value::as_i64) {
            Some(last) => after = format!("&after={last}"),
            None => return Ok(all),
        }
    }
}
