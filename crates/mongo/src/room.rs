//! Where the statements of a command read and write: the database as it is, or the open transaction of a session.

use std::sync::Arc;

use bson::RawDocument;
use engine::Engine;
use engine::collection::{
    Collection, CollectionDefinition, Found, Modified, Reading, Receipt, Receipts, Target, Verdict, Workspace,
};
use mql::Code;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use storage::Time;

use crate::error::{Error, Result, TRANSIENT_TRANSACTION};
use crate::index_uses::IndexUses;
use crate::provisional::{Held, Provisional};

/// A place to read and write in.
#[derive(Clone)]
pub(crate) enum Room {
    /// The database: every statement stands for itself.
    Open(Arc<Common>),
    /// A transaction: one snapshot, one time, and what was written in it.
    Transaction(Arc<Common>, Arc<OpenTransaction>),
}

/// What all rooms have in common.
pub(crate) struct Common {
    pub(crate) engine: Arc<Engine>,
    /// Collections that open transactions have made.
    pub(crate) provisional: Provisional,
    pub(crate) index_uses: IndexUses,
}

impl Common {
    pub(crate) fn new(engine: Arc<Engine>) -> Common {
        Common { engine, provisional: Provisional::default(), index_uses: IndexUses::default() }
    }
}

/// A transaction that several commands work in, until one of them takes it out to commit it.
pub(crate) struct OpenTransaction {
    workspace: Mutex<Option<Workspace>>,
    /// The collections that it has made. They go with it unless it commits.
    pub(crate) collections: Held,
}

impl OpenTransaction {
    /// One that has just begun.
    pub(crate) fn begin(common: &Arc<Common>) -> Result<OpenTransaction> {
        let workspace = Mutex::new(Some(common.engine.begin()?));
        Ok(OpenTransaction { workspace, collections: Held::new(common) })
    }

    /// What it has come to, for its commit; none if somebody has taken it before.
    pub(crate) fn take(&self) -> Option<Workspace> {
        self.workspace.lock().take()
    }

    /// The workspace, unless the transaction was ended meanwhile.
    fn opened(&self) -> Result<MappedMutexGuard<'_, Workspace>> {
        MutexGuard::try_map(self.workspace.lock(), Option::as_mut).map_err(|_| {
            Error::new(Code::NO_SUCH_TRANSACTION, "The transaction has ended.")
                .with_label(TRANSIENT_TRANSACTION)
        })
    }
}

impl Room {
    fn common(&self) -> &Common {
        match self {
            Room::Open(common) | Room::Transaction(common, _) => common,
        }
    }

    /// The engine behind it.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.common().engine
    }

    /// How often indexes were used.
    pub(crate) fn index_uses(&self) -> &IndexUses {
        &self.common().index_uses
    }

    /// The collection of that name, to be written to.
    pub(crate) fn find_collection(&self, database: &str, name: &str) -> Option<Arc<Collection>> {
        match self {
            Room::Open(common) => {
                let collection = common.engine.collection(database, name)?;
                common.provisional.confirm(&collection);
                Some(collection)
            }
            Room::Transaction(_, transaction) => transaction.collections.find(database, name),
        }
    }

    /// Makes a collection; within a transaction, one that goes with it unless it commits.
    pub(crate) fn create_collection(
        &self,
        database: &str,
        name: &str,
        definition: CollectionDefinition,
    ) -> engine::Result<Arc<Collection>> {
        match self {
            Room::Open(common) => common.engine.create_collection(database, name, definition, None),
            Room::Transaction(_, transaction) => transaction.collections.create(database, name, definition),
        }
    }

    /// Shows collections as they are now, or as the transaction sees them: one snapshot, one time.
    pub(crate) fn read<T>(
        &self,
        collections: &[&Arc<Collection>],
        work: impl FnOnce(&Reading<'_>) -> Result<T>,
    ) -> Result<T> {
        match self {
            Room::Open(common) => work(&common.engine.reading(collections)?),
            Room::Transaction(_, transaction) => work(&transaction.opened()?.reading(collections)?),
        }
    }

    /// Shows a living document to a function and does what it says.
    pub(crate) async fn modify(
        &self,
        collection: &Arc<Collection>,
        target: Target,
        decide: impl FnOnce(Option<&Found>, Time) -> engine::Result<Verdict> + Send + 'static,
        receipt: Option<Receipt>,
    ) -> Result<Modified> {
        let modified = match self {
            Room::Open(common) => common.engine.modify(collection, target, decide, receipt).await,
            Room::Transaction(_, transaction) => transaction.opened()?.modify(collection, &target, decide),
        };
        modified.map_err(|error| Error::in_namespace(error, &collection.namespace()))
    }

    /// Inserts documents, each whole or not at all. An ordered insert ends with the first that fails.
    pub(crate) async fn insert(
        &self,
        collection: &Arc<Collection>,
        documents: Vec<RawDocument>,
        ordered: bool,
        receipts: Option<Receipts>,
    ) -> Result<Vec<Result<()>>> {
        let inserted = match self {
            Room::Open(common) => common.engine.insert(collection, documents, ordered, receipts).await?,
            Room::Transaction(_, transaction) => {
                let mut workspace = transaction.opened()?;
                let mut inserted = Vec::new();
                for document in documents {
                    inserted.push(workspace.insert(collection, document));
                    if ordered && inserted.last().is_some_and(std::result::Result::is_err) {
                        break;
                    }
                }
                inserted
            }
        };
        let namespace = collection.namespace();
        let told =
            |outcome: engine::Result<()>| outcome.map_err(|error| Error::in_namespace(error, &namespace));
        Ok(inserted.into_iter().map(told).collect())
    }

    /// Whether this is a transaction.
    pub(crate) fn is_transaction(&self) -> bool {
        matches!(self, Room::Transaction(..))
    }
}
