//! A request as its handler sees it: its sender, its target, its body.
//!
//! Work that may block (catalog changes) goes to the blocking threads, and queries that do not turn out brief to threads
//! of their own; point reads and the submission of writes stay on the runtime, because they are shorter than the detour.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use account::{AuthenticatedKey, Keyring};
use bytes::Bytes;
use document::PartitionKey;
use engine::{CancelOnDrop, Container, Database, Engine, ItemName, Scope};
use tokio::time::timeout;
use transport::Threads;

use crate::auth::Pass;
use crate::auth::names;
use crate::handlers::admin_hooks::AdminHooks;
use crate::message::connections::{Connections, OpenConnections};
use crate::message::reply::ReplyOrigin;
use crate::message::request::Head;
use crate::protocol::consistency::AccountSettings;
use crate::protocol::error::Error;
use crate::protocol::session::Session;

/// An authenticated and authorized request.
pub(crate) struct Call {
    pass: Pass,
    pub(crate) head: Head,
    pub(crate) body: Bytes,
    container: OnceLock<Arc<Container>>,
    /// The range of the item in the body, where no header names one.
    range: OnceLock<usize>,
    context: RequestContext,
}

/// The context of a request in its server.
pub(crate) struct RequestContext {
    pub(crate) hooks: Arc<AdminHooks>,
    /// The time limit for a page of a query.
    pub(crate) query_timeout: Duration,
    /// Threads for queries.
    pub(crate) threads: Arc<Threads>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) account: Arc<AccountSettings>,
}

impl Call {
    pub(crate) fn new(pass: Pass, head: Head, body: Bytes, context: RequestContext) -> Self {
        Self { pass, head, body, container: OnceLock::new(), range: OnceLock::new(), context }
    }

    /// Returns the hooks of the admin API.
    pub(crate) fn hooks(&self) -> &AdminHooks {
        &self.context.hooks
    }

    /// Returns how many connections are open.
    pub(crate) fn open_connections(&self) -> OpenConnections {
        self.context.connections.open()
    }

    pub(crate) fn account(&self) -> &AccountSettings {
        &self.context.account
    }

    /// Creates a resource token for the permission with this resource id.
    pub(crate) fn mint_token(&self, permission: &str, life_seconds: u64) -> String {
        self.pass.mint(permission, life_seconds)
    }

    /// Returns the key behind the request.
    pub(crate) fn holder(&self) -> &AuthenticatedKey {
        self.pass.holder()
    }

    pub(crate) fn keys(&self) -> &Keyring {
        self.pass.keys()
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.pass.engine()
    }

    /// Runs work that may block or take long on a blocking thread.
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

