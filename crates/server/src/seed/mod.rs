//! `--seed FILE`: databases, containers and items to create at the start, read from JSON. docs/configuration.md
//! describes the file.
//!
//! Everything is checked before anything is created: the structure here, the rest by a dry run in memory (`seeder`).

mod node;
mod seeder;

use anyhow::{Context, Result, anyhow};
use document::Document;
use engine::{ContainerDefinition, Throughput};

use node::Node;
pub(crate) use seeder::Seeder;

/// The contents of a seed file.
#[derive(Debug)]
pub(crate) struct Seed {
    /// The path of the file, for messages.
    path: String,
    databases: Vec<SeedDatabase>,
    collections: Vec<SeedCollection>,
}

#[derive(Debug)]
struct SeedDatabase {
    /// Its JSON path in the file, as for all of these.
    path: String,
    id: String,
    throughput: Option<Throughput>,
    containers: Vec<SeedContainer>,
}

#[derive(Debug)]
struct SeedContainer {
    path: String,
    definition: ContainerDefinition,
    throughput: Option<Throughput>,
    items: Vec<Document>,
}

/// A collection of the MongoDB API.
#[derive(Debug)]
struct SeedCollection {
    path: String,
    database: String,
    name: String,
    options: bson::Document,
    indexes: Vec<bson::Value>,
    documents: Vec<bson::Value>,
}

/// Members of a container that are not part of its definition.
const BESIDE_DEFINITION: [&str; 2] = ["throughput", "items"];

impl Seed {
    /// Reads a seed file.
    pub(crate) fn read(path: &str) -> Result<Seed> {
        let text = std::fs::read(path).with_context(|| format!("cannot read the seed '{path}'"))?;
        Seed::parse(path, &text).with_context(|| format!("in the seed '{path}'"))
    }

    fn parse(path: &str, text: &[u8]) -> Result<Seed> {
        let value = document::parse_json(text).map_err(|error| anyhow!("{error}"))?;
        let root = Node::root(&value);
        root.only(&["databases", "mongoDatabases"])?;
        let databases = root.list("databases")?.iter().map(database).collect::<Result<_>>()?;
        let mut collections = Vec::new();
        for database in root.list("mongoDatabases")? {
            database.only(&["name", "collections"])?;
            let name = database.required("name")?.text()?;
            for node in database.list("collections")? {
                collections.push(collection(name, &node)?);
            }
        }
        Ok(Seed { path: path.to_owned(), databases, collections })
    }
}

fn database(node: &Node<'_>) -> Result<SeedDatabase> {
    node.only(&["id", "throughput", "containers"])?;
    Ok(SeedDatabase {
        path: node.path.clone(),
        id: node.required("id")?.text()?.to_owned(),
        throughput: throughput(node)?,
        containers: node.list("containers")?.iter().map(container).collect::<Result<_>>()?,
    })
}

fn container(node: &Node<'_>) -> Result<SeedContainer> {
    let mut definition = node.value.clone();
    for beside in BESIDE_DEFINITION {
        definition.as_object_mut().and_then(|members| members.remove(beside));
    }
    let items = node.list("items")?;
    let definition = ContainerDefinition::from_value(&definition).map_err(|error| node.wrong(error))?;
    definition.check_known().map_err(|error| node.wrong(error))?;
    let item = |item: &Node<'_>| Document::from_value(item.value).map_err(|error| item.wrong(error));
    Ok(SeedContainer {
        path: node.path.clone(),
        definition,
        throughput: throughput(node)?,
        items: items.iter().map(item).collect::<Result<_>>()?,
    })
}

