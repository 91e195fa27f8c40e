//! Users and scripts: small definitions that hang on a database or container. They are kept and given back;
//! nothing is run and nothing granted, and a request that wants either is refused.

use document::{ScriptKind, Value};
use engine::{Owner, Resource};

use crate::call::Call;
use crate::error::Error;
use crate::headers;

/// Whose resources a path is about, and how the wire names them.
pub(crate) struct Shelf {
    pub(crate) owner: Owner,
    pub(crate) envelope: &'static str,
    /// Resource id of the owner.
    pub(crate) parent: String,
    link: String,
    /// Which path segment names one resource.
    index: usize,
}

impl Shelf {
    /// The shelf that a path is about.
    pub(crate) fn of(call: &Call) -> Result<Shelf, Error> {
        let path = &call.head.path;
        if path.at(2) == "users" {
            let database = call.owner_database()?;
            return Ok(Shelf {
                owner: Owner::Database(database.rid),
                envelope: "Users",
                parent: database.rid.to_string(),
                link: format!("{}users/", database.self_link()),
                index: 3,
            });
        }
        let container = call.container_as_owner()?;
        let (kind, envelope) = match path.at(4) {
            "sprocs" => (ScriptKind::StoredProcedure, "StoredProcedures"),
            "triggers" => (ScriptKind::Trigger, "Triggers"),
            _ => (ScriptKind::Function, "UserDefinedFunctions"),
        };
        Ok(Shelf {
            owner: Owner::Container(container.rid, kind),
            envelope,
            parent: container.rid.to_string(),
            link: format!("{}{}/", container.self_link(), path.at(4)),
            index: 5,
        })
    }

    /// The name of the one resource that the path is about.
    pub(crate) fn name(&self, call: &Call) -> String {
        call.head.path.at(self.index).to_owned()
    }

    /// A resource as the wire shows it.
    pub(crate) fn json(&self, resource: &Resource) -> Value {
        let mut members = resource.definition.clone();
        members.insert("_rid", resource.rid.clone());
        members.insert("_self", format!("{}{}/", self.link, resource.rid));
        members.insert("_etag", resource.etag().to_string());
        members.insert("_ts", resource.ts() as i64);
        if matches!(self.owner, Owner::Database(_)) {
            members.insert("_permissions", "permissions/");
        }
        Value::Object(members)
    }
}

/// Refuses a write that wants a trigger run: to ignore it would store something else than the client meant.
pub(crate) fn refuse_triggers(call: &Call) -> Result<(), Error> {
    for name in [headers::PRE_TRIGGER, headers::POST_TRIGGER] {
        if call.head.text(&name).is_some_and(|text| !text.trim().is_empty()) {
            return Err(Error::NotSupported(format!("running triggers ('{name}') is")));
        }
    }
    Ok(())
}
