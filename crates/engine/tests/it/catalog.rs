//! Databases, containers, offers, and that they persist over a restart.

use engine::{Error, Precondition, Throughput};

use crate::world::{World, definition};

#[test]
fn everything_in_the_catalog_outlives_a_restart() {
    let mut world = World::new();
    let database = world.engine.create_database("second", Some(Throughput::Manual(400))).expect("created");
    let more = r#","defaultTtl":60,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]}]}"#;
    let throughput = Some(Throughput::autoscale(4000));
    let container =
        world.engine.create_container(&database, definition("c", more), throughput).expect("created");
    world.restart();
    let database = world.engine.database("second").expect("still there");
    let again = world.engine.container(&database, "c").expect("still there");
    assert_eq!((again.rid, again.etag(), again.ts()), (container.rid, container.etag(), container.ts()));
    assert_eq!(again.definition, container.definition);
    let offers: Vec<_> =
        world.engine.offers().iter().map(|offer| (offer.resource.clone(), offer.throughput)).collect();
    assert_eq!(
        offers,
        [(database.self_link(), Throughput::Manual(400)), (again.self_link(), Throughput::autoscale(4000))]
    );
    assert_eq!(world.engine.container_by_rid(again.rid).expect("by rid").name(), "c");
}

#[test]
fn names_are_unique_and_case_sensitive() {
    let world = World::new();
    world.container("");
    let database = world.engine.database("db").expect("made");
    assert!(matches!(world.engine.create_database("db", None), Err(Error::Exists { .. })));
    world.engine.create_database("DB", None).expect("another name");
    let twice = world.engine.create_container(&database, definition("c", ""), None);
    assert!(matches!(twice, Err(Error::Exists { .. })));
    for bad in ["", "a/b", "a?b", "a ", &"x".repeat(256)] {
        assert!(matches!(world.engine.create_database(bad, None), Err(Error::Invalid { .. })), "{bad}");
    }
}

#[test]
fn a_deleted_database_takes_its_containers_along() {
    let mut world = World::new();
    let container = world.container("");
    let database = world.engine.database("db").expect("made");
    let stale = Precondition::IfMatch("\"other\"".into());
    assert!(matches!(world.engine.delete_database(&database, &stale), Err(Error::PreconditionFailed { .. })));
    world.engine.delete_database(&database, &Precondition::None).expect("deleted");
    assert!(world.engine.container_by_rid(container.rid).is_err());
    world.restart();
    assert!(world.engine.databases().is_empty());
    let orphan = world.engine.create_container(&database, definition("c", ""), None);
    assert!(matches!(orphan, Err(Error::OwnerNotFound { .. })));
}

#[test]
fn a_replacement_keeps_key_and_unique_keys() {
    let world = World::new();
    let container = world.container("");
    let other = definition("c", r#","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]}]}"#);
    assert!(world.engine.replace_container(&container, other, &Precondition::None).is_err());
    assert!(world.engine.replace_container(&container, definition("d", ""), &Precondition::None).is_err());
    let replaced = world
        .engine
        .replace_container(&container, definition("c", r#","defaultTtl":5"#), &Precondition::None)
        .expect("replaced");
    assert_ne!(replaced.etag(), container.etag());
    let stale = Precondition::IfMatch(container.etag().to_string());
    let refused = world.engine.replace_container(&container, definition("c", ""), &stale);
    assert!(matches!(refused, Err(Error::PreconditionFailed { .. })));
}

#[test]
fn users_and_scripts_are_kept_renamed_and_go_with_their_owner() {
    use document::{ScriptKind, Value};
    use engine::ResourceParent;
    let mut world = World::new();
    let container = world.container("");
    let database = world.engine.database("db").expect("made");
    let object = |text: &str| match crate::world::value(text) {
        Value::Object(object) => object,
        other => panic!("{other:?}"),
    };
    let (users, functions) = (
        ResourceParent::Database(database.rid),
        ResourceParent::Container(container.rid, ScriptKind::Function),
    );
    let user = world.engine.create_resource(users, object(r#"{"id":"u"}"#)).expect("created");
    assert!(matches!(
        world.engine.create_resource(users, object(r#"{"id":"u"}"#)),
        Err(Error::Exists { .. })
    ));
    assert!(matches!(
        world.engine.create_resource(functions, object(r#"{"id":"f"}"#)),
        Err(Error::Invalid { .. })
    ));
    world.engine.create_resource(functions, object(r#"{"id":"f","body":"function(){}"}"#)).expect("created");
    let rename =
        |precondition| world.engine.replace_resource(users, "u", object(r#"{"id":"v"}"#), &precondition);
    let stale = Precondition::IfMatch("\"other\"".into());
    assert!(matches!(rename(stale.clone()), Err(Error::PreconditionFailed { .. })));
    let renamed = rename(Precondition::IfMatch(user.etag().to_string())).expect("renamed");
    assert_eq!(renamed.rid, user.rid);
    world.restart();
    assert_eq!(world.engine.resource(users, &user.rid).expect("by rid").name(), "v");
    assert!(matches!(world.engine.resource(users, "u"), Err(Error::NotFound { .. })));
    assert_eq!(world.engine.resources(functions).expect("a list").len(), 1);
    world.engine.delete_container(&container, &Precondition::None).expect("deleted");
    assert!(world.engine.resources(functions).expect("a list").is_empty());
    let permissions = ResourceParent::User(user.rid.parse().expect("a user's rid"));
    let permission = object(r#"{"id":"p","permissionMode":"Read","resource":"dbs/db/colls/c"}"#);
    world.engine.create_resource(permissions, permission.clone()).expect("created");
    assert!(world.engine.delete_resource(users, "v", &stale).is_err());
    world.engine.delete_resource(users, "v", &Precondition::None).expect("deleted");
    assert!(world.engine.resources(permissions).expect("a list").is_empty(), "they go with their user");
    assert!(matches!(world.engine.create_resource(permissions, permission), Err(Error::NotFound { .. })));
    assert!(world.engine.resources(users).expect("a list").is_empty());
}

#[test]
fn an_offer_can_be_replaced() {
    let world = World::new();
    let database = world.engine.database("db").expect("made");
    world
        .engine
        .create_container(&database, definition("t", ""), Some(Throughput::Manual(400)))
        .expect("created");
    let offer = world.engine.offers().remove(0);
    let replace =
        |throughput, precondition| world.engine.replace_offer(offer.rid, throughput, None, &precondition);
    let stale = Precondition::IfMatch("\"other\"".into());
    assert!(matches!(replace(Throughput::Manual(500), stale), Err(Error::PreconditionFailed { .. })));
    let replaced = replace(Throughput::Manual(500), Precondition::None).expect("replaced");
    assert_eq!((replaced.throughput, replaced.resource), (Throughput::Manual(500), offer.resource));
    assert_ne!(replaced.etag, offer.etag);
    assert!(replace(Throughput::Manual(1), Precondition::None).is_err());
}
