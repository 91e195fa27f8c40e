//! Creates the contents of a seed file, first in memory as a dry run, then in the store.
//!
//! Existing containers and collections are left alone with everything in them, so that deleted or expired items do not
//! return with the next start. One that cannot be filled completely is removed again.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use account::{Keyring, NoKeyStore};
use anyhow::{Context, Result, anyhow};
use document::Document;
use engine::{Container, Database, Engine, Error, Operation, Precondition, Throughput};
use mongo::{Account, Authentication, CommandError, Profile};
use nosql::{CreatedData, InitialData};
use storage::{ClockOptions, MemoryStore, WallClock};
use tokio::task::block_in_place;
use tokio::time::sleep;

use super::{Seed, SeedCollection, SeedContainer, SeedDatabase};
use crate::host;

/// The number of items written concurrently.
const ITEMS_AT_ONCE: usize = 256;

/// MongoDB's error code for exceeded throughput, and the pause before a retry.
const THROTTLED: i32 = 16500;
const THROTTLED_PAUSE: Duration = Duration::from_millis(100);

/// The result of seeding.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SeedResult {
    /// What was created, as `database 'a'`.
    pub(crate) made: Vec<String>,
    /// What existed already.
    pub(crate) left: Vec<String>,
    /// The number of items and documents created.
    pub(crate) items: usize,
}

impl fmt::Display for SeedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[String]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        let (made, left) = (list(&self.made), list(&self.left));
        write!(f, "created: {made}, with {} items; left alone because it exists: {left}", self.items)
    }
}

/// Creates the contents of a seed in a store.
pub(crate) struct Seeder {
    seed: Arc<Seed>,
    engine: Arc<Engine>,
    /// A service of its own, which no client reaches.
    mongo: Arc<mongo::Service>,
}

impl Seeder {
    pub(crate) fn new(seed: Arc<Seed>, engine: Arc<Engine>) -> Seeder {
        let settings = mongo::Settings {
            profile: Profile::Standalone,
            advertise: None,
            authentication: Authentication::Optional,
            account: Account { user: String::new(), keys: Keyring::new([], NoKeyStore) },
            test_commands: false,
            tls: None,
            host: host::describe(),
            arguments: Vec::new(),
            limits: mongo::Limits::default(),
            scratch: None,
            admission: Arc::default(),
            registry: Arc::default(),
        };
        let mongo = mongo::Service::new(Arc::clone(&engine), settings);
        Seeder { seed, engine, mongo }
    }

    /// Creates everything in a store in memory, which is then dropped: an error here has changed nothing.
    pub(crate) async fn dry_run(seed: &Arc<Seed>, clock: Arc<dyn WallClock>) -> Result<()> {
        let store = MemoryStore::new(ClockOptions::new(clock)).context("cannot open a store in memory")?;
        let engine = Engine::open(Arc::new(store)).context("cannot open a store in memory")?;
        Seeder::new(Arc::clone(seed), Arc::new(engine)).apply().await.map(|_| ())
    }

    /// Creates what does not exist yet.
    pub(crate) async fn apply(&self) -> Result<SeedResult> {
        let mut planted = SeedResult::default();
        let made = async {
            for database in &self.seed.databases {
                self.plant_database(database, &mut planted).await?;
            }
            for collection in &self.seed.collections {
                self.plant_collection(collection, &mut planted).await?;
            }
            anyhow::Ok(())
        };
        made.await.with_context(|| format!("in the seed '{}'", self.seed.path))?;
        Ok(planted)
    }

    async fn plant_database(&self, wanted: &SeedDatabase, planted: &mut SeedResult) -> Result<()> {
        let made = block_in_place(|| self.engine.create_database(&wanted.id, wanted.throughput));
        planted.note(format!("database '{}'", wanted.id), made.as_ref().map(|_| ()), &wanted.path)?;
        let database = self.engine.database(&wanted.id)?;
        for container in &wanted.containers {
            self.plant_container(&database, container, planted).await?;
        }
        Ok(())
    }

    async fn plant_container(
        &self,
        database: &Database,
        wanted: &SeedContainer,
        planted: &mut SeedResult,
    ) -> Result<()> {
        let own = database.throughput().is_none().then_some(Throughput::DEFAULT);
        let (definition, throughput) = (wanted.definition.clone(), wanted.throughput.or(own));
        let made = block_in_place(|| self.engine.create_container(database, definition, throughput));
        let name = format!("container '{}/{}'", database.name, wanted.definition.id);
        planted.note(name, made.as_ref().map(|_| ()), &wanted.path)?;
        let Ok(container) = made else { return Ok(()) };
        if let Err(error) = self.fill(&container, wanted).await {
            block_in_place(|| self.engine.delete_container(&container, &Precondition::default()))?;
            return Err(error);
        }
        planted.items += wanted.items.len();
        Ok(())
    }

