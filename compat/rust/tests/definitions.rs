//! Containers' definitions through the Rust SDK: what is returned, what is refused, and geometry on a plane.

use azure_data_cosmos::models::{
    ContainerProperties, FullTextPath, FullTextPolicy, IndexingPolicy, PartitionKeyDefinition,
    PartitionKeyVersion, SpatialIndex, SpatialType,
};
use azure_data_cosmos::{ContainerClient, CosmosError, DatabaseClient, FeedScope, Query};
use bolide_compat::{Server, database, refused};
use futures::TryStreamExt;
use serde_json::{Value, json};

fn properties(id: &str) -> ContainerProperties {
    ContainerProperties::new(id.to_owned(), "/pk".into())
}

/// Properties that the SDK has no setter for; it keeps what it does not know.
fn unknown_to_the_sdk(definition: Value) -> ContainerProperties {
    serde_json::from_value(definition).expect("a definition")
}

async fn create(
    database: &DatabaseClient,
    properties: ContainerProperties,
) -> Result<(ContainerProperties, ContainerClient), CosmosError> {
    let id = properties.id.to_string();
    let created = database.create_container(properties, None).await?.into_model()?;
    Ok((created, database.container_client(id, None).await?))
}

async fn read(container: &ContainerClient) -> ContainerProperties {
    container.read(None).await.expect("found").into_model().expect("properties")
}

