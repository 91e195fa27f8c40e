//! Refuses changes and removals of held items and containers (T31).

use document::Document;
use storage::{Direction, KeyRange, Keyspace, Read, Transaction};

use crate::access::gate::Gate;
use crate::catalog::container::Container;
use crate::catalog::hold_note::HoldNote;
use crate::catalog::home::is_at_home;
use crate::entries::traces::Home;
use crate::expiry::header::{Body, Record};
use crate::keys;
use crate::types::error::{Error, Result};

/// Refuses a change or removal of an item that is held, or whose container is.
pub(crate) fn check_item<B: Body>(tx: &Transaction<'_>, gate: &Gate, record: &Record<B>) -> Result<()> {
    check_container(gate)?;
    match HoldNote::of(tx, gate.partition, record)? {
        Some(note) => Err(Error::Held { what: "the item", reason: note.reason }),
        None => Ok(()),
    }
}

/// Refuses to change or remove anything in a held container.
pub(crate) fn check_container(gate: &Gate) -> Result<()> {
    match &gate.policy.lifecycle.hold {
        Some(reason) => Err(Error::Held { what: "the container", reason: reason.clone() }),
        None => Ok(()),
    }
}

/// Refuses to delete a logical partition in which an item is held.
pub(crate) fn check_home(reader: &dyn Read, gate: &Gate, container: &Container, home: &Home) -> Result<()> {
    check_container(gate)?;
    let holds = KeyRange::prefix(keys::holds(home.partition));
    for entry in reader.scan(Keyspace::Counter, holds, Direction::Forward) {
        let (key, note) = entry?;
        let found = gate.by_number::<Document>(reader, keys::held_number(&key)?)?.living();
        if found.is_some_and(|record| is_at_home(home, container, &record)) {
            return Err(Error::Held { what: "an item in it", reason: HoldNote::decode(&note)?.reason });
        }
    }
    Ok(())
}