    async fn fill(&self, container: &Arc<Container>, wanted: &SeedContainer) -> Result<()> {
        let all: Vec<(usize, &Document)> = wanted.items.iter().enumerate().collect();
        for chunk in all.chunks(ITEMS_AT_ONCE) {
            let mut waiting = chunk.to_vec();
            while !waiting.is_empty() {
                let create = |(_, body): (usize, &Document)| {
                    self.engine.write(container, None, Operation::Create { body: body.clone() })
                };
                let tickets: Vec<_> = waiting.iter().copied().map(create).collect();
                let (mut again, mut pause_ms) = (Vec::new(), 0);
                for (item, ticket) in waiting.into_iter().zip(tickets) {
                    match ticket.await {
                        Ok(_) => {}
                        Err(Error::TooManyRequests { retry_after_ms }) => {
                            again.push(item);
                            pause_ms = pause_ms.max(retry_after_ms);
                        }
                        Err(error) => return Err(anyhow!("{}.items[{}]: {error}", wanted.path, item.0)),
                    }
                }
                waiting = again;
                if !waiting.is_empty() {
                    sleep(Duration::from_millis(pause_ms)).await;
                }
            }
        }
        Ok(())
    }

    async fn plant_collection(&self, wanted: &SeedCollection, planted: &mut SeedResult) -> Result<()> {
        let SeedCollection { path, database, name, options, .. } = wanted;
        let shown = format!("collection '{database}.{name}'");
        if self.engine.collection(database, name).is_some() {
            planted.left.push(shown);
            return Ok(());
        }
        let mut create = bson::Document::new().with("create", name.as_str());
        create.fields_mut().extend(options.iter().map(|(name, value)| (name.to_owned(), value.clone())));
        let made = self.mongo.perform(database, create).await;
        made.map_err(|refusal| anyhow!("{path}: {refusal}"))?;
        if let Err(error) = self.fill_collection(wanted).await {
            let drop = bson::Document::new().with("drop", name.as_str());
            self.mongo.perform(database, drop).await?;
            return Err(error);
        }
        planted.made.push(shown);
        planted.items += wanted.documents.len();
        Ok(())
    }

    async fn fill_collection(&self, wanted: &SeedCollection) -> Result<()> {
        let SeedCollection { path, database, name, indexes, documents, .. } = wanted;
        let wrong = |list: &str, first: usize, refusal: &CommandError| match refusal.position {
            Some(position) => anyhow!("{path}.{list}[{}]: {refusal}", first + position),
            None => anyhow!("{path}.{list}: {refusal}"),
        };
        for (position, index) in indexes.iter().enumerate() {
            let create = bson::Document::new()
                .with("createIndexes", name.as_str())
                .with("indexes", bson::Value::Array(vec![named(index)]));
            let made = self.mongo.perform(database, create).await;
            made.map_err(|refusal| {
                wrong("indexes", position, &CommandError { position: Some(0), ..refusal })
            })?;
        }
        let mut first = 0;
        while first < documents.len() {
            let chunk = documents[first..].iter().take(ITEMS_AT_ONCE).cloned().collect::<Vec<_>>();
            let last = first + chunk.len();
            let insert = bson::Document::new()
                .with("insert", name.as_str())
                .with("documents", bson::Value::Array(chunk));
            match self.mongo.perform(database, insert).await {
                Ok(()) => first = last,
                Err(refusal) if refusal.code == THROTTLED => {
                    first += refusal.position.unwrap_or(0);
                    sleep(THROTTLED_PAUSE).await;
                }
                Err(refusal) => return Err(wrong("documents", first, &refusal)),
            }
        }
        Ok(())
    }
}

impl InitialData for Seeder {
    fn make(&self) -> Pin<Box<dyn Future<Output = std::result::Result<CreatedData, String>> + Send + '_>> {
        Box::pin(async move {
            let planted = self.apply().await.map_err(|error| format!("{error:#}"))?;
            Ok(CreatedData { names: planted.made, items: planted.items })
        })
    }
}

impl SeedResult {
    /// Records that something was created or existed; any other error is reported with its path in the file.
    fn note(&mut self, name: String, made: std::result::Result<(), &Error>, path: &str) -> Result<()> {
        match made {
            Ok(()) => self.made.push(name),
            Err(Error::Exists { .. }) => self.left.push(name),
            Err(error) => return Err(anyhow!("{path}: {error}")),
        }
        Ok(())
    }
}

/// Adds a name to an index: drivers generate one from the keys, and the command requires one.
fn named(index: &bson::Value) -> bson::Value {
    let bson::Value::Document(index) = index else { return index.clone() };
    let mut index = index.clone();
    if !index.contains("name")
        && let Some(bson::Value::Document(keys)) = index.get("key").cloned()
    {
        let part = |(field, order): (&str, &bson::Value)| {
            let order = match order {
                bson::Value::String(text) => text.clone(),
                number => bson::to_extended_json(number.view(), false),
            };
            format!("{field}_{order}")
        };
        index.push("name", keys.iter().map(part).collect::<Vec<_>>().join("_"));
    }
    bson::Value::Document(index)
}
