//! The rights granted by a permission's token. The whole decision is made here, before a handler runs, from the verb,
//! the path and the partition key header.
//!
//! ```text
//! permission on        covers
//! any                  GET / (clients begin with it)
//! a container          the container and everything below it
//!   with a key         items under that partition key: nothing that does not name it
//! one item or script   that one, under its own id; its container can be read, because clients must
//! ```
//!
//! `Read` covers reads and queries, `All` also writes. Everything not listed is forbidden: databases, users, offers,
//! other containers, and bulk requests under a key (each of their operations has its own).

use std::sync::Arc;

use document::{Object, PartitionKey, Value};
use engine::{Container, Engine, ItemName, Precondition, ResourceParent};

use crate::auth::names;
use crate::auth::tokens::Claim;
use crate::message::options::Flag;
use crate::message::request::{Head, Verb};
use crate::protocol::error::Error;
use crate::protocol::script_kind::script_kind;

/// The parsed definition of a permission.
#[derive(Debug)]
pub(crate) struct Permission {
    mode: Mode,
    /// The segments of the resource's link. They are names, not parts of a URL, and not percent-encoded.
    link: Vec<String>,
    key: Option<PartitionKey>,
}

/// The granted access, in the same order as the access that a request requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    None,
    Read,
    All,
}

impl Permission {
    /// Parses a definition.
    pub(crate) fn parse(definition: &Object) -> Result<Self, Error> {
        let text = |name: &str| {
            let value = definition.get(name).and_then(Value::as_str);
            value.ok_or_else(|| Error::BadRequest(format!("A permission must have '{name}' as a string.")))
        };
        let mode = match text("permissionMode")?.to_ascii_lowercase().as_str() {
            "none" => Mode::None,
            "read" => Mode::Read,
            "all" => Mode::All,
            other => {
                return Err(Error::BadRequest(format!(
                    "The permissionMode must be Read or All, it is '{other}'."
                )));
            }
        };
        let link = text("resource")?.trim_matches('/').split('/').map(str::to_owned).collect();
        Ok(Self { mode, link, key: key(definition.get("resourcePartitionKey"))? })
    }
}

/// Parses the key of a definition; a single value stands for an array of it.
fn key(value: Option<&Value>) -> Result<Option<PartitionKey>, Error> {
    let text = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(array @ Value::Array(_)) => array.to_json(),
        Some(single) => format!("[{}]", single.to_json()),
    };
    let key = PartitionKey::from_header(&text)?;
    if key.is_empty() {
        return Err(Error::BadRequest("The resourcePartitionKey must not be empty.".to_owned()));
    }
    Ok(Some(key))
}

/// Checks a request against the permission that a token names. For a single item or script, returns the id which a
/// replacing body must keep: another one would be a write outside of the permission.
pub(crate) fn check(engine: &Engine, claim: &Claim, head: &Head) -> Result<Option<String>, Error> {
    let permission = permission(engine, claim)?;
    let Some(verb) = head.verb()? else { return Err(forbidden("the method is not known")) };
    let need = need(verb);
    if head.path.segments().is_empty() && need == Mode::Read {
        return Ok(None);
    }
    if permission.mode < need {
        return Err(forbidden("the permission does not cover writes"));
    }
    let (Some(granted), Some(asked)) =
        (LinkTarget::find(engine, &permission.link), LinkTarget::find(engine, head.path.segments()))
    else {
        return Err(forbidden("the permission is for another resource"));
    };
    if granted.container.rid != asked.container.rid {
        return Err(forbidden("the permission is for another container"));
    }
    match (granted.rest.as_slice(), asked.rest.as_slice()) {
        (_, [] | ["pkranges"]) if need == Mode::Read => Ok(None),
        ([], rest) => check_key(&permission, verb, rest, head).map(|()| None),
        ([kind, _], rest @ [asked_kind, _]) if kind == asked_kind => {
            check_key(&permission, verb, rest, head)?;
            match (granted.id(engine, head)?, asked.id(engine, head)?) {
                (Some(granted), Some(asked)) if granted == asked => Ok(Some(asked)),
                _ => Err(forbidden("the permission is for another resource")),
            }
        }
        _ => Err(forbidden("the permission is for another resource")),
    }
}

/// Returns the current permission. It is looked up by resource id alone: another permission may have that text as its
/// id.
fn permission(engine: &Engine, claim: &Claim) -> Result<Permission, Error> {
    let rid = claim.permission.to_string();
    let all = engine.resources(ResourceParent::User(claim.permission.user))?;
    let found = all.iter().find(|resource| resource.rid == rid);
    let found =
        found.ok_or_else(|| forbidden("the permission of this resource token does not exist any more"))?;
    Permission::parse(&found.definition).map_err(|error| forbidden(&error.to_string()))
}

