//! The logical partition that an operation is about, derived from its partition key.

use document::{Document, PartitionKey, PartitionKeyDefinition};

use crate::catalog::container::Container;
use crate::entries::traces::Home;
use crate::expiry::header::Record;
use crate::types::error::{Error, Result};

/// Returns whether an item that was found by number belongs to the requested logical partition.
pub(crate) fn is_at_home(home: &Home, container: &Container, record: &Record) -> bool {
    Home::of(home.partition, &container.definition, record).is_ok_and(|actual| actual == *home)
}

/// Returns the logical partition of an operation that has only a partition key.
pub(crate) fn home_of_key(container: &Container, key: Option<PartitionKey>) -> Result<Home> {
    match key {
        Some(key) => Ok(home(container, complete(key, &container.definition.partition_key)?)),
        None => Err(Error::invalid("The partition key of the item is required for this operation.")),
    }
}

/// Returns the logical partition of an operation that has a body; a partition key beside it must agree with the body.
pub(crate) fn home_of_body(
    container: &Container,
    given: Option<PartitionKey>,
    body: &Document,
) -> Result<Home> {
    let definition = &container.definition.partition_key;
    let key = PartitionKey::extract(definition, body.root())?;
    if let Some(given) = given {
        let given = complete(given, definition)?;
        if given != key {
            return Err(Error::KeyMismatch { given: given.to_json(), expected: key.to_json() });
        }
    }
    Ok(home(container, key))
}

fn home(container: &Container, key: PartitionKey) -> Home {
    let effective = key.effective(&container.definition.partition_key);
    Home { partition: container.partition_of(&effective).id, key, effective }
}

/// Checks a key of a request: it must have one part per path.
fn complete(key: PartitionKey, definition: &PartitionKeyDefinition) -> Result<PartitionKey> {
    key.complete(definition).map_err(|key| Error::KeyMismatch {
        given: key.to_json(),
        expected: format!("{} parts", definition.paths.len()),
    })
}
