//! One request in its handler's hands: who asks, for what, with which fields.

use std::sync::Arc;

use account::Right;
use bson::{Document, RawDocument};
use engine::{Api, Engine, Holder};

use crate::Doors;
use crate::answer::{Answer, Fault, sentence};
use crate::doors::Reply;
use crate::fields::{self, Fields};
use crate::layout;
use crate::session::{Session, Sessions};

/// A request of somebody who is signed in.
pub(crate) struct Visit {
    pub(crate) doors: Doors,
    /// Who else is signed in.
    pub(crate) sessions: Option<Arc<Sessions>>,
    pub(crate) session: Session,
    /// The path below the prefix.
    pub(crate) path: Vec<String>,
    pub(crate) query: Fields,
    pub(crate) form: Fields,
}

impl Visit {
    /// A visit that asks for nothing: for pages around a fault.
    pub(crate) fn plain(doors: &Doors, session: &Session) -> Visit {
        let (query, form) = (Fields::default(), Fields::default());
        Visit {
            doors: doors.clone(),
            sessions: None,
            session: session.clone(),
            path: Vec::new(),
            query,
            form,
        }
    }

    /// Whether the visitor may change anything.
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

    /// The same, for work whose failure the page itself tells of.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Engine) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let engine = Arc::clone(&self.doors.engine);
        let done = tokio::task::spawn_blocking(move || work(&engine)).await;
        done.map_err(|error| {
            tracing::error!("a page of the explorer failed: {error}");
            Fault::panicked()
        })
    }

    /// Runs a command of the MongoDB API; an error if it failed.
    pub(crate) async fn command(&self, database: &str, command: Document) -> Result<Reply, String> {
        let Some(shell) = &self.doors.shell else {
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

    /// The container or collection that the path names.
    pub(crate) fn holder(&self) -> Result<Holder, Fault> {
        let [_, api, database, name, ..] = self.path.as_slice() else {
            return Err(Fault::not_found("This page"));
        };
        let api = match api.as_str() {
            "nosql" => Api::NoSql,
            "mongodb" => Api::MongoDb,
            _ => return Err(Fault::not_found("This page")),
        };
        Ok(self.doors.engine.holder(api, database, name)?)
    }

    /// The page of a container or collection that was asked for, in its frame.
    pub(crate) async fn show(
        &self,
        title: &str,
        holder: Option<&Holder>,
        inner: &maud::Markup,
    ) -> Result<Answer, Fault> {
        Ok(Answer::page(layout::frame(self, title, holder, inner).await?))
    }
}

/// What a command says went wrong: with itself, or with a write in it.
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

/// The link to a page of a container or collection.
pub(crate) fn link(holder: &Holder, page: &str) -> String {
    let (database, name) = (fields::encode(holder.database()), fields::encode(holder.name()));
    let slash = if page.is_empty() || page.starts_with('?') { "" } else { "/" };
    format!("/_explorer/c/{}/{database}/{name}{slash}{page}", api_word(holder.api()))
}

/// The API in links.
pub(crate) fn api_word(api: Api) -> &'static str {
    match api {
        Api::NoSql => "nosql",
        Api::MongoDb => "mongodb",
    }
}

/// The API for people.
pub(crate) fn api_name(api: Api) -> &'static str {
    match api {
        Api::NoSql => "NoSQL",
        Api::MongoDb => "MongoDB",
    }
}
