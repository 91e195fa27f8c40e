//! Users, permissions and scripts: subresources of a database, user or container. Their definitions are stored and
//! returned. Scripts are not run, and a request to run one is refused; `grant` evaluates permissions.

use std::sync::Arc;

use document::{Object, UserRid, Value};
use engine::{Container, Resource, ResourceParent};

use crate::auth::grant::Permission;
use crate::handlers::call::{Call, missing_owner};
use crate::handlers::quota::Quota;
use crate::message::options::TextOption;
use crate::message::reply::{Reply, ReplyOrigin};
use crate::protocol::error::Error;
use crate::protocol::json;
use crate::protocol::script_kind::script_kind;

/// The subresources of one owner that a path names.
pub(crate) struct Subresources {
    pub(crate) owner: ResourceParent,
    pub(crate) envelope: &'static str,
    /// Resource id of the owner.
    pub(crate) parent: String,
    link: String,
    /// The path segment that names one subresource.
    index: usize,
    token_life_seconds: u64,
    /// The container of a script.
    container: Option<Arc<Container>>,
    quota: Quota,
}

impl Subresources {
    /// Returns the subresources that a path names.
    pub(crate) fn of(call: &Call) -> Result<Subresources, Error> {
        let path = &call.head.path;
        let (token_life_seconds, quota) = (call.head.token_life_seconds()?, Quota::of(call)?);
        if path.at(2) == "users" {
            let database = call.owner_database()?;
            let users = ResourceParent::Database(database.rid);
            let link = format!("{}users/", database.self_link());
            if path.at(4) != "permissions" {
                let parent = database.rid.to_string();
                return Ok(Subresources {
                    owner: users,
                    envelope: "Users",
                    parent,
                    link,
                    index: 3,
                    token_life_seconds,
                    container: None,
                    quota,
                });
            }
            let user =
                call.engine().resource(users, path.at(3)).map_err(Error::from).map_err(missing_owner)?;
            return Ok(Subresources {
                owner: ResourceParent::User(UserRid { database: database.rid.0, user: user.number }),
                envelope: "Permissions",
                link: format!("{link}{}/permissions/", user.rid),
                parent: user.rid,
                index: 5,
                token_life_seconds,
                container: None,
                quota,
            });
        }
        let container = call.container_as_owner()?;
        let (kind, envelope) =
            script_kind(path.at(4)).ok_or_else(|| Error::NoRoute(path.at(4).to_owned()))?;
        Ok(Subresources {
            owner: ResourceParent::Container(container.rid, kind),
            envelope,
            parent: container.rid.to_string(),
            link: format!("{}{}/", container.self_link(), path.at(4)),
            index: 5,
            token_life_seconds,
            container: Some(container),
            quota,
        })
    }

    /// Returns the name of the one subresource in the path.
    pub(crate) fn name(&self, call: &Call) -> String {
        call.head.path.at(self.index).to_owned()
    }

    /// Returns the definition in a request's body, without members of answers.
    pub(crate) fn definition(&self, call: &Call) -> Result<Object, Error> {
        let Value::Object(mut members) = json::parse_object(&call.body)? else {
            return Err(Error::BadRequest("The request body must be a JSON object.".to_owned()));
        };
        members.remove("_token");
        members.remove("_permissions");
        if matches!(self.owner, ResourceParent::User(_)) {
            Permission::parse(&members)?;
        }
        Ok(members)
    }

    /// Completes an answer about one subresource. A script belongs to its container as items do: a session includes it.
    pub(crate) async fn place(&self, call: &Call, reply: Reply) -> Reply {
        let Some(container) = &self.container else { return reply };
        let Some(partition) = container.partitions.first() else { return reply };
        let place = ReplyOrigin { container, range: partition.range_lsn(), item: None };
        self.quota.add(call, container, reply.placed(&place)).await
    }

    /// Returns a subresource as JSON.
    pub(crate) fn json(&self, call: &Call, resource: &Resource) -> Value {
        let mut members = resource.definition.clone();
        members.insert("_rid", resource.rid.clone());
        members.insert("_self", format!("{}{}/", self.link, resource.rid));
        members.insert("_etag", resource.etag().to_string());
        members.insert("_ts", resource.ts() as i64);
        match self.owner {
            ResourceParent::Database(_) => members.insert("_permissions", "permissions/"),
            ResourceParent::User(_) => {
                members.insert("_token", call.mint_token(&resource.rid, self.token_life_seconds))
            }
            ResourceParent::Container(..) => None,
        };
        Value::Object(members)
    }
}

/// Refuses a write that names triggers: ignoring them would store something different from what the client meant.
pub(crate) fn refuse_triggers(call: &Call) -> Result<(), Error> {
    for (option, kind) in [(TextOption::PreTrigger, "pre"), (TextOption::PostTrigger, "post")] {
        if let Some(named) = call.head.text(option).map(str::trim).filter(|text| !text.is_empty()) {
            return Err(Error::NotSupported(format!(
                "running {kind}-triggers ('{named}') needs server-side JavaScript, which is"
            )));
        }
    }
    Ok(())
}
