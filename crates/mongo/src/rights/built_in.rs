//! The built-in roles: what each permits, and where. One table, and one function that answers from it.
//!
//! The table has MongoDB's own roles with the actions that some command here needs; it has no row for an action that
//! nothing here does. A role of a database reaches over that database; a role of `admin` over what its row names. No role
//! reaches the collection of users: no command shows or changes it as it is stored.

use std::collections::{BTreeMap, BTreeSet};

use bson::{Document, Value};

use super::action::Action;
use super::role::Role;
use super::{Privilege, Resource};

/// What a grant reaches over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// The server itself.
    Cluster,
    /// The role's own database.
    Own,
    /// One database, whatever the role's own is.
    Of(&'static str),
    /// Every database that is not the server's own.
    Normal,
    /// Every database.
    Every,
}

/// Databases that are the server's own in MongoDB: a role for any database does not reach them.
const INTERNAL: [&str; 2] = ["config", "local"];

/// A built-in role.
struct BuiltIn {
    name: &'static str,
    /// Whether it exists in `admin` alone.
    admin_only: bool,
    /// Roles that it includes; of its own database unless another is named.
    includes: &'static [(&'static str, Option<&'static str>)],
    grants: &'static [(Reach, &'static [Action])],
}

const READ: &[Action] = &[
    Action::ChangeStream,
    Action::CollStats,
    Action::DbStats,
    Action::Find,
    Action::ListCollections,
    Action::ListIndexes,
];

/// The actions of writers beside those of readers.
const WRITE: &[Action] = &[
    Action::CreateCollection,
    Action::CreateIndex,
    Action::DropCollection,
    Action::DropIndex,
    Action::Insert,
    Action::Remove,
    Action::RenameCollectionSameDb,
    Action::Update,
];

const ADMINISTER: &[Action] = &[
    Action::BypassDocumentValidation,
    Action::CollMod,
    Action::CollStats,
    Action::CreateCollection,
    Action::CreateIndex,
    Action::DbStats,
    Action::DropCollection,
    Action::DropDatabase,
    Action::DropIndex,
    Action::EnableProfiler,
    Action::ListCollections,
    Action::ListIndexes,
    Action::RenameCollectionSameDb,
    Action::Validate,
];

const ADMINISTER_USERS: &[Action] = &[
    Action::ChangeCustomData,
    Action::ChangePassword,
    Action::CreateUser,
    Action::DropUser,
    Action::GrantRole,
    Action::RevokeRole,
    Action::ViewRole,
    Action::ViewUser,
];

/// The actions by which a monitor sees databases.
const FIGURES: &[Action] = &[Action::CollStats, Action::DbStats, Action::IndexStats];

const MONITOR: &[Action] = &[
    Action::GetCmdLineOpts,
    Action::GetDefaultRwConcern,
    Action::GetLog,
    Action::GetParameter,
    Action::HostInfo,
    Action::Inprog,
    Action::ListDatabases,
    Action::ReplSetGetConfig,
    Action::ReplSetGetStatus,
    Action::ServerStatus,
    Action::Top,
];

const RESTORE: &[Action] = &[
    Action::BypassDocumentValidation,
    Action::CollMod,
    Action::CreateCollection,
    Action::CreateIndex,
    Action::DropCollection,
    Action::Insert,
];

