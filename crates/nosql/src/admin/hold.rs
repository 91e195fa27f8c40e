//! `/_bolide/hold/{db}/{coll}`: holds on single items (T31). A hold on a whole container is one of its lifecycle
//! settings.

use document::{ItemNumber, PartitionKey, Value};
use engine::{HeldItem, ItemAddress};

use super::ttl::owner;
use super::{number, reply};
use crate::handlers::call::Call;
use crate::message::reply::Reply;
use crate::protocol::error::Error;
use crate::protocol::json::{member, object, parse_object, text};

/// Holds an item.
pub(super) async fn place(call: &Call) -> Result<Reply, Error> {
    let (owner, body) = (owner(call)?, parse_object(&call.body)?);
    let (item, reason) = address(&body)?;
    call.blocking(move |engine| Ok(engine.hold_item(&owner, &item, &reason)?)).await?;
    Ok(reply(&object([member("held", Value::Bool(true))])))
}

/// Lifts the hold of an item.
pub(super) async fn lift(call: &Call) -> Result<Reply, Error> {
    let (owner, body) = (owner(call)?, parse_object(&call.body)?);
    let (item, _) = address(&body)?;
    call.blocking(move |engine| Ok(engine.lift_item(&owner, &item)?)).await?;
    Ok(reply(&object([member("held", Value::Bool(false))])))
}

/// Lists held items; the parameter `after` continues after an earlier page.
pub(super) async fn list(call: &Call) -> Result<Reply, Error> {
    let owner = owner(call)?;
    let after = call.head.parameter("after").map(|text| text.parse().map(ItemNumber)).transpose();
    let after = after.map_err(|_| Error::BadRequest("'after' must be a number.".to_owned()))?;
    let held = call.blocking(move |engine| Ok(engine.held_items(&owner, after)?)).await?;
    let last = held.last().map_or(Value::Null, |held| number(held.number.0));
    let items = held.iter().map(show).collect::<Result<Vec<_>, Error>>()?;
    Ok(reply(&object([member("held", Value::Array(items)), member("last", last)])))
}

/// `{"id", "partitionKey"}` or `{"_id"}`, and perhaps a `reason`.
fn address(body: &Value) -> Result<(ItemAddress, String), Error> {
    let reason = match body.get("reason") {
        None => String::new(),
        Some(reason) => {
            let reason = reason.as_str().map(str::to_owned);
            reason.ok_or_else(|| Error::BadRequest("'reason' must be a string.".to_owned()))?
        }
    };
    let members =
        body.as_object().map_or(0, |members| members.len() - usize::from(body.get("reason").is_some()));
    match (body.get("_id"), body.get("id").and_then(Value::as_str), body.get("partitionKey")) {
        (Some(id), None, None) if members == 1 => {
            Ok((ItemAddress::from_extended_json(&id.to_json())?, reason))
        }
        (None, Some(id), Some(key)) if members == 2 => {
            let key = if key.as_array().is_some() { key.to_json() } else { format!("[{}]", key.to_json()) };
            Ok((ItemAddress::Id(PartitionKey::from_header(&key)?, id.to_owned()), reason))
        }
        _ => Err(Error::BadRequest(
            "The body must be {\"id\": text, \"partitionKey\": [values]} or {\"_id\": value in Extended JSON}, perhaps \
             with a \"reason\", and nothing else."
                .to_owned(),
        )),
    }
}

fn show(held: &HeldItem) -> Result<Value, Error> {
    let json = |text: &str| document::parse_json(text.as_bytes());
    let mut members = match &held.address {
        ItemAddress::Id(key, id) => {
            vec![member("id", text(id.as_str())), member("partitionKey", json(&key.to_json())?)]
        }
        address @ ItemAddress::DocumentId(_) => {
            vec![member("_id", json(&address.to_extended_json().unwrap_or_default())?)]
        }
    };
    members.push(member("reason", text(held.reason.as_str())));
    members.push(member("since", number(held.since.seconds())));
    Ok(object(members))
}
