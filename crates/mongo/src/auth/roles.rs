//! Roles: stored with users and shown. What they allow is not enforced yet: whoever has authenticated may do everything.

use bson::{Document, ValueRef};
use mql::Code;

use crate::error::{Error, Result};

/// Roles that exist in every database.
const EVERYWHERE: [&str; 6] = ["dbAdmin", "dbOwner", "enableSharding", "read", "readWrite", "userAdmin"];

/// Roles that exist in `admin` alone.
const IN_ADMIN: [&str; 12] = [
    "__system",
    "backup",
    "clusterAdmin",
    "clusterManager",
    "clusterMonitor",
    "dbAdminAnyDatabase",
    "hostManager",
    "readAnyDatabase",
    "readWriteAnyDatabase",
    "restore",
    "root",
    "userAdminAnyDatabase",
];

/// All roles that exist in a database.
pub(crate) fn built_in(database: &str) -> Vec<Role> {
    let names = EVERYWHERE.iter().chain(if database == "admin" { IN_ADMIN.iter() } else { [].iter() });
    names.map(|name| Role { name: (*name).to_owned(), database: database.to_owned() }).collect()
}

/// A role in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Role {
    pub(crate) name: String,
    pub(crate) database: String,
}

impl Role {
    /// Reads a role as commands name it: a name in the command's database, or name and database.
    pub(crate) fn parse(value: ValueRef<'_>, database: &str) -> Result<Role> {
        let role = match value {
            ValueRef::String(name) => Role { name: name.to_owned(), database: database.to_owned() },
            ValueRef::Document(document) => {
                let text = |name| document.get(name).and_then(ValueRef::as_str).map(str::to_owned);
                let (Some(name), Some(database)) = (text("role"), text("db")) else {
                    return Err(Error::bad_value("a role needs 'role' and 'db'"));
                };
                Role { name, database }
            }
            _ => return Err(Error::bad_value("Role names must be either strings or objects")),
        };
        if !built_in(&role.database).contains(&role) {
            let text = format!("Could not find role: {}@{}", role.name, role.database);
            return Err(Error::new(Code::ROLE_NOT_FOUND, text));
        }
        Ok(role)
    }

    pub(crate) fn to_document(&self) -> Document {
        Document::new().with("role", self.name.as_str()).with("db", self.database.as_str())
    }
}