async fn rows(container: &ContainerClient, query: &str, scope: FeedScope) -> Vec<Value> {
    let rows = container.query_items::<Value>(Query::from(query.to_owned()), scope, None).await;
    rows.expect("the query starts").try_collect().await.unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// The client always sends a version, and hashes keys by the one it is shown.
#[tokio::test]
async fn a_version_is_shown_as_given_and_keys_are_found() {
    let server = Server::start_with(&["--partitions", "4"]);
    let database = database(&server.client().await, "definitions").await;
    for (id, version) in [("one", PartitionKeyVersion::V1), ("two", PartitionKeyVersion::V2)] {
        let key = PartitionKeyDefinition::from("/pk").with_version(version);
        let definition = ContainerProperties::new(id.to_owned(), key.clone());
        let (created, container) = create(&database, definition).await.expect("created");
        let replaced = container.replace(created.clone().with_default_ttl(60), None).await.expect("replaced");
        let replaced = replaced.into_model().expect("properties");
        for shown in [created, replaced, read(&container).await] {
            assert_eq!(shown.partition_key, key);
            assert!(shown.indexing_policy.expect("a policy").automatic, "{id}");
        }
        for n in 0..20 {
            let (name, key) = (n.to_string(), format!("k{n}"));
            let item = json!({"id": name, "pk": key});
            container.create_item(key.clone(), &name, item, None).await.expect("created");
            let ranges = container.feed_range_from_partition_key(key, None).await.expect("ranges");
            let [range] = ranges.as_slice() else { panic!("{} ranges of one key", ranges.len()) };
            let found = rows(&container, "SELECT VALUE c.id FROM c", FeedScope::range(range.clone())).await;
            assert!(found.contains(&json!(name)), "{id}: {name} is not in its range");
        }
    }
}

#[tokio::test]
async fn an_indexing_policy_is_automatic_as_it_says() {
    let server = Server::start();
    let database = database(&server.client().await, "definitions").await;
    let mut automatic = IndexingPolicy::default();
    automatic.automatic = true;
    for (id, policy, expected) in [
        ("absent", None, true),
        ("automatic", Some(automatic), true),
        ("manual", Some(IndexingPolicy::default()), false),
    ] {
        let mut definition = properties(id);
        definition.indexing_policy = policy;
        let (_, container) = create(&database, definition).await.expect("created");
        assert_eq!(read(&container).await.indexing_policy.expect("a policy").automatic, expected, "{id}");
    }
}

#[tokio::test]
async fn what_the_service_refuses_is_refused_in_its_words() {
    let server = Server::start();
    let database = database(&server.client().await, "definitions").await;
    for (path, position) in [("/id ds", 4), ("/a/*", 3), ("/a/", 3), ("/a.b", 2), ("pk", 0)] {
        let definition = ContainerProperties::new("refused", path.into());
        let text = refused(400, create(&database, definition).await);
        let words = format!(
            "The partition key component definition path '{path}' could not be accepted, failed near position '{position}'."
        );
        assert!(text.contains(&words), "{text}");
    }
    let policy = |language: &str| {
        FullTextPolicy::new("en-US").with_full_text_path(FullTextPath::new("/text").with_language(language))
    };
    for language in ["en-US", "1033"] {
        let definition = properties(language).with_full_text_policy(policy(language));
        let (_, container) = create(&database, definition).await.expect("created");
        assert_eq!(read(&container).await.full_text_policy, Some(policy(language)));
    }
    let text =
        refused(400, create(&database, properties("no").with_full_text_policy(policy("spa-SPA"))).await);
    let words = "The Full Text Policy contains an unsupported language spa-SPA. Supported languages are:";
    assert!(text.contains(words), "{text}");
    let spatial =
        |index| properties("no").with_indexing_policy(IndexingPolicy::default().with_spatial_index(index));
    refused(400, create(&database, spatial(SpatialIndex::new("/at/*"))).await);
    refused(404, database.container_client("no".to_owned(), None).await);
}

/// The SDK knows no surface and no extent: the surface goes through what it keeps of unknown properties, an extent does not.
#[tokio::test]
async fn geometry_is_measured_on_a_plane() {
    for partitions in ["1", "4"] {
        let server = Server::start_with(&["--partitions", partitions]);
        let database = database(&server.client().await, "definitions").await;
        let flat = unknown_to_the_sdk(json!({
            "id": "flat",
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "geospatialConfig": {"type": "Geometry"},
        }));
        let point = SpatialIndex::new("/at/*").with_type(SpatialType::Point);
        let indexed = flat.clone().with_indexing_policy(IndexingPolicy::default().with_spatial_index(point));
        let text = refused(400, create(&database, indexed).await);
        assert!(text.contains("boundingBox"), "{text}");

        let (created, container) = create(&database, flat).await.expect("created");
        let shown = serde_json::to_value(&created).expect("JSON");
        assert_eq!(shown["geospatialConfig"], json!({"type": "Geometry"}));
        for (id, at) in [("a", [3, 4]), ("b", [300, -400]), ("c", [0, 0])] {
            let item = json!({"id": id, "pk": id, "at": {"type": "Point", "coordinates": at}});
            container.create_item(id, id, item, None).await.expect("created");
        }
        let origin = "{'type':'Point','coordinates':[0,0]}";
        let square = "{'type':'Polygon','coordinates':[[[1,1],[11,1],[11,11],[1,11],[1,1]]]}";
        for (query, expected) in [
            (format!("SELECT VALUE ST_DISTANCE(c.at, {origin}) FROM c ORDER BY c.id"), json!([5, 500, 0])),
            (
                format!("SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, {origin}) <= 5 ORDER BY c.id"),
                json!(["a", "c"]),
            ),
            (format!("SELECT VALUE c.id FROM c WHERE ST_WITHIN(c.at, {square})"), json!(["a"])),
            (format!("SELECT VALUE c.id FROM c WHERE ST_INTERSECTS(c.at, {square})"), json!(["a"])),
            (format!("SELECT VALUE ST_AREA({square}) FROM c WHERE c.id = 'a'"), json!([100])),
            (
                "SELECT VALUE c.id FROM c WHERE ST_ISVALID(c.at) ORDER BY c.id".to_owned(),
                json!(["a", "b", "c"]),
            ),
        ] {
            let found = rows(&container, &query, FeedScope::full_container()).await;
            let numbers = |rows: &[Value]| rows.iter().map(Value::as_f64).collect::<Vec<_>>();
            let expected = expected.as_array().expect("rows").clone();
            if expected[0].is_number() {
                assert_eq!(numbers(&found), numbers(&expected), "{query}");
            } else {
                assert_eq!(found, expected, "{query}");
            }
        }
    }
}
