//! A request as its handler sees it: its session, its page, its fields.

pub(crate) mod answer;
pub(crate) mod guard;
pub(crate) mod layout;

use std::sync::Arc;

use account::Right;
use bson::{Document, RawDocument};
use engine::{Api, Engine, Owner};

use crate::backends::Backends;
use crate::backends::Reply;
use crate::fields::{self, Fields};
use crate::session::{Session, Sessions};
use crate::visit::answer::{Answer, Fault, sentence};

/// A request with a session.
pub(crate) struct Visit {
    pub(crate) backends: Backends,
    /// All sessions.
    pub(crate) sessions: Option<Arc<Sessions>>,
    pub(crate) session: Session,
    /// The path below the prefix.
    pub(crate) path: Vec<String>,
    pub(crate) query: Fields,
    pub(crate) form: Fields,
}

impl Visit {
    /// Creates a visit without a request, for pages around a fault.
    pub(crate) fn plain(backends: &Backends, session: &Session) -> Visit {
        let (query, form) = (Fields::default(), Fields::default());
        Visit {
            backends: backends.clone(),
            sessions: None,
            session: session.clone(),
            path: Vec::new(),
            query,
            form,
        }
    }

    /// Returns whether the visitor may change anything.
    pub(crate) fn may_write(&self) -> bool {
        self.session.right() == Right::ReadWrite
    }

    /// Runs work of the engine, which may block, beside the workers.
    pub(crate) async fn engine<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Engine) -> engine::Result<T> + Send + 'static,
    ) -> Result<T, Fault> {
        Ok(self.blocking(move |engine| work(engine)).await??)
    }

    /// Runs blocking work whose failure the page itself reports.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Engine) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let engine = Arc::clone(&self.backends.engine);
        let done = tokio::task::spawn_blocking(move || work(&engine)).await;
        done.map_err(|error| {
            tracing::error!("a page of the explorer failed: {error}");
            Fault::panicked()
        })
    }

    /// Runs a command of the MongoDB API; an error if it failed.
    pub(crate) async fn command(&self, database: &str, command: Document) -> Result<Reply, String> {
        let Some(shell) = &self.backends.shell else {
            return Err(
                "The MongoDB API is switched off ('mongo-listen'): its collections can be looked at only."
                    .into(),
            );
        };
        let reply = shell.run(&self.session.holder, database, &command).await;
        match failure(&reply.document) {
            Some(text) => Err(sentence(&text)),
            None => Ok(reply),
        }
    }

    /// Returns the container or collection that the path names.
    pub(crate) fn owner(&self) -> Result<Owner, Fault> {
        let [_, api, database, name, ..] = self.path.as_slice() else {
            return Err(Fault::not_found("This page"));
        };
        let api = match api.as_str() {
            "nosql" => Api::NoSql,
            "mongodb" => Api::MongoDb,
            _ => return Err(Fault::not_found("This page")),
        };
        Ok(self.backends.engine.owner(api, database, name)?)
    }

    /// Returns a page of the container or collection, in its frame.
    pub(crate) async fn show(
        &self,
        title: &str,
        owner: Option<&Owner>,
        inner: &maud::Markup,
    ) -> Result<Answer, Fault> {
        Ok(Answer::page(layout::frame(self, title, owner, inner).await?))
    }
}

/// Returns the error of a command, or of a write in it.
fn failure(reply: &RawDocument) -> Option<String> {
    let text = |document: bson::DocumentRef<'_>, name: &str| {
        document.get(name).and_then(bson::ValueRef::as_str).map(str::to_owned)
    };
    let ok = reply.get("ok").and_then(|ok| match ok {
        bson::ValueRef::Double(ok) => Some(ok),
        _ => None,
    });
    if ok != Some(1.0) {
        return Some(text(reply.view(), "errmsg").unwrap_or_else(|| "the command failed".to_owned()));
    }
    let errors = reply.get("writeErrors").and_then(bson::ValueRef::as_array)?;
    let first = errors.iter().next().and_then(bson::ValueRef::as_document)?;
    text(first, "errmsg")
}

/// Returns the link to a page of a container or collection.
pub(crate) fn link(owner: &Owner, page: &str) -> String {
    let (database, name) = (fields::encode(owner.database()), fields::encode(owner.name()));
    let slash = if page.is_empty() || page.starts_with('?') { "" } else { "/" };
    format!("/_explorer/c/{}/{database}/{name}{slash}{page}", api_word(owner.api()))
}

/// Returns the API in links.
pub(crate) fn api_word(api: Api) -> &'static str {
    match api {
        Api::NoSql => "nosql",
        Api::MongoDb => "mongodb",
    }
}

/// Returns the API for people.
pub(crate) fn api_name(api: Api) -> &'static str {
    match api {
        Api::NoSql => "NoSQL",
        Api::MongoDb => "MongoDB",
    }
}
