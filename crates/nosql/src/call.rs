//! One request in a handler's hands: who it is from, what it names, what it carries.
//!
//! Work that may take long (catalog changes, queries that do not turn out brief) goes to the blocking threads; point
//! reads and the submission of writes stay on the runtime, because they are shorter than the detour.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use account::Keyring;
use bytes::Bytes;
use document::PartitionKey;
use engine::{Container, Database, Engine, ItemName, Scope};
use tokio::time::timeout;

use crate::auth::Pass;
use crate::doors::Doors;
use crate::error::Error;
use crate::names;
use crate::request::Head;
use crate::response::Place;

/// A request that was authenticated and is allowed.
pub(crate) struct Call {
    pass: Pass,
    pub(crate) head: Head,
    pub(crate) body: Bytes,
    container: OnceLock<Arc<Container>>,
    /// The range that the item in the body belongs to, where no header names one.
    range: OnceLock<usize>,
    around: Surroundings,
}

/// What a request finds in its server.
pub(crate) struct Surroundings {
    pub(crate) doors: Arc<Doors>,
    /// How long a page of a query may take.
    pub(crate) query_timeout: Duration,
}

impl Call {
    pub(crate) fn new(pass: Pass, head: Head, body: Bytes, around: Surroundings) -> Result<Self, Error> {
        pass.check_body(&head.method, &body)?;
        Ok(Self { pass, head, body, container: OnceLock::new(), range: OnceLock::new(), around })
    }

    /// What the server lends the admin API.
    pub(crate) fn doors(&self) -> &Doors {
        &self.around.doors
    }

    /// A resource token for the permission of that resource id.
    pub(crate) fn mint_token(&self, permission: &str, life_seconds: u64) -> String {
        self.pass.mint(permission, life_seconds)
    }

    pub(crate) fn keys(&self) -> &Keyring {
        self.pass.keys()
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.pass.engine()
    }