    /// Runs a query on a thread that gives way to others if it takes long, with a flag that is set when its answer is no
    /// longer needed, because the client has disconnected or the time limit has passed.
    pub(crate) async fn cancellable<T, W>(&self, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnOnce(&Engine, Arc<AtomicBool>) -> Result<T, Error> + Send + 'static,
    {
        let gone = Arc::new(AtomicBool::new(false));
        let _when_left = CancelOnDrop(Arc::clone(&gone));
        let engine = Arc::clone(self.engine());
        let answer = self.context.threads.run(move || work(&engine, gone));
        let limit = self.context.query_timeout;
        let answer = match self.head.remaining().filter(|remaining| *remaining < limit) {
            Some(remaining) => timeout(remaining, answer).await.map_err(|_| Error::ClientTimeout)?,
            None => timeout(limit, answer).await.map_err(|_| Error::QueryTimeout(limit.as_secs()))?,
        };
        let no_thread = |error| engine::Error::Unavailable(format!("no thread for the query: {error}"));
        answer.map_err(no_thread)?
    }

    /// Returns the database that the path names, as the target.
    pub(crate) fn database(&self) -> Result<Arc<Database>, Error> {
        Ok(names::database(self.engine(), self.head.path.at(1))?)
    }

    /// Returns the database that the path names, as the owner of the target.
    pub(crate) fn owner_database(&self) -> Result<Arc<Database>, Error> {
        self.database().map_err(missing_owner)
    }

    /// Returns the container that the path names, as the target.
    pub(crate) fn container(&self) -> Result<Arc<Container>, Error> {
        let database = self.owner_database()?;
        Ok(names::container(self.engine(), &database, self.head.path.at(3))?)
    }

    /// Returns the container that the path names, as the owner of a target that is not an item.
    pub(crate) fn container_as_owner(&self) -> Result<Arc<Container>, Error> {
        self.container().map_err(missing_owner)
    }

    /// Returns the container that the path names, as the owner of the target items. The client may name the container
    /// it expects; a re-created one of the same name is another.
    pub(crate) fn owner_container(&self) -> Result<Arc<Container>, Error> {
        self.head.check_hints()?;
        self.check_consistency()?;
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

    /// Refuses a level that is stronger than the one that the operator has given the account; the message is the service's.
    fn check_consistency(&self) -> Result<(), Error> {
        match (self.head.consistency(), self.context.account.default_consistency) {
            (Some(asked), Some(account)) if asked.is_stronger_than(account) => {
                Err(Error::BadRequest(format!(
                    "ConsistencyLevel {asked} specified in the request is invalid when service is configured with consistency \
                     level {account}. Ensure the request consistency level is not stronger than the service consistency level."
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns the session of the client, which a read must not fall behind. Refuses malformed tokens.
    pub(crate) fn session(&self) -> Result<Option<Session>, Error> {
        self.head.session(self.context.account.default_consistency)
    }

    /// Refuses a read that would fall behind what the client has seen; refuses malformed tokens in any case.
    pub(crate) fn check_session(&self, container: &Container) -> Result<(), Error> {
        let Some(session) = self.session()? else { return Ok(()) };
        session.check(|range| Some(container.partitions.get(range.parse::<usize>().ok()?)?.lsn()))
    }

    /// Returns the item that the path names.
    pub(crate) fn item_name(&self, container: &Container) -> ItemName {
        names::item(container, self.head.path.at(3), self.head.path.at(5))
    }

    /// Returns the partition key of a point operation. A container without a key needs none.
    pub(crate) fn item_key(&self, container: &Container) -> Result<PartitionKey, Error> {
        match self.head.partition_key()? {
            Some(key) => Ok(key),
            None if container.definition.partition_key.system_key => Ok(PartitionKey::new(Vec::new())),
            None => self.head.required_partition_key(),
        }
    }

    /// Returns the scope of a query or listing in the container.
    pub(crate) fn scope(&self, container: &Container) -> Result<Scope, Error> {
        scope(&self.head, container)
    }

    /// Records the range of a write whose partition key is only in its body.
    pub(crate) fn write_is_in(&self, range: usize) {
        let _ = self.range.set(range);
    }

    /// Returns the place of an error of this request, if it got as far as a container.
    pub(crate) fn place(&self) -> Option<ReplyOrigin<'_>> {
        place(&self.head, self.container.get()?, self.range.get().copied())
    }

    /// Looks up the container for the place of an error, for a request that is refused before its handler begins.
    pub(crate) fn look_up_container(&self) {
        if let Some(container) = names::items_of(self.engine(), &self.head.path) {
            let _ = self.container.set(container);
        }
    }
}

/// Returns the place of an error in a container, if the request names one of its ranges: by the range's id, a range of
/// effective keys, a partition key, or the address that it was sent to. A client that finds another range there than it
/// requested considers its own list of ranges outdated.
pub(crate) fn place<'a>(
    head: &Head,
    container: &'a Container,
    range: Option<usize>,
) -> Option<ReplyOrigin<'a>> {
    let named = || {
        let scope = scope(head, container).ok()?;
        let is_one = scope.key.is_some() || scope.range.is_some() || container.partitions.len() == 1;
        is_one.then(|| first_range(container, &scope))
    };
    let range = range.or_else(named).or_else(|| head.addressed_range())?;
    Some(ReplyOrigin { container, range: container.partitions.get(range)?.range_lsn(), item: None })
}

/// Returns the scope of a query or listing in a container.
fn scope(head: &Head, container: &Container) -> Result<Scope, Error> {
    let mut key = head.partition_key()?;
    if let Some(none) = key.take_if(|key| key.is_empty()) {
        check_whole(container, &none)?;
        // Later clients may have added items with a key to a container without one.
        key = Some(none.complete(&container.definition.partition_key).unwrap_or_else(|none| none));
    }
    let mut range = head.effective_range()?;
    if let Some(id) = head.range_id() {
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

/// Refuses a key that lacks levels which the container's items have.
pub(crate) fn check_whole(container: &Container, key: &PartitionKey) -> Result<(), Error> {
    let definition = &container.definition.partition_key;
    if key.len() == definition.paths.len() || (key.is_empty() && definition.system_key) {
        return Ok(());
    }
    let expected = format!("a key of {} part(s)", definition.paths.len());
    Err(engine::Error::KeyMismatch { given: key.to_json(), expected }.into())
}

/// Returns the range that contains a key; the first one that it reaches if it is the prefix of a hierarchical key.
pub(crate) fn range_of(container: &Container, key: &PartitionKey) -> usize {
    let key = key.clone().complete(&container.definition.partition_key).unwrap_or_else(|key| key);
    first_range(container, &Scope { key: Some(key), range: None })
}

/// Returns the first range in a scope.
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
