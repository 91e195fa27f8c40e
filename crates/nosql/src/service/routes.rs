//! The one table of routes: verb and path to handler, and the name of the operation in metrics and logs.
//!
//! A star stands for one segment. Rows that lead to `not_supported` are features of the service that Bolide does not
//! have yet: they return a clear error instead of 404, and list here what is missing.

use telemetry::OperationId;
use transport::Work;

use crate::admin;
use crate::handlers;
use crate::handlers::route::Route;
use crate::message::request::Verb;
use crate::protocol::error::Error;
use crate::protocol::path::ResourcePath;

macro_rules! routes {
    ($($verb:ident [$($segment:literal),*] => $handler:ident $name:literal;)*) => {
        static ROUTES: &[Route] = &[$(
            Route::new(Verb::$verb, &[$($segment),*], $name, |call| Box::pin(handlers::$handler::handle(call))),
        )*];
    };
}

routes! {
    // Items first: the table is searched in order, and these are most of the traffic.
    Get        ["dbs", "*", "colls", "*", "docs", "*"] => read_item "ReadItem";
    Post       ["dbs", "*", "colls", "*", "docs"] => create_item "CreateItem";
    Upsert     ["dbs", "*", "colls", "*", "docs"] => upsert_item "UpsertItem";
    Put        ["dbs", "*", "colls", "*", "docs", "*"] => replace_item "ReplaceItem";
    Patch      ["dbs", "*", "colls", "*", "docs", "*"] => patch_item "PatchItem";
    Delete     ["dbs", "*", "colls", "*", "docs", "*"] => delete_item "DeleteItem";
    Query      ["dbs", "*", "colls", "*", "docs"] => query_items "QueryItems";
    Get        ["dbs", "*", "colls", "*", "docs"] => list_items "ListItems";
    Batch      ["dbs", "*", "colls", "*", "docs"] => batch_items "BatchItems";
    Plan       ["dbs", "*", "colls", "*", "docs"] => plan_query "PlanQuery";
    ChangeFeed ["dbs", "*", "colls", "*", "docs"] => read_change_feed "ReadChangeFeed";
    Post       ["dbs", "*", "colls", "*", "operations", "partitionkeydelete"] => delete_partition "DeletePartition";

    Get        [] => read_account "ReadAccount";
    Get        ["dbs", "*", "colls", "*", "pkranges"] => read_pkranges "ReadPartitionKeyRanges";
    ChangeFeed ["dbs", "*", "colls", "*", "pkranges"] => read_pkranges "FollowPartitionKeyRanges";

    Post       ["dbs", "*", "colls"] => create_container "CreateContainer";
    Get        ["dbs", "*", "colls"] => list_containers "ListContainers";
    Query      ["dbs", "*", "colls"] => list_containers "QueryContainers";
    Get        ["dbs", "*", "colls", "*"] => read_container "ReadContainer";
    Put        ["dbs", "*", "colls", "*"] => replace_container "ReplaceContainer";
    Delete     ["dbs", "*", "colls", "*"] => delete_container "DeleteContainer";

    Post       ["dbs"] => create_database "CreateDatabase";
    Get        ["dbs"] => list_databases "ListDatabases";
    Query      ["dbs"] => list_databases "QueryDatabases";
    Get        ["dbs", "*"] => read_database "ReadDatabase";
    Delete     ["dbs", "*"] => delete_database "DeleteDatabase";

    Get        ["offers"] => list_offers "ListOffers";
    Query      ["offers"] => list_offers "QueryOffers";
    Get        ["offers", "*"] => read_offer "ReadOffer";
    Put        ["offers", "*"] => replace_offer "ReplaceOffer";

    // Definitions are stored; running them is not supported yet.
    Get        ["dbs", "*", "users"] => list_resources "ListUsers";
    Query      ["dbs", "*", "users"] => list_resources "QueryUsers";
    Post       ["dbs", "*", "users"] => create_resource "CreateUser";
    Upsert     ["dbs", "*", "users"] => create_resource "UpsertUser";
    Get        ["dbs", "*", "users", "*"] => read_resource "ReadUser";
    Put        ["dbs", "*", "users", "*"] => replace_resource "ReplaceUser";
    Delete     ["dbs", "*", "users", "*"] => delete_resource "DeleteUser";
    Get        ["dbs", "*", "users", "*", "permissions"] => list_resources "ListPermissions";
    Query      ["dbs", "*", "users", "*", "permissions"] => list_resources "QueryPermissions";
    Post       ["dbs", "*", "users", "*", "permissions"] => create_resource "CreatePermission";
    Upsert     ["dbs", "*", "users", "*", "permissions"] => create_resource "UpsertPermission";
    Get        ["dbs", "*", "users", "*", "permissions", "*"] => read_resource "ReadPermission";
    Put        ["dbs", "*", "users", "*", "permissions", "*"] => replace_resource "ReplacePermission";
    Delete     ["dbs", "*", "users", "*", "permissions", "*"] => delete_resource "DeletePermission";
    Get        ["dbs", "*", "colls", "*", "sprocs"] => list_resources "ListStoredProcedures";
    Query      ["dbs", "*", "colls", "*", "sprocs"] => list_resources "QueryStoredProcedures";
    Post       ["dbs", "*", "colls", "*", "sprocs"] => create_resource "CreateStoredProcedure";
    Upsert     ["dbs", "*", "colls", "*", "sprocs"] => create_resource "UpsertStoredProcedure";
    Get        ["dbs", "*", "colls", "*", "sprocs", "*"] => read_resource "ReadStoredProcedure";
    Put        ["dbs", "*", "colls", "*", "sprocs", "*"] => replace_resource "ReplaceStoredProcedure";
    Delete     ["dbs", "*", "colls", "*", "sprocs", "*"] => delete_resource "DeleteStoredProcedure";
    Post       ["dbs", "*", "colls", "*", "sprocs", "*"] => execute_sproc "ExecuteStoredProcedure";
    Get        ["dbs", "*", "colls", "*", "triggers"] => list_resources "ListTriggers";
    Query      ["dbs", "*", "colls", "*", "triggers"] => list_resources "QueryTriggers";
    Post       ["dbs", "*", "colls", "*", "triggers"] => create_resource "CreateTrigger";
    Upsert     ["dbs", "*", "colls", "*", "triggers"] => create_resource "UpsertTrigger";
    Get        ["dbs", "*", "colls", "*", "triggers", "*"] => read_resource "ReadTrigger";
    Put        ["dbs", "*", "colls", "*", "triggers", "*"] => replace_resource "ReplaceTrigger";
    Delete     ["dbs", "*", "colls", "*", "triggers", "*"] => delete_resource "DeleteTrigger";
    Get        ["dbs", "*", "colls", "*", "udfs"] => list_resources "ListUserDefinedFunctions";
    Query      ["dbs", "*", "colls", "*", "udfs"] => list_resources "QueryUserDefinedFunctions";
    Post       ["dbs", "*", "colls", "*", "udfs"] => create_resource "CreateUserDefinedFunction";
    Upsert     ["dbs", "*", "colls", "*", "udfs"] => create_resource "UpsertUserDefinedFunction";
    Get        ["dbs", "*", "colls", "*", "udfs", "*"] => read_resource "ReadUserDefinedFunction";
    Put        ["dbs", "*", "colls", "*", "udfs", "*"] => replace_resource "ReplaceUserDefinedFunction";
    Delete     ["dbs", "*", "colls", "*", "udfs", "*"] => delete_resource "DeleteUserDefinedFunction";

    // A single store has no conflicts, so the feed is always empty.
    Get        ["dbs", "*", "colls", "*", "conflicts"] => list_conflicts "ListConflicts";
    Query      ["dbs", "*", "colls", "*", "conflicts"] => list_conflicts "QueryConflicts";
    Get        ["dbs", "*", "colls", "*", "conflicts", "*"] => read_conflict "ReadConflict";
    Delete     ["dbs", "*", "colls", "*", "conflicts", "*"] => read_conflict "DeleteConflict";
}