/// Parses a number, or `{"autoscaleMaxThroughput": number}`.
fn throughput(node: &Node<'_>) -> Result<Option<Throughput>> {
    let Some(node) = node.member("throughput") else { return Ok(None) };
    let figure = |node: &Node<'_>| node.value.as_i64().and_then(|figure| u32::try_from(figure).ok());
    let throughput = if node.value.as_object().is_some() {
        node.only(&["autoscaleMaxThroughput"])?;
        figure(&node.required("autoscaleMaxThroughput")?).map(Throughput::autoscale)
    } else {
        figure(&node).map(Throughput::Manual)
    };
    let throughput = throughput
        .ok_or_else(|| node.wrong("it must be a number or {\"autoscaleMaxThroughput\": number}"))?;
    throughput.check().map(Some).map_err(|error| node.wrong(error))
}

fn collection(database: &str, node: &Node<'_>) -> Result<SeedCollection> {
    node.only(&["name", "options", "indexes", "documents"])?;
    let list = |name: &str| node.list(name)?.iter().map(extended).collect::<Result<Vec<_>>>();
    let options = match node.member("options").map(|options| extended(&options)).transpose()? {
        Some(bson::Value::Document(options)) => options,
        _ => bson::Document::new(),
    };
    Ok(SeedCollection {
        path: node.path.clone(),
        database: database.to_owned(),
        name: node.required("name")?.text()?.to_owned(),
        options,
        indexes: list("indexes")?,
        documents: list("documents")?,
    })
}

/// Parses an object in MongoDB's Extended JSON.
fn extended(node: &Node<'_>) -> Result<bson::Value> {
    if node.value.as_object().is_none() {
        return Err(node.wrong("it must be an object"));
    }
    match bson::parse_extended_json(&node.value.to_json()) {
        Ok(value @ bson::Value::Document(_)) => Ok(value),
        Ok(_) => Err(node.wrong("it must be a document")),
        Err(error) => Err(node.wrong(format!("it cannot be read as Extended JSON: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, complaint) in [
            ("{", "EOF"),
            ("[]", "$: it must be an object"),
            (r#"{"database":[]}"#, "$: 'database' is not known here; known are: databases, mongoDatabases"),
            (r#"{"databases":{}}"#, "$.databases: it must be a list"),
            (r#"{"databases":[{}]}"#, "$.databases[0]: 'id' is missing"),
            (r#"{"databases":[{"id":1}]}"#, "$.databases[0].id: it must be text"),
            (
                r#"{"databases":[{"id":"a","containers":[{"id":"c","partitionKey":{"paths":["/pk"]},"index":{}}]}]}"#,
                "$.databases[0].containers[0]: One of the specified inputs is invalid: a container has no property 'index'.",
            ),
            (r#"{"databases":[{"id":"a","throughput":5}]}"#, "$.databases[0].throughput: The throughput 5"),
            (
                r#"{"databases":[{"id":"a","throughput":"x"}]}"#,
                "$.databases[0].throughput: it must be a number",
            ),
            (r#"{"databases":[{"id":"a","containers":[{"id":"c"}]}]}"#, "$.databases[0].containers[0]: "),
            (
                r#"{"databases":[{"id":"a","containers":[{"id":"c","partitionKey":{"paths":["/p"]},"defaultTtl":0}]}]}"#,
                "$.databases[0].containers[0]: ",
            ),
            (
                r#"{"mongoDatabases":[{"name":"a","collections":[{}]}]}"#,
                "$.mongoDatabases[0].collections[0]: 'name'",
            ),
            (
                r#"{"mongoDatabases":[{"name":"a","collections":[{"name":"c","documents":[{"at":{"$date":"x"}}]}]}]}"#,
                "$.mongoDatabases[0].collections[0].documents[0]: it cannot be read as Extended JSON",
            ),
            (
                r#"{"mongoDatabases":[{"name":"a","collections":[{"name":"c","indexes":[1]}]}]}"#,
                "$.mongoDatabases[0].collections[0].indexes[0]: it must be an object",
            ),
        ] {
            let error = format!("{:#}", Seed::parse("f", text.as_bytes()).unwrap_err());
            assert!(error.contains(complaint), "{text}: {error}");
        }
    }
}