/// Returns whether a read-only key may make the request: a read, but not of permissions. Their tokens would give write
/// access to a reader.
pub(crate) fn is_for_readers(head: &Head) -> Result<bool, Error> {
    let reads = head.verb()?.is_some_and(|verb| need(verb) == Mode::Read);
    let of_permissions = head.path.at(2) == "users" && head.path.at(4) == "permissions";
    Ok(reads && !of_permissions)
}

fn need(verb: Verb) -> Mode {
    match verb {
        Verb::Get | Verb::ChangeFeed | Verb::Query | Verb::Plan => Mode::Read,
        Verb::Post | Verb::Upsert | Verb::Batch | Verb::Put | Verb::Patch | Verb::Delete => Mode::All,
    }
}

/// Under a permission with a partition key, a request must say that it stays within that key.
fn check_key(permission: &Permission, verb: Verb, rest: &[&str], head: &Head) -> Result<(), Error> {
    let Some(granted) = &permission.key else { return Ok(()) };
    match rest {
        ["docs"] if verb == Verb::Plan => return Ok(()),
        ["docs"] if verb == Verb::Batch && !head.flag(Flag::BatchAtomic)? => {
            return Err(forbidden("the permission has a partition key and does not cover bulk requests"));
        }
        ["docs" | "conflicts" | "operations", ..] => {}
        [_, _] if permission.link.len() > 4 => {}
        _ => return Err(forbidden("the permission covers only the items of its partition key")),
    }
    match head.partition_key()? {
        Some(asked) if granted.is_prefix_of(&asked) => Ok(()),
        _ => Err(forbidden("the permission is for another partition key")),
    }
}

/// A container, and the resource below it that a link names.
struct LinkTarget<'a> {
    container: Arc<Container>,
    container_name: &'a str,
    rest: Vec<&'a str>,
}

impl<'a> LinkTarget<'a> {
    fn find(engine: &Engine, segments: &'a [String]) -> Option<Self> {
        let [dbs, database, colls, container_name, rest @ ..] = segments else { return None };
        if dbs != "dbs" || colls != "colls" {
            return None;
        }
        let database = names::database(engine, database).ok()?;
        let container = names::container(engine, &database, container_name).ok()?;
        Some(Self { container, container_name, rest: rest.iter().map(String::as_str).collect() })
    }

    /// Returns the id of the item or script, even if the link names it by resource id. An item's resource id is
    /// meaningless without its partition key, so the item is looked up under the key of the request.
    fn id(&self, engine: &Engine, head: &Head) -> Result<Option<String>, Error> {
        let [kind, name] = self.rest.as_slice() else { return Ok(None) };
        if let Some((kind, _)) = script_kind(kind) {
            let script = engine.resource(ResourceParent::Container(self.container.rid, kind), name);
            return Ok(script.ok().map(|script| script.name().to_owned()));
        }
        if *kind != "docs" {
            return Ok(None);
        }
        let name = match names::item(&self.container, self.container_name, name) {
            ItemName::Id(id) => return Ok(Some(id)),
            number @ ItemName::Number(_) => number,
        };
        let Some(key) = head.partition_key()? else { return Ok(None) };
        let found = engine.read(&self.container, &key, &name, &Precondition::None).ok();
        Ok(found.and_then(|found| Some(found.item?.body.root().get("id")?.as_str()?.to_owned())))
    }
}

pub(crate) fn forbidden(why: &str) -> Error {
    Error::Forbidden(format!("The input authorization token is not permitted for this operation: {why}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Permission, Error> {
        let value = document::parse_json(text.as_bytes()).unwrap();
        Permission::parse(value.as_object().unwrap())
    }

    #[test]
    fn a_definition_says_how_much_of_what() {
        let permission = parse(
            r#"{"permissionMode":"read","resource":"/dbs/d/colls/a%20b/","resourcePartitionKey":["x",1]}"#,
        );
        let permission = permission.unwrap();
        assert_eq!(permission.mode, Mode::Read);
        assert_eq!(permission.link, ["dbs", "d", "colls", "a%20b"]);
        assert_eq!(permission.key.unwrap().to_json(), r#"["x",1]"#);
        let single = parse(r#"{"permissionMode":"All","resource":"x","resourcePartitionKey":"v"}"#).unwrap();
        assert_eq!(single.key.unwrap().to_json(), r#"["v"]"#);
    }

    #[test]
    fn a_definition_that_means_nothing_is_refused() {
        for text in [
            "{}",
            r#"{"permissionMode":"All"}"#,
            r#"{"permissionMode":"Write","resource":"x"}"#,
            r#"{"permissionMode":"All","resource":"x","resourcePartitionKey":[]}"#,
            r#"{"permissionMode":"All","resource":"x","resourcePartitionKey":{"a":1}}"#,
            r#"{"permissionMode":"All","resource":"x","resourcePartitionKey":[[1]]}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
