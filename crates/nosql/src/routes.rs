//! The one table of what this front end answers: verb and path to handler.
//!
//! A star stands for one segment. Rows that lead to `not_supported` are what the service has and we do not have
//! yet: they answer with a clear error instead of 404, and they show here what is missing.

use std::future::Future;
use std::pin::Pin;

use crate::call::Call;
use crate::error::Error;
use crate::handlers;
use crate::path::ResourcePath;
use crate::request::Verb;
use crate::response::Reply;

/// What a handler comes to.
pub(crate) type Answer<'a> = Pin<Box<dyn Future<Output = Result<Reply, Error>> + Send + 'a>>;

/// One row of the table.
pub(crate) struct Route {
    verb: Verb,
    path: &'static [&'static str],
    pub(crate) run: for<'a> fn(&'a Call) -> Answer<'a>,
}

macro_rules! routes {
    ($($verb:ident [$($segment:literal),*] => $handler:ident;)*) => {
        const ROUTES: &[Route] = &[$(
            Route {
                verb: Verb::$verb,
                path: &[$($segment),*],
                run: |call| Box::pin(handlers::$handler::handle(call)),
            },
        )*];
    };
}

routes! {
    // Items first: the table is searched from the top, and these are most of the traffic.
    Get        ["dbs", "*", "colls", "*", "docs", "*"] => read_item;
    Post       ["dbs", "*", "colls", "*", "docs"] => create_item;
    Upsert     ["dbs", "*", "colls", "*", "docs"] => upsert_item;
    Put        ["dbs", "*", "colls", "*", "docs", "*"] => replace_item;
    Patch      ["dbs", "*", "colls", "*", "docs", "*"] => patch_item;
    Delete     ["dbs", "*", "colls", "*", "docs", "*"] => delete_item;
    Query      ["dbs", "*", "colls", "*", "docs"] => query_items;
    Get        ["dbs", "*", "colls", "*", "docs"] => list_items;
    Batch      ["dbs", "*", "colls", "*", "docs"] => batch_items;
    Plan       ["dbs", "*", "colls", "*", "docs"] => plan_query;
    ChangeFeed ["dbs", "*", "colls", "*", "docs"] => read_change_feed;
    Post       ["dbs", "*", "colls", "*", "operations", "partitionkeydelete"] => delete_partition;

    Get        [] => read_account;
    Get        ["dbs", "*", "colls", "*", "pkranges"] => read_pkranges;
    ChangeFeed ["dbs", "*", "colls", "*", "pkranges"] => read_pkranges;

    Post       ["dbs", "*", "colls"] => create_container;
    Get        ["dbs", "*", "colls"] => list_containers;
    Query      ["dbs", "*", "colls"] => list_containers;
    Get        ["dbs", "*", "colls", "*"] => read_container;
    Put        ["dbs", "*", "colls", "*"] => replace_container;
    Delete     ["dbs", "*", "colls", "*"] => delete_container;

    Post       ["dbs"] => create_database;
    Get        ["dbs"] => list_databases;
    Query      ["dbs"] => list_databases;
    Get        ["dbs", "*"] => read_database;
    Delete     ["dbs", "*"] => delete_database;

    Get        ["offers"] => list_offers;
    Query      ["offers"] => list_offers;
    Get        ["offers", "*"] => read_offer;
    Put        ["offers", "*"] => replace_offer;

    // Definitions are kept; running them is not supported yet.
    Get        ["dbs", "*", "users"] => list_resources;
    Query      ["dbs", "*", "users"] => list_resources;
    Post       ["dbs", "*", "users"] => create_resource;
    Upsert     ["dbs", "*", "users"] => create_resource;
    Get        ["dbs", "*", "users", "*"] => read_resource;
    Put        ["dbs", "*", "users", "*"] => replace_resource;
    Delete     ["dbs", "*", "users", "*"] => delete_resource;
    Get        ["dbs", "*", "users", "*", "permissions"] => list_resources;
    Query      ["dbs", "*", "users", "*", "permissions"] => list_resources;
    Post       ["dbs", "*", "users", "*", "permissions"] => create_resource;
    Upsert     ["dbs", "*", "users", "*", "permissions"] => create_resource;
    Get        ["dbs", "*", "users", "*", "permissions", "*"] => read_resource;
    Put        ["dbs", "*", "users", "*", "permissions", "*"] => replace_resource;
    Delete     ["dbs", "*", "users", "*", "permissions", "*"] => delete_resource;
    Get        ["dbs", "*", "colls", "*", "sprocs"] => list_resources;
    Query      ["dbs", "*", "colls", "*", "sprocs"] => list_resources;
    Post       ["dbs", "*", "colls", "*", "sprocs"] => create_resource;
    Upsert     ["dbs", "*", "colls", "*", "sprocs"] => create_resource;
    Get        ["dbs", "*", "colls", "*", "sprocs", "*"] => read_resource;
    Put        ["dbs", "*", "colls", "*", "sprocs", "*"] => replace_resource;
    Delete     ["dbs", "*", "colls", "*", "sprocs", "*"] => delete_resource;
    Post       ["dbs", "*", "colls", "*", "sprocs", "*"] => execute_sproc;
    Get        ["dbs", "*", "colls", "*", "triggers"] => list_resources;
    Query      ["dbs", "*", "colls", "*", "triggers"] => list_resources;
    Post       ["dbs", "*", "colls", "*", "triggers"] => create_resource;
    Upsert     ["dbs", "*", "colls", "*", "triggers"] => create_resource;
    Get        ["dbs", "*", "colls", "*", "triggers", "*"] => read_resource;
    Put        ["dbs", "*", "colls", "*", "triggers", "*"] => replace_resource;
    Delete     ["dbs", "*", "colls", "*", "triggers", "*"] => delete_resource;
    Get        ["dbs", "*", "colls", "*", "udfs"] => list_resources;
    Query      ["dbs", "*", "colls", "*", "udfs"] => list_resources;
    Post       ["dbs", "*", "colls", "*", "udfs"] => create_resource;
    Upsert     ["dbs", "*", "colls", "*", "udfs"] => create_resource;
    Get        ["dbs", "*", "colls", "*", "udfs", "*"] => read_resource;
    Put        ["dbs", "*", "colls", "*", "udfs", "*"] => replace_resource;
    Delete     ["dbs", "*", "colls", "*", "udfs", "*"] => delete_resource;

    // A single store has no conflicts: the feed is empty, and that is the truth.
    Get        ["dbs", "*", "colls", "*", "conflicts"] => list_conflicts;
    Query      ["dbs", "*", "colls", "*", "conflicts"] => list_conflicts;
    Get        ["dbs", "*", "colls", "*", "conflicts", "*"] => read_conflict;
    Delete     ["dbs", "*", "colls", "*", "conflicts", "*"] => read_conflict;
}

