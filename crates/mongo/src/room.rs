//! Where the statements of a command read and write: the database as it is, or the open transaction of a session.

use std::sync::Arc;

use bson::RawDocument;
use engine::Engine;
use engine::collection::{
    Collection, Found, Modified, Reading, Receipt, Receipts, Target, Verdict, Workspace,
};
use mql::Code;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use storage::Time;

use crate::error::{Error, Result, TRANSIENT_TRANSACTION};

/// A place to read and write in.
#[derive(Clone)]
pub(crate) enum Room {
    /// The database: every statement stands for itself.
    Open(Arc<Engine>),
    /// A transaction: one snapshot, one time, and what was written in it.
    Transaction(Arc<Engine>, OpenTransaction),
}

/// A transaction that several commands work in, until one of them takes it out to commit it.
pub(crate) type OpenTransaction = Arc<Mutex<Option<Workspace>>>;

impl Room {
    /// The engine behind it.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        match self {
            Room::Open(engine) | Room::Transaction(engine, _) => engine,
        }
    }

    /// Shows collections as they are now, or as the transaction sees them: one snapshot, one time.
    pub(crate) fn read<T>(
        &self,
        collections: &[&Arc<Collection>],
        work: impl FnOnce(&Reading<'_>) -> Result<T>,
    ) -> Result<T> {
        match self {
            Room::Open(engine) => work(&engine.reading(collections)?),
            Room::Transaction(_, transaction) => work(&opened(transaction)?.reading(collections)?),
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
            Room::Open(engine) => engine.modify(collection, target, decide, receipt).await,
            Room::Transaction(_, transaction) => opened(transaction)?.modify(collection, &target, decide),
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
            Room::Open(engine) => engine.insert(collection, documents, ordered, receipts).await?,
            Room::Transaction(_, transaction) => {
                let mut workspace = opened(transaction)?;
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

/// The transaction, unless it was ended meanwhile.
fn opened(transaction: &OpenTransaction) -> Result<MappedMutexGuard<'_, Workspace>> {
    MutexGuard::try_map(transaction.lock(), Option::as_mut).map_err(|_| {
        Error::new(Code::NO_SUCH_TRANSACTION, "The transaction has ended.").with_label(TRANSIENT_TRANSACTION)
    })
}
