//! The table of pages. `{}` stands for a name.

use std::future::Future;
use std::pin::Pin;

use hyper::Method;

use crate::pages::{
    clock, container, create, feed, help, holds, home, item, keys, purge, query, settings, timeline, users,
};
use crate::visit::Visit;
use crate::visit::answer::{Answer, Fault};

/// A handler.
type Run = for<'a> fn(&'a Visit) -> Pin<Box<dyn Future<Output = Result<Answer, Fault>> + Send + 'a>>;

/// Whether a form changes anything, which a read-only key may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    Writes,
}

/// How much work a page is: the queue in which it waits under overload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Reads statistics or single items, or makes one change.
    Brief,
    /// Reads many items.
    Query,
}

/// A page or an action.
pub(crate) struct Route {
    method: Method,
    path: &'static str,
    pub(crate) effect: Effect,
    pub(crate) weight: Weight,
    pub(crate) run: Run,
}

macro_rules! route {
    ($method:ident, $effect:ident, $weight:ident, $path:literal, $run:path) => {
        Route {
            method: Method::$method,
            path: $path,
            effect: Effect::$effect,
            weight: Weight::$weight,
            run: |visit| Box::pin($run(visit)),
        }
    };
}

macro_rules! page {
    ($path:literal, $run:path) => {
        route!(GET, Reads, Brief, $path, $run)
    };
}

/// A page that reads many items.
macro_rules! list {
    ($path:literal, $run:path) => {
        route!(GET, Reads, Query, $path, $run)
    };
}

/// A form that only asks for confirmation.
macro_rules! question {
    ($path:literal, $run:path) => {
        route!(POST, Reads, Query, $path, $run)
    };
}

macro_rules! form {
    ($path:literal, $run:path) => {
        route!(POST, Writes, Brief, $path, $run)
    };
}

const TABLE: &[Route] = &[
    page!("", home::show),
    page!("live", home::live),
    page!("help", help::show),
    route!(POST, Reads, Brief, "sign-out", home::show),
    page!("new", create::show),
    form!("new", create::create),
    page!("clock", clock::show),
    form!("clock", clock::steer),
    page!("purge", purge::show),
    page!("purge/live", purge::live),
    form!("purge", purge::steer),
    page!("users", users::show),
    form!("users", users::change),
    page!("keys", keys::show),
    form!("keys", keys::rotate),
    list!("c/{}/{}/{}", container::show),
    page!("c/{}/{}/{}/query", query::show),
    question!("c/{}/{}/{}/query", query::run),
    list!("c/{}/{}/{}/timeline", timeline::show),
    page!("c/{}/{}/{}/timeline/live", timeline::live),
    form!("c/{}/{}/{}/purge", timeline::purge),
    list!("c/{}/{}/{}/feed", feed::show),
    list!("c/{}/{}/{}/feed/live", feed::live),
    page!("c/{}/{}/{}/holds", holds::show),
    form!("c/{}/{}/{}/holds", holds::change),
    page!("c/{}/{}/{}/settings", settings::show),
    page!("c/{}/{}/{}/settings/dry-run", settings::dry_run),
    form!("c/{}/{}/{}/settings/ttl", settings::apply_ttl),
    form!("c/{}/{}/{}/settings/lifecycle", settings::apply_lifecycle),
    form!("c/{}/{}/{}/settings/delete", settings::delete),
    page!("c/{}/{}/{}/new", item::blank),
    form!("c/{}/{}/{}/new", item::create),
    page!("c/{}/{}/{}/item/{}", item::show),
    form!("c/{}/{}/{}/item/{}", item::save),
    form!("c/{}/{}/{}/item/{}/delete", item::delete),
];

impl Route {
    /// Returns the name of the change for the audit log; `None` if it changes nothing, or a document.
    pub(crate) fn audited_as(&self) -> Option<&'static str> {
        let name = match self.path.strip_prefix("c/{}/{}/{}/") {
            Some("new") => return None,
            Some(below) => below,
            None => self.path,
        };
        (self.effect == Effect::Writes && !name.starts_with("item")).then_some(name)
    }
}

/// The route of a path.
pub(crate) enum Found {
    Route(&'static Route),
    /// There is such a page, and it does not take the method.
    WrongMethod,
    Nothing,
}

/// Finds the handler of a path.
pub(crate) fn find(method: &Method, segments: &[String]) -> Found {
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let matching = |route: &&Route| {
        let pattern: Vec<&str> = route.path.split('/').collect();
        pattern.len() == segments.len()
            && pattern.iter().zip(segments).all(|(wanted, given)| *wanted == "{}" || wanted == given)
    };
    let mut candidates = TABLE.iter().filter(matching).peekable();
    if candidates.peek().is_none() {
        return Found::Nothing;
    }
    candidates.find(|route| route.method == *method).map_or(Found::WrongMethod, Found::Route)
}