/// In the order of their names.
const ROLES: &[BuiltIn] = &[
    // Not for people: MongoDB's own processes have it.
    BuiltIn {
        name: "__system",
        admin_only: true,
        includes: &[],
        grants: &[(Reach::Cluster, Action::ALL), (Reach::Every, Action::ALL)],
    },
    BuiltIn {
        name: "backup",
        admin_only: true,
        includes: &[],
        grants: &[
            (Reach::Cluster, &[Action::GetParameter, Action::ListDatabases, Action::ServerStatus]),
            (Reach::Every, &[Action::CollStats, Action::Find, Action::ListCollections, Action::ListIndexes]),
        ],
    },
    BuiltIn {
        name: "clusterAdmin",
        admin_only: true,
        includes: &[("clusterMonitor", None), ("hostManager", None), ("clusterManager", None)],
        grants: &[(Reach::Normal, &[Action::DropDatabase])],
    },
    BuiltIn {
        name: "clusterManager",
        admin_only: true,
        includes: &[("read", Some("config"))],
        grants: &[
            (
                Reach::Cluster,
                &[Action::GetDefaultRwConcern, Action::ReplSetGetConfig, Action::ReplSetGetStatus],
            ),
            (Reach::Of("config"), &[Action::Insert, Action::Remove, Action::Update]),
            (Reach::Of("local"), &[Action::Insert, Action::Remove, Action::Update]),
        ],
    },
    BuiltIn {
        name: "clusterMonitor",
        admin_only: true,
        includes: &[("read", Some("config")), ("read", Some("local"))],
        grants: &[(Reach::Cluster, MONITOR), (Reach::Every, FIGURES)],
    },
    BuiltIn { name: "dbAdmin", admin_only: false, includes: &[], grants: &[(Reach::Own, ADMINISTER)] },
    BuiltIn {
        name: "dbAdminAnyDatabase",
        admin_only: true,
        includes: &[],
        grants: &[(Reach::Cluster, &[Action::ListDatabases]), (Reach::Normal, ADMINISTER)],
    },
    BuiltIn {
        name: "dbOwner",
        admin_only: false,
        includes: &[("readWrite", None), ("dbAdmin", None), ("userAdmin", None)],
        grants: &[],
    },
    // There is nothing to shard.
    BuiltIn { name: "enableSharding", admin_only: false, includes: &[], grants: &[] },
    BuiltIn {
        name: "hostManager",
        admin_only: true,
        includes: &[],
        grants: &[(
            Reach::Cluster,
            &[
                Action::Fsync,
                Action::KillAnyCursor,
                Action::KillAnySession,
                Action::KillOp,
                Action::LogRotate,
                Action::SetParameter,
            ],
        )],
    },
    BuiltIn { name: "read", admin_only: false, includes: &[], grants: &[(Reach::Own, READ)] },
    BuiltIn {
        name: "readAnyDatabase",
        admin_only: true,
        includes: &[],
        grants: &[(Reach::Cluster, &[Action::ListDatabases]), (Reach::Normal, READ)],
    },
    BuiltIn {
        name: "readWrite",
        admin_only: false,
        includes: &[("read", None)],
        grants: &[(Reach::Own, WRITE)],
    },
    BuiltIn {
        name: "readWriteAnyDatabase",
        admin_only: true,
        includes: &[("readAnyDatabase", None)],
        grants: &[(Reach::Normal, WRITE)],
    },
    BuiltIn {
        name: "restore",
        admin_only: true,
        includes: &[],
        grants: &[
            (Reach::Cluster, &[Action::GetParameter]),
            (Reach::Every, RESTORE),
            (Reach::Every, &[Action::ListCollections]),
            (Reach::Normal, ADMINISTER_USERS),
        ],
    },
    BuiltIn {
        name: "root",
        admin_only: true,
        includes: &[
            ("clusterAdmin", None),
            ("userAdminAnyDatabase", None),
            ("dbAdminAnyDatabase", None),
            ("readWriteAnyDatabase", None),
            ("backup", None),
            ("restore", None),
        ],
        grants: &[(Reach::Every, &[Action::Validate])],
    },
    BuiltIn {
        name: "userAdmin",
        admin_only: false,
        includes: &[],
        grants: &[(Reach::Own, ADMINISTER_USERS)],
    },
    BuiltIn {
        name: "userAdminAnyDatabase",
        admin_only: true,
        includes: &[],
        grants: &[
            (Reach::Cluster, &[Action::ListDatabases, Action::ViewUser]),
            (Reach::Every, ADMINISTER_USERS),
        ],
    },
];

/// Returns the names of all roles that exist in a database.
pub(super) fn names(database: &str) -> impl Iterator<Item = &'static str> {
    let in_admin = database == "admin";
    ROLES.iter().filter(move |role| in_admin || !role.admin_only).map(|role| role.name)
}

/// Whether these roles grant what is needed.
pub(crate) fn allows(roles: &[Role], need: &Privilege) -> bool {
    let mut allowed = false;
    visit(roles, &mut |reach, database, actions| {
        allowed |= actions.contains(&need.action) && reach.covers(database, &need.on);
    });
    allowed
}

/// Whether these roles grant anything at all in a database.
pub(crate) fn reaches(roles: &[Role], database: &str) -> bool {
    let wanted = Resource::Database(database.to_owned());
    let mut reached = false;
    visit(roles, &mut |reach, own, actions| reached |= !actions.is_empty() && reach.covers(own, &wanted));
    reached
}

/// Returns what these roles allow, as `showPrivileges` lists it: one entry for each resource.
pub(crate) fn privileges(roles: &[Role]) -> Vec<Document> {
    let mut merged: BTreeMap<(Reach, &str), BTreeSet<&str>> = BTreeMap::new();
    visit(roles, &mut |reach, database, actions| {
        let (reach, database) = match reach {
            Reach::Own => (Reach::Own, database),
            Reach::Of(database) => (Reach::Own, database),
            Reach::Cluster => (Reach::Cluster, ""),
            // Clients read an empty name as any.
            Reach::Normal | Reach::Every => (Reach::Every, ""),
        };
        merged.entry((reach, database)).or_default().extend(actions.iter().map(|action| action.name()));
    });
    let shown = merged.into_iter().map(|((reach, database), actions)| {
        let resource = match reach {
            Reach::Cluster => Document::new().with("cluster", true),
            _ => Document::new().with("db", database).with("collection", ""),
        };
        let actions: Vec<Value> = actions.into_iter().map(Value::from).collect();
        Document::new().with("resource", resource).with("actions", actions)
    });
    shown.collect()
}

