//! `/_bolide/ttl/{db}/{coll}`: rules, wishes and figures of one container or collection.

use document::Value;
use engine::{Api, Engine, Holder, Tally, Usage};

use super::{number, reply, wishes};
use crate::call::Call;
use crate::error::Error;
use crate::json::{member, object, parse_object, text};
use crate::response::Reply;

/// Rules, wishes and figures.
pub(super) async fn show(call: &Call) -> Result<Reply, Error> {
    if call.head.parameter("defaultTtl").is_some() {
        return Err(Error::NotSupported("the dry run of a policy change ('defaultTtl') is".to_owned()));
    }
    let holder = holder(call)?;
    let (usage, holder) = call.blocking(move |engine| Ok((engine.usage_of(&holder)?, holder))).await?;
    Ok(reply(&describe(&holder, usage)))
}

/// Changes what the owner wishes: the members that are there, and no other.
pub(super) async fn change(call: &Call) -> Result<Reply, Error> {
    let holder = holder(call)?;
    let body = parse_object(&call.body)?;
    wishes::read(&body, &mut holder.lifecycle())?;
    let consent = call.head.consent()?;
    let change = move |engine: &Engine| {
        engine.change_lifecycle_with(&holder, consent, |wishes| {
            wishes::read(&body, wishes).expect("what a wish accepts depends on its value alone");
        })?;
        Ok((engine.usage_of(&holder)?, holder))
    };
    let (usage, holder) = call.blocking(change).await?;
    Ok(reply(&describe(&holder, usage)))
}

/// The container or collection that the path names; the parameter `api` says whose.
pub(super) fn holder(call: &Call) -> Result<Holder, Error> {
    let api = match call.head.parameter("api") {
        None | Some("nosql") => Api::NoSql,
        Some("mongodb") => Api::MongoDb,
        Some(_) => return Err(Error::BadRequest("'api' must be nosql or mongodb.".to_owned())),
    };
    Ok(call.engine().holder(api, call.head.path.at(2), call.head.path.at(3))?)
}

fn describe(holder: &Holder, usage: Usage) -> Value {
    let date_rules = holder.date_rules().into_iter().map(|rule| {
        object([
            member("index", text(rule.index)),
            member("expireAfterSeconds", Value::Int(rule.expire_after_seconds.into())),
            member("inForce", Value::Bool(rule.in_force)),
        ])
    });
    object([
        member("database", text(holder.database())),
        member("container", text(holder.name())),
        member("defaultTtl", holder.default_ttl().to_member().unwrap_or(Value::Null)),
        member("dateRules", Value::Array(date_rules.collect())),
        member("wishes", wishes::show(&holder.lifecycle())),
        member("living", tally(usage.living)),
        member("backlog", tally(usage.dead)),
    ])
}

fn tally(tally: Tally) -> Value {
    object([member("items", number(tally.items)), member("bytes", number(tally.bytes))])
}
