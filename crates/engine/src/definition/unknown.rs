//! Properties of a container that are not known here: those of later versions of the service, or of a client's own
//! making. The service leaves its containers open for them, so they are stored and returned, within bounds.

use document::{Object, Value};

use super::{ContainerDefinition, DROPPED, NOT_SUPPORTED, OWN, extras};
use crate::types::definition_error::{Result, invalid};

/// Unknown properties of one container, together.
const UNKNOWN_BYTES_MAX: usize = 64 * 1024;

/// Returns the unknown properties of a definition, in its order.
pub(super) fn read(members: &Object) -> Result<Vec<(String, Value)>> {
    let mut unknown = Vec::new();
    let mut bytes = 0;
    for (name, value) in members.iter().filter(|(name, value)| !is_known(name) && !value.is_null()) {
        if let Some(meant) = names().find(|known| known.eq_ignore_ascii_case(name)) {
            return Err(invalid(format!("{}; the property '{meant}' is spelled so.", no_property(name))));
        }
        bytes += name.len() + value.to_json().len();
        if bytes > UNKNOWN_BYTES_MAX {
            return Err(invalid(format!(
                "The properties of the container that this server does not know, up to '{name}', have {bytes} bytes; the \
                 limit is {UNKNOWN_BYTES_MAX}."
            )));
        }
        unknown.push((name.to_owned(), value.clone()));
    }
    Ok(unknown)
}

impl ContainerDefinition {
    /// Refuses properties that are not known here: for definitions that a person writes, where such a name is a mistake.
    pub fn check_known(&self) -> Result<()> {
        match self.rest.iter().find(|(name, _)| !is_known(name)) {
            Some((name, _)) => Err(invalid(format!("{}.", no_property(name)))),
            None => Ok(()),
        }
    }
}

fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

fn names() -> impl Iterator<Item = &'static str> {
    OWN.into_iter().chain(extras::NAMES).chain(DROPPED).chain(NOT_SUPPORTED)
}

fn no_property(name: &str) -> String {
    format!("One of the specified inputs is invalid: a container has no property '{name}'")
}
