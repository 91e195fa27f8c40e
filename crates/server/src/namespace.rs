//! The name of a container or collection on the command line: `database/name`, in either API.

use std::fmt;

use anyhow::{Result, bail};
use document::Value;

use crate::client::{Client, path};

/// Arguments that name a container or collection.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NamespaceArguments {
    /// The container or collection, as DATABASE/NAME
    #[arg(value_name = "DATABASE/NAME")]
    pub(crate) name: String,
    /// The API it belongs to, if both have one of that name
    #[arg(long, value_parser = ["nosql", "mongodb"])]
    pub(crate) api: Option<String>,
}

/// A container or collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namespace {
    pub(crate) api: Api,
    pub(crate) database: String,
    pub(crate) name: String,
}

/// An API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    NoSql,
    MongoDb,
}

impl Api {
    /// Returns its name in paths and answers.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Api::NoSql => "nosql",
            Api::MongoDb => "mongodb",
        }
    }

    /// Returns the API with this name.
    pub(crate) fn named(word: &str) -> Api {
        if word == "mongodb" { Api::MongoDb } else { Api::NoSql }
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.database, self.name)
    }
}

impl Namespace {
    /// Returns the namespace of an entry of `/_bolide/containers`.
    pub(crate) fn of(entry: &Value) -> Namespace {
        let text = |name| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Namespace { api: Api::named(&text("api")), database: text("database"), name: text("container") }
    }

    /// Returns an admin path for it.
    pub(crate) fn path(&self, subject: &str) -> String {
        format!("{}?api={}", path(&["_bolide", subject, &self.database, &self.name]), self.api.word())
    }
}

/// Splits `database/name`. Names of databases contain no slash; those of collections may.
pub(crate) fn split(name: &str) -> Result<(&str, &str)> {
    match name.split_once('/') {
        Some((database, name)) if !database.is_empty() && !name.is_empty() => Ok((database, name)),
        _ => bail!("'{name}' is not DATABASE/NAME"),
    }
}

impl NamespaceArguments {
    /// Finds it on the server.
    pub(crate) fn find(&self, client: &mut Client) -> Result<Namespace> {
        let (database, name) = split(&self.name)?;
        let all = all(client)?;
        let is_named = |namespace: &&Namespace| {
            let api = self.api.as_deref().is_none_or(|api| api == namespace.api.word());
            api && namespace.database == database && namespace.name == name
        };
        match all.iter().filter(is_named).collect::<Vec<_>>().as_slice() {
            [one] => Ok((*one).clone()),
            [] => {
                let known: Vec<String> = all.iter().take(10).map(Namespace::to_string).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                bail!("the server has no container or collection '{}'; it has: {known}", self.name)
            }
            _ => bail!("both APIs have a '{}': choose one with --api nosql or --api mongodb", self.name),
        }
    }
}

/// Lists all containers and collections on the server.
pub(crate) fn all(client: &mut Client) -> Result<Vec<Namespace>> {
    let listed = client.get_json("/_bolide/containers")?;
    let listed = listed.get("containers").and_then(Value::as_array).unwrap_or_default();
    Ok(listed.iter().map(Namespace::of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_split_at_its_first_slash() {
        assert_eq!(split("db/c").unwrap(), ("db", "c"));
        assert_eq!(split("db/a/b").unwrap(), ("db", "a/b"));
        for wrong in ["", "db", "/c", "db/"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_carries_any_name() {
        let namespace = Namespace { api: Api::MongoDb, database: "ä b".to_owned(), name: "c?d".to_owned() };
        assert_eq!(namespace.path("ttl"), "/%5Fbolide/ttl/%C3%A4%20b/c%3Fd?api=mongodb");
    }
}