    /// Runs work that may block or take long where it holds nobody up.
    pub(crate) async fn blocking<T, W>(&self, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnOnce(&Engine) -> Result<T, Error> + Send + 'static,
    {
        let engine = Arc::clone(self.engine());
        match tokio::task::spawn_blocking(move || work(&engine)).await {
            Ok(result) => result,
            Err(join) => match join.try_into_panic() {
                Ok(payload) => std::panic::resume_unwind(payload),
                Err(_) => Err(engine::Error::Unavailable("the server is shutting down".to_owned()).into()),
            },
        }
    }

    /// Like [`blocking`](Self::blocking), for a query, which looks at a flag: it is set when nobody waits for the answer any
    /// more, because the client has gone or the time is up.
    pub(crate) async fn cancellable<T, W>(&self, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnOnce(&Engine, Arc<AtomicBool>) -> Result<T, Error> + Send + 'static,
    {
        let gone = Arc::new(AtomicBool::new(false));
        let _when_dropped = SetOnDrop(Arc::clone(&gone));
        let (limit, answer) = (self.around.query_timeout, self.blocking(move |engine| work(engine, gone)));
        timeout(limit, answer).await.map_err(|_| Error::QueryTimeout(limit.as_secs()))?
    }

    /// The database that the path names, as the thing asked for.
    pub(crate) fn database(&self) -> Result<Arc<Database>, Error> {
        Ok(names::database(self.engine(), self.head.path.at(1))?)
    }

    /// The database that the path names, as the owner of the thing asked for.
    pub(crate) fn owner_database(&self) -> Result<Arc<Database>, Error> {
        self.database().map_err(missing_owner)
    }

    /// The container that the path names, as the thing asked for.
    pub(crate) fn container(&self) -> Result<Arc<Container>, Error> {
        let database = self.owner_database()?;
        Ok(names::container(self.engine(), &database, self.head.path.at(3))?)
    }

    /// The container that the path names, as the owner of something that is no item.
    pub(crate) fn container_as_owner(&self) -> Result<Arc<Container>, Error> {
        self.container().map_err(missing_owner)
    }

    /// The container that the path names, as the owner of the items asked for. The client may say which
    /// container it believes that to be; a re-created one of the same name is another.
    pub(crate) fn owner_container(&self) -> Result<Arc<Container>, Error> {
        self.head.check_hints()?;
        let container = self.container_as_owner()?;
        if let Some(given) = self.head.intended_rid() {
            let current = container.rid.to_string();
            if given != current {
                return Err(Error::ContainerRecreated { given: given.to_owned(), current });
            }
        }
        let _ = self.container.set(Arc::clone(&container));
        Ok(container)
    }

    /// Refuses a read that would fall behind what the client has seen; refuses malformed tokens in any case.
    pub(crate) fn check_session(&self, container: &Container) -> Result<(), Error> {
        let Some(session) = self.head.session()? else { return Ok(()) };
        session.check(|range| Some(container.partitions.get(range.parse::<usize>().ok()?)?.lsn()))
    }

    /// The item that the path names.
    pub(crate) fn item_name(&self, container: &Container) -> ItemName {
        names::item(container, self.head.path.at(3), self.head.path.at(5))
    }

    /// The slice of the container that a query or listing is meant for.
    pub(crate) fn scope(&self, container: &Container) -> Result<Scope, Error> {
        let key = self.head.partition_key()?;
        if let Some(key) = key.as_ref().filter(|key| key.is_empty()) {
            check_whole(container, key)?;
        }
        let mut range = self.head.effective_range()?;
        if let Some(id) = self.head.range_id() {
            let partition = container.partitions.iter().find(|partition| partition.index.to_string() == id);
            let partition = partition.ok_or_else(|| Error::RangeGone(id.to_owned()))?;
            if container.partitions.len() > 1 {
                range = Some(match range {
                    Some(range) => range.intersect(&partition.range),
                    None => partition.range.clone(),
                });
            }
        }
        Ok(Scope { key, range })
    }

    /// Remembers the range of a write whose partition key is in its body alone.
    pub(crate) fn write_is_in(&self, range: usize) {
        let _ = self.range.set(range);
    }

    /// Where an error of this request happened, if it got as far as a container and names one of its ranges: by the range's
    /// id, a range of effective keys, or a partition key. A client that finds another range there than it asked for takes
    /// its own list of ranges for outdated.
    pub(crate) fn place(&self) -> Option<Place<'_>> {
        let container = self.container.get()?;
        let named = || {
            let scope = self.scope(container).ok()?;
            let is_one = scope.key.is_some() || scope.range.is_some() || container.partitions.len() == 1;
            is_one.then(|| first_range(container, &scope))
        };
        let range = self.range.get().copied().or_else(named)?;
        Some(Place { container, range: container.partitions.get(range)?.range_lsn(), item: None })
    }
}

/// Tells work on another thread that its request is gone: answered, or left by its client.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Refuses a key that does not have all the levels that the container's items have.
pub(crate) fn check_whole(container: &Container, key: &PartitionKey) -> Result<(), Error> {
    let definition = &container.definition.partition_key;
    if key.len() == definition.paths.len() || (key.is_empty() && definition.system_key) {
        return Ok(());
    }
    let expected = format!("a key of {} part(s)", definition.paths.len());
    Err(engine::Error::KeyMismatch { given: key.to_json(), expected }.into())
}

/// The range that holds a key; the first one that it reaches if it is the prefix of a hierarchical key.
pub(crate) fn range_of(container: &Container, key: &PartitionKey) -> usize {
    let key = key.clone().complete(&container.definition.partition_key).unwrap_or_else(|key| key);
    first_range(container, &Scope { key: Some(key), range: None })
}

/// The first range in a scope.
fn first_range(container: &Container, scope: &Scope) -> usize {
    if container.partitions.len() == 1 {
        return 0;
    }
    container.partitions_in(scope).first().map_or(0, |partition| partition.index)
}

pub(crate) fn missing_owner(error: Error) -> Error {
    match error {
        Error::Engine(engine::Error::NotFound { what }) => {
            Error::Engine(engine::Error::OwnerNotFound { what })
        }
        other => other,
    }
}
