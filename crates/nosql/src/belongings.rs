//! Users, permissions and scripts: small definitions that hang on a database, user or container. They are kept and
//! given back. No script is run, and a request that wants one run is refused; what a permission is worth is decided
//! in `grant`.

use document::{Object, ScriptKind, UserRid, Value};
use engine::{Owner, Resource};

use crate::call::{Call, missing_owner};
use crate::error::Error;
use crate::grant::Permission;
use crate::{headers, json};

/// Whose resources a path is about, and how the wire names them.
pub(crate) struct Shelf {
    pub(crate) owner: Owner,
    pub(crate) envelope: &'static str,
    /// Resource id of the owner.
    pub(crate) parent: String,
    link: String,
    /// Which path segment names one resource.
    index: usize,
    token_life_seconds: u64,
}

impl Shelf {
    /// The shelf that a path is about.
    pub(crate) fn of(call: &Call) -> Result<Shelf, Error> {
        let path = &call.head.path;
        let token_life_seconds = call.head.token_life_seconds()?;
        if path.at(2) == "users" {
            let database = call.owner_database()?;
            let users = Owner::Database(database.rid);
            let link = format!("{}users/", database.self_link());
            if path.at(4) != "permissions" {
                let parent = database.rid.to_string();
                return Ok(Shelf {
                    owner: users,
                    envelope: "Users",
                    parent,
                    link,
                    index: 3,
                    token_life_seconds,
                });
            }
            let user =
                call.engine().resource(users, path.at(3)).map_err(Error::from).map_err(missing_owner)?;
            return Ok(Shelf {
                owner: Owner::User(UserRid { database: database.rid.0, user: user.number }),
                envelope: "Permissions",
                link: format!("{link}{}/permissions/", user.rid),
                parent: user.rid,
                index: 5,
                token_life_seconds,
            });
        }
        let container = call.container_as_owner()?;
        let (kind, envelope) =
            script_kind(path.at(4)).ok_or_else(|| Error::NoRoute(path.at(4).to_owned()))?;
        Ok(Shelf {
            owner: Owner::Container(container.rid, kind),
            envelope,
            parent: container.rid.to_string(),
            link: format!("{}{}/", container.self_link(), path.at(4)),
            index: 5,
            token_life_seconds,
        })
    }

    /// The name of the one resource that the path is about.
    pub(crate) fn name(&self, call: &Call) -> String {
        call.head.path.at(self.index).to_owned()
    }

    /// The definition in a request's body, without what only answers have.
    pub(crate) fn definition(&self, call: &Call) -> Result<Object, Error> {
        let Value::Object(mut members) = json::parse_object(&call.body)? else {
            return Err(Error::BadRequest("The request body must be a JSON object.".to_owned()));
        };
        members.remove("_token");
        members.remove("_permissions");
        if matches!(self.owner, Owner::User(_)) {
            Permission::parse(&members)?;
        }
        Ok(members)
    }

    /// A resource as the wire shows it.
    pub(crate) fn json(&self, call: &Call, resource: &Resource) -> Value {
        let mut members = resource.definition.clone();
        members.insert("_rid", resource.rid.clone());
        members.insert("_self", format!("{}{}/", self.link, resource.rid));
        members.insert("_etag", resource.etag().to_string());
        members.insert("_ts", resource.ts() as i64);
        match self.owner {
            Owner::Database(_) => members.insert("_permissions", "permissions/"),
            Owner::User(_) => {
                members.insert("_token", call.mint_token(&resource.rid, self.token_life_seconds))
            }
            Owner::Container(..) => None,
        };
        Value::Object(members)
    }
}

/// The kind of script that a path segment speaks of, and its envelope.
pub(crate) fn script_kind(segment: &str) -> Option<(ScriptKind, &'static str)> {
    match segment {
        "sprocs" => Some((ScriptKind::StoredProcedure, "StoredProcedures")),
        "triggers" => Some((ScriptKind::Trigger, "Triggers")),
        "udfs" => Some((ScriptKind::Function, "UserDefinedFunctions")),
        _ => None,
    }
}

/// Refuses a write that wants a trigger run: to ignore it would store something else than the client meant.
pub(crate) fn refuse_triggers(call: &Call) -> Result<(), Error> {
    for name in [headers::PRE_TRIGGER, headers::POST_TRIGGER] {
        if call.head.text(&name).is_some_and(|text| !text.trim().is_empty()) {
            return Err(Error::NotSupported(format!(
                "running triggers ('{name}') needs server-side JavaScript, which is"
            )));
        }
    }
    Ok(())
}
