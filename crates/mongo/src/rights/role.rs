//! A role as users have it and commands name it.

use bson::{Document, ValueRef};
use mql::Code;

use super::built_in;
use crate::protocol::error::{Error, Result};

/// A role in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Role {
    pub(crate) name: String,
    pub(crate) database: String,
}

impl Role {
    /// All roles that exist in a database.
    pub(crate) fn all(database: &str) -> Vec<Role> {
        built_in::names(database).map(|name| Role::new(name, database)).collect()
    }

    pub(crate) fn new(name: &str, database: &str) -> Role {
        Role { name: name.to_owned(), database: database.to_owned() }
    }

    /// Reads a role as commands name it: a name in the command's database, or name and database.
    pub(crate) fn parse(value: ValueRef<'_>, database: &str) -> Result<Role> {
        let role = match value {
            ValueRef::String(name) => Role::new(name, database),
            ValueRef::Document(document) => {
                let text = |name| document.get(name).and_then(ValueRef::as_str);
                let (Some(name), Some(database)) = (text("role"), text("db")) else {
                    return Err(Error::bad_value("a role needs 'role' and 'db'"));
                };
                Role::new(name, database)
            }
            _ => return Err(Error::bad_value("Role names must be either strings or objects")),
        };
        if built_in::names(&role.database).any(|name| name == role.name) {
            return Ok(role);
        }
        let text = format!("Could not find role: {}@{}", role.name, role.database);
        Err(Error::new(Code::ROLE_NOT_FOUND, text))
    }

    pub(crate) fn to_document(&self) -> Document {
        Document::new().with("role", self.name.as_str()).with("db", self.database.as_str())
    }
}
