//! The table of pages. `{}` stands for a name.

use std::future::Future;
use std::pin::Pin;

use document::Object;
use hyper::Method;

use crate::fields::Fields;
use crate::pages::{
    clock, container, create, feed, help, holds, home, item, keys, purge, query, settings, timeline,
    ttl_fields, users,
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

/// What the audit log records of a form. It records refusals of all forms.
#[derive(Clone, Copy)]
pub(crate) enum Audit {
    /// Nothing else: it reads, or is about a document.
    Refusals,
    /// Every change, with the settings that this function finds in the form.
    Changes(fn(&Fields) -> Object),
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
    pub(crate) audit: Audit,
    pub(crate) run: Run,
}

macro_rules! route {
    ($method:ident, $effect:ident, $weight:ident, $audit:expr, $path:literal, $run:path) => {
        Route {
            method: Method::$method,
            path: $path,
            effect: Effect::$effect,
            weight: Weight::$weight,
            audit: $audit,
            run: |visit| Box::pin($run(visit)),
        }
    };
}

macro_rules! page {
    ($path:literal, $run:path) => {
        route!(GET, Reads, Brief, Audit::Refusals, $path, $run)
    };
}

/// A page that reads many items.
macro_rules! list {
    ($path:literal, $run:path) => {
        route!(GET, Reads, Query, Audit::Refusals, $path, $run)
    };
}

/// A form that only asks for confirmation.
macro_rules! question {
    ($path:literal, $run:path) => {
        route!(POST, Reads, Query, Audit::Refusals, $path, $run)
    };
}

/// A form that changes a document.
macro_rules! item {
    ($path:literal, $run:path) => {
        route!(POST, Writes, Brief, Audit::Refusals, $path, $run)
    };
}

/// A form that changes anything else, with the function that finds its settings.
macro_rules! form {
    ($path:literal, $run:path) => {
        form!($path, $run, |_| Object::new())
    };
    ($path:literal, $run:path, $settings:expr) => {
        route!(POST, Writes, Brief, Audit::Changes($settings), $path, $run)
    };
}

const TABLE: &[Route] = &[
    page!("", home::show),
    page!("live", home::live),
    page!("help", help::show),
    route!(POST, Reads, Brief, Audit::Refusals, "sign-out", home::show),
    page!("new", create::show),
    form!("new", create::create, create::settings),
    page!("clock", clock::show),
    form!("clock", clock::steer),
    page!("purge", purge::show),
    page!("purge/live", purge::live),
    form!("purge", purge::steer),
    page!("users", users::show),
    form!("users", users::change, users::settings),
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
    form!("c/{}/{}/{}/settings/ttl", settings::apply_ttl, ttl_fields::settings),
    form!("c/{}/{}/{}/settings/lifecycle", settings::apply_lifecycle, settings::lifecycle_settings),
    form!("c/{}/{}/{}/settings/delete", settings::delete),
    page!("c/{}/{}/{}/new", item::blank),
    item!("c/{}/{}/{}/new", item::create),
    page!("c/{}/{}/{}/item/{}", item::show),
    item!("c/{}/{}/{}/item/{}", item::save),
    item!("c/{}/{}/{}/item/{}/delete", item::delete),
];

impl Route {
    /// Returns the name of a form for the audit log.
    pub(crate) fn name(&self) -> String {
        match self.path.strip_prefix("c/{}/{}/{}/") {
            // The form that creates a container has this name, too.
            Some("new") => "item/new".to_owned(),
            Some(below) => below.replace("/{}", ""),
            None => self.path.to_owned(),
        }
    }
}

/// The route of a path.
pub(crate) enum RouteLookup {
    Route(&'static Route),
    /// The page exists, but does not accept the method.
    WrongMethod,
    Nothing,
}

/// Finds the handler of a path.
pub(crate) fn find(method: &Method, segments: &[String]) -> RouteLookup {
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let matching = |route: &&Route| {
        let pattern: Vec<&str> = route.path.split('/').collect();
        pattern.len() == segments.len()
            && pattern.iter().zip(segments).all(|(wanted, given)| *wanted == "{}" || wanted == given)
    };
    let mut candidates = TABLE.iter().filter(matching).peekable();
    if candidates.peek().is_none() {
        return RouteLookup::Nothing;
    }
    candidates.find(|route| route.method == *method).map_or(RouteLookup::WrongMethod, RouteLookup::Route)
}