/// Resources that are not supported yet, for any verb.
const MISSING: &[&[&str]] = &[
    &["dbs", "*", "clientencryptionkeys"],
    &["dbs", "*", "clientencryptionkeys", "*"],
    &["dbs", "*", "colls", "*", "docs", "*", "attachments"],
    &["dbs", "*", "colls", "*", "docs", "*", "attachments", "*"],
];

static NOT_SUPPORTED: Route =
    Route::new(Verb::Get, &[], "NotSupported", |call| Box::pin(handlers::not_supported::handle(call)));

/// Requests answered without a row of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    NotSupported,
    Probe,
    Metrics,
    Page,
    Addresses,
}

impl Beside {
    const NAMES: [&str; 5] = ["NotSupported", "Probe", "Metrics", "Page", "ReadAddresses"];

    /// Returns its number among the operations.
    pub(crate) fn operation(self) -> OperationId {
        OperationId(ROUTES.len() + admin::ROUTES.len() + self as usize)
    }
}

/// Returns the names of all operations, in the order of [`Route::operation`].
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let rows = ROUTES.iter().chain(admin::ROUTES).map(|route| route.name);
    rows.chain(Beside::NAMES)
}

/// Returns whether an operation costs request units: those that clients of the service can request do, those of
/// operators, probes and the explorer do not.
pub(crate) fn is_charged(operation: OperationId) -> bool {
    let admin = ROUTES.len()..ROUTES.len() + admin::ROUTES.len();
    let free = [Beside::Probe, Beside::Metrics, Beside::Page, Beside::Addresses].map(Beside::operation);
    !admin.contains(&operation.0) && !free.contains(&operation)
}

