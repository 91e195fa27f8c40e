//! The definition in the body of a request that creates or replaces a container.

use document::{Object, Value};
use engine::{ContainerDefinition, DefaultTtl};

use crate::handlers::call::Call;
use crate::protocol::error::Error;
use crate::protocol::json::{self, member, object, text};

const PARTITION_KEY: &str = "partitionKey";
const TTL_PROPERTY_PATH: &str = "ttlPropertyPath";

/// The path of the key of containers that were created without one.
const SYSTEM_KEY_PATH: &str = "/_partitionKey";

/// Returns the definition of a new container.
///
/// Without `defaultTtl` nothing expires, so a `ttlPropertyPath` would have no effect: the service refuses it. A container may
/// lose its `defaultTtl` and keep the path.
pub(crate) fn of_new(call: &Call) -> Result<ContainerDefinition, Error> {
    let definition = read(call, call.head.may_omit_partition_key())?;
    if definition.default_ttl == DefaultTtl::Off && definition.ttl_property_path().is_some() {
        return Err(Error::BadRequest(format!(
            "'{TTL_PROPERTY_PATH}' requires 'defaultTtl': without it nothing in the container expires."
        )));
    }
    Ok(definition)
}

/// Returns the definition that replaces that of an existing container. A client that created it without a partition key
/// sends none either.
pub(crate) fn of_replacement(
    call: &Call,
    current: &ContainerDefinition,
) -> Result<ContainerDefinition, Error> {
    read(call, current.partition_key.system_key && call.head.may_omit_partition_key())
}

fn read(call: &Call, may_omit_key: bool) -> Result<ContainerDefinition, Error> {
    let mut body = json::parse_object(&call.body)?;
    if may_omit_key
        && let Some(members) = body.as_object_mut()
        && members.get(PARTITION_KEY).is_none_or(Value::is_null)
    {
        insert_system_key(members);
    }
    Ok(ContainerDefinition::from_value(&body).map_err(engine::Error::from)?)
}

/// Adds the key that stands in for a missing one: all items have its undefined value.
fn insert_system_key(members: &mut Object) {
    let key = object([
        member("paths", Value::Array(vec![text(SYSTEM_KEY_PATH)])),
        member("kind", text("Hash")),
        member("systemKey", Value::Bool(true)),
    ]);
    members.insert(PARTITION_KEY, key);
}