/// Resources that are not there yet, whatever the verb.
const MISSING: &[&[&str]] = &[
    &["dbs", "*", "clientencryptionkeys"],
    &["dbs", "*", "clientencryptionkeys", "*"],
    &["dbs", "*", "colls", "*", "docs", "*", "attachments"],
    &["dbs", "*", "colls", "*", "docs", "*", "attachments", "*"],
];

static NOT_SUPPORTED: Route =
    Route { verb: Verb::Get, path: &[], run: |call| Box::pin(handlers::not_supported::handle(call)) };

/// The handler for a request, or why there is none.
pub(crate) fn find(verb: Option<Verb>, path: &ResourcePath) -> Result<&'static Route, Error> {
    let mut known = false;
    for route in ROUTES {
        if matches(route.path, path) {
            if verb == Some(route.verb) {
                return Ok(route);
            }
            known = true;
        }
    }
    if MISSING.iter().any(|missing| matches(missing, path)) {
        return Ok(&NOT_SUPPORTED);
    }
    let shown: String = path.segments().join("/").chars().take(200).collect();
    if known {
        return Err(Error::WrongVerb(format!("this operation does not exist on '/{shown}'")));
    }
    Err(Error::NoRoute(format!("/{shown}")))
}

fn matches(pattern: &[&str], path: &ResourcePath) -> bool {
    let segments = path.segments();
    pattern.len() == segments.len()
        && pattern.iter().zip(segments).all(|(want, segment)| match *want {
            "*" => !segment.is_empty(),
            want => want == segment,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(raw: &str) -> ResourcePath {
        ResourcePath::parse(raw).unwrap()
    }

    #[test]
    fn no_row_hides_another() {
        for (index, route) in ROUTES.iter().enumerate() {
            for earlier in &ROUTES[..index] {
                assert!(!(earlier.verb == route.verb && earlier.path == route.path), "{:?}", route.path);
            }
            assert!(!MISSING.contains(&route.path), "{:?}", route.path);
        }
    }

    #[test]
    fn wrong_verbs_and_unknown_paths_differ() {
        assert!(find(Some(Verb::Get), &path("/dbs/d/colls/c/docs/x/")).is_ok());
        assert!(matches!(find(Some(Verb::Put), &path("/dbs")), Err(Error::WrongVerb(_))));
        assert!(matches!(find(None, &path("/dbs")), Err(Error::WrongVerb(_))));
        assert!(matches!(find(Some(Verb::Get), &path("/nothing")), Err(Error::NoRoute(_))));
        assert!(matches!(find(Some(Verb::Get), &path("/dbs//colls")), Err(Error::NoRoute(_))));
        assert!(find(Some(Verb::Delete), &path("/dbs/d/clientencryptionkeys")).is_ok());
    }
}