/// Shows every grant of these roles, those of the roles that they include too, and the database of the role it is from.
fn visit<'a>(roles: &'a [Role], show: &mut impl FnMut(Reach, &'a str, &'static [Action])) {
    for role in roles {
        // No user has a role in a database where it does not exist.
        if names(&role.database).any(|name| name == role.name) {
            visit_one(&role.name, &role.database, show);
        }
    }
}

fn visit_one<'a>(name: &str, database: &'a str, show: &mut impl FnMut(Reach, &'a str, &'static [Action])) {
    let Some(role) = ROLES.iter().find(|role| role.name == name) else { return };
    for (reach, actions) in role.grants {
        show(*reach, database, actions);
    }
    for (included, elsewhere) in role.includes {
        visit_one(included, elsewhere.unwrap_or(database), show);
    }
}

impl Reach {
    fn covers(self, own: &str, resource: &Resource) -> bool {
        match (self, resource) {
            (Reach::Cluster, Resource::Cluster)
            | (Reach::Every, Resource::Database(_) | Resource::EveryDatabase)
            | (Reach::Normal, Resource::EveryDatabase) => true,
            (Reach::Own, Resource::Database(name)) => name == own,
            (Reach::Of(this), Resource::Database(name)) => name == this,
            (Reach::Normal, Resource::Database(name)) => !INTERNAL.contains(&name.as_str()),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each role, given in `shop` or, if it is there alone, in `admin`, allows: in its own database, in another one, in
    /// MongoDB's own two, over all databases at once and on the server. Every action that is not named in a cell is refused.
    const TABLE: &str = include_str!("../../tests/tables/roles.txt");

    fn role(name: &str, database: &str) -> Role {
        Role::new(name, database)
    }

    /// One line for each role and place: the actions, of all that there are, that are allowed.
    fn table() -> String {
        let mut lines = String::new();
        for BuiltIn { name, admin_only, .. } in ROLES {
            let own = if *admin_only { "admin" } else { "shop" };
            let places = [
                ("own", Resource::Database(own.to_owned())),
                ("other", Resource::Database("other".to_owned())),
                ("config", Resource::Database("config".to_owned())),
                ("local", Resource::Database("local".to_owned())),
                ("every", Resource::EveryDatabase),
                ("cluster", Resource::Cluster),
            ];
            for (place, on) in places {
                let allowed = Action::ALL.iter().filter(|action| {
                    allows(&[role(name, own)], &Privilege { action: **action, on: on.clone() })
                });
                let allowed: Vec<&str> = allowed.map(|action| action.name()).collect();
                let shown =
                    if allowed.len() == Action::ALL.len() { "all".to_owned() } else { allowed.join(" ") };
                lines += format!("{name} {place}: {shown}").trim_end();
                lines += "\n";
            }
        }
        lines
    }

    #[test]
    fn golden_table_of_every_role_and_every_need() {
        let made = table();
        for (made, wanted) in made.lines().zip(TABLE.lines()) {
            assert_eq!(made, wanted);
        }
        assert_eq!(made, TABLE);
    }

    #[test]
    fn a_role_counts_where_it_exists_and_nothing_counts_without_one() {
        let find = |database: &str| Privilege::on(database, Action::Find);
        assert!(!allows(&[], &find("shop")));
        assert!(!allows(&[role("nonsense", "admin"), role("root", "shop")], &find("shop")));
        assert!(allows(&[role("enableSharding", "shop"), role("read", "shop")], &find("shop")));
        assert!(!allows(&[role("read", "admin")], &find("shop")));
        assert!(reaches(&[role("userAdmin", "shop")], "shop"));
        assert!(!reaches(&[role("enableSharding", "shop"), role("read", "other")], "shop"));
    }

    #[test]
    fn privileges_are_told_by_resource() {
        let shown = privileges(&[role("read", "shop"), role("userAdmin", "shop"), role("backup", "admin")]);
        let resources: Vec<&Value> = shown.iter().filter_map(|entry| entry.get("resource")).collect();
        let wanted = [
            Document::new().with("cluster", true),
            Document::new().with("db", "shop").with("collection", ""),
            Document::new().with("db", "").with("collection", ""),
        ];
        assert_eq!(resources, wanted.map(Value::Document).iter().collect::<Vec<_>>());
        let actions = shown[1].get("actions").and_then(Value::as_array).unwrap();
        assert_eq!(actions.len(), READ.len() + ADMINISTER_USERS.len());
    }
}
