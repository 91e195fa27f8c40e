//! A container or collection as people name it on the command line: `database/name`, of whichever API has it.

use std::fmt;

use anyhow::{Result, bail};
use document::Value;

use crate::client::{Client, path};

/// How a container is named.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Named {
    /// The container or collection, as DATABASE/NAME.
    #[arg(value_name = "DATABASE/NAME")]
    pub(crate) name: String,
    /// Which API it belongs to, where both have one of that name.
    #[arg(long, value_parser = ["nosql", "mongodb"])]
    pub(crate) api: Option<String>,
}

/// A container or collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) api: Api,
    pub(crate) database: String,
    pub(crate) name: String,
}

/// Which API something belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    NoSql,
    MongoDb,
}

impl Api {
    /// As paths and answers name it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Api::NoSql => "nosql",
            Api::MongoDb => "mongodb",
        }
    }

    /// The API of that name.
    pub(crate) fn named(word: &str) -> Api {
        if word == "mongodb" { Api::MongoDb } else { Api::NoSql }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.database, self.name)
    }
}

impl Place {
    /// The place that an entry of `/_bolide/containers` is about.
    pub(crate) fn of(entry: &Value) -> Place {
        let text = |name| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Place { api: Api::named(&text("api")), database: text("database"), name: text("container") }
    }

    /// An admin path about it.
    pub(crate) fn path(&self, subject: &str) -> String {
        format!("{}?api={}", path(&["_bolide", subject, &self.database, &self.name]), self.api.word())
    }
}

/// Takes `database/name` apart. No database has a slash in its name; a collection may.
pub(crate) fn split(name: &str) -> Result<(&str, &str)> {
    match name.split_once('/') {
        Some((database, name)) if !database.is_empty() && !name.is_empty() => Ok((database, name)),
        _ => bail!("'{name}' is not DATABASE/NAME"),
    }
}

impl Named {
    /// Finds it on the server.
    pub(crate) fn find(&self, client: &mut Client) -> Result<Place> {
        let (database, name) = split(&self.name)?;
        let all = all(client)?;
        let is_named = |place: &&Place| {
            let api = self.api.as_deref().is_none_or(|api| api == place.api.word());
            api && place.database == database && place.name == name
        };
        match all.iter().filter(is_named).collect::<Vec<_>>().as_slice() {
            [one] => Ok((*one).clone()),
            [] => {
                let known: Vec<String> = all.iter().take(10).map(Place::to_string).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                bail!("the server has no container or collection '{}'; it has: {known}", self.name)
            }
            _ => bail!(
                "both APIs have a '{}': say which is meant with --api nosql or --api mongodb",
                self.name
            ),
        }
    }
}

/// Everything on the server that holds items.
pub(crate) fn all(client: &mut Client) -> Result<Vec<Place>> {
    let listed = client.get_json("/_bolide/containers")?;
    let listed = listed.get("containers").and_then(Value::as_array).unwrap_or_default();
    Ok(listed.iter().map(Place::of).collect())
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
        let place = Place { api: Api::MongoDb, database: "ä b".to_owned(), name: "c?d".to_owned() };
        assert_eq!(place.path("ttl"), "/%5Fbolide/ttl/%C3%A4%20b/c%3Fd?api=mongodb");
    }
}