impl Route {
    /// Returns the name used by metrics and logs.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether the audit log includes it: changes of anything but documents, and requests that show keys, make
    /// resource tokens, or copy documents as a whole.
    pub(crate) fn is_audited(&self) -> bool {
        let is_read = self.verb.is_read();
        match self.path {
            [admin::PREFIX, area, ..] => !is_read || ["backup", "export", "keys"].contains(area),
            [_, _, "users", _, "permissions", ..] => true,
            path => !is_read && path.get(4) != Some(&"docs"),
        }
    }

    /// Returns its kind of work; `None` if it is answered without waiting.
    pub(crate) fn work(&self) -> Option<Work> {
        let of_items = self.path.get(4) == Some(&"docs");
        match self.verb {
            Verb::Get if of_items && self.path.len() == 6 => None,
            Verb::Get | Verb::Query | Verb::ChangeFeed if of_items => Some(Work::Query),
            _ => Some(Work::Brief),
        }
    }

    /// Returns its number among the operations.
    pub(crate) fn operation(&'static self) -> OperationId {
        let admin = || Some(ROUTES.len() + admin::ROUTES.element_offset(self)?);
        ROUTES
            .element_offset(self)
            .or_else(admin)
            .map_or_else(|| Beside::NotSupported.operation(), OperationId)
    }
}

/// Returns a path of each row of the tables.
#[cfg(test)]
pub(crate) fn example_paths() -> impl Iterator<Item = String> {
    let name = |segment: &&str| if *segment == "*" { "AAAAAA==".to_owned() } else { (*segment).to_owned() };
    let rows = ROUTES.iter().chain(admin::ROUTES);
    rows.map(move |route| format!("/{}", route.path.iter().map(name).collect::<Vec<_>>().join("/")))
}

/// Returns the row for a request, or why there is none.
pub(crate) fn find(verb: Option<Verb>, path: &ResourcePath) -> Result<&'static Route, Error> {
    let missing = MISSING.iter().any(|missing| matches(missing, path));
    find_in(ROUTES, verb, path).or_else(|error| if missing { Ok(&NOT_SUPPORTED) } else { Err(error) })
}

/// Returns the row of the admin API for a request, or why there is none.
pub(crate) fn find_admin(verb: Option<Verb>, path: &ResourcePath) -> Result<&'static Route, Error> {
    find_in(admin::ROUTES, verb, path)
}

fn find_in(
    table: &'static [Route],
    verb: Option<Verb>,
    path: &ResourcePath,
) -> Result<&'static Route, Error> {
    let mut known = false;
    for route in table {
        if matches(route.path, path) {
            if verb == Some(route.verb) {
                return Ok(route);
            }
            known = true;
        }
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
        for table in [ROUTES, admin::ROUTES] {
            for (index, route) in table.iter().enumerate() {
                for earlier in &table[..index] {
                    assert!(!(earlier.verb == route.verb && earlier.path == route.path), "{:?}", route.path);
                }
                assert!(!MISSING.contains(&route.path), "{:?}", route.path);
            }
        }
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_at_its_place() {
        let names: Vec<&str> = names().collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} stands twice");
        }
        for route in ROUTES.iter().chain(admin::ROUTES).chain([&NOT_SUPPORTED]) {
            assert_eq!(names[route.operation().0], route.name);
        }
        assert_eq!(names[Beside::Metrics.operation().0], "Metrics");
        assert_eq!(names[Beside::Probe.operation().0], "Probe");
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
