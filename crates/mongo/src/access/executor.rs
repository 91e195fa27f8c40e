//! Runs the reads and writes of one command: on the database as it is, or in the open transaction of a session.

use std::sync::Arc;

use bson::RawDocument;
use engine::Engine;
use engine::collection::{
    Collection, CollectionDefinition, Inserted, LivingDocument, Modified, Reading, Receipt, Receipts, Target,
    Verdict, Workspace,
};
use engine::find::{AccessPath, DocumentScan, Plan};
use mql::Code;
use mql::filter::Filter;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use storage::Time;
use tokio::sync::{Notify, OwnedMutexGuard};

use crate::access::catalog;
use crate::access::meter::Meter;
use crate::access::permit::{CommandPermit, unless_stopped};
use crate::access::provisional::{HeldCollections, Provisional};
use crate::diagnostics::index_uses::IndexUses;
use crate::protocol::cancellation::Cancellation;
use crate::protocol::error::{Error, Result, TRANSIENT_TRANSACTION};
use crate::protocol::offload;
use crate::protocol::write_errors::DetailBudget;

/// Reads and writes for one command, and meters them.
#[derive(Clone)]
pub(crate) struct Executor {
    shared: Arc<SharedState>,
    /// One snapshot, one time, and the writes made in it. Without a transaction, every statement stands for itself.
    transaction: Option<Arc<OpenTransaction>>,
    meter: Arc<Meter>,
    details: Arc<DetailBudget>,
    permit: Arc<CommandPermit>,
    /// Stops the command while it waits.
    cancellation: Cancellation,
}

/// What all executors share.
pub(crate) struct SharedState {
    pub(crate) engine: Arc<Engine>,
    /// Collections that open transactions have made.
    pub(crate) provisional: Provisional,
    pub(crate) index_uses: IndexUses,
}

impl SharedState {
    pub(crate) fn new(engine: Arc<Engine>) -> SharedState {
        SharedState { engine, provisional: Provisional::default(), index_uses: IndexUses::default() }
    }
}

/// The lock that a command holds while it works in a transaction, commits it or clears it: one at a time, and the others wait
/// without a thread.
pub(crate) type Turns = Arc<tokio::sync::Mutex<()>>;

/// A command's turn in a transaction.
pub(crate) type Turn = OwnedMutexGuard<()>;

/// A transaction that several commands work in, one after another, until one of them takes it out to commit it.
pub(crate) struct OpenTransaction {
    /// Locked for as long as a statement computes, on a thread: only the command that has the turn locks it, so that it
    /// never waits for another. (Measuring it tries to lock it, and holds it for a moment.)
    workspace: Mutex<Option<Workspace>>,
    pub(crate) turns: Turns,
    /// The collections that it has made. They go with it unless it commits.
    pub(crate) collections: HeldCollections,
}

impl OpenTransaction {
    /// Begins a transaction.
    pub(crate) fn begin(shared: &Arc<SharedState>) -> Result<OpenTransaction> {
        let workspace = Mutex::new(Some(shared.engine.begin()?));
        Ok(OpenTransaction { workspace, turns: Turns::default(), collections: HeldCollections::new(shared) })
    }

    /// Takes its writes out, for its commit or its end; none if another command has taken it before. Needs the turn.
    pub(crate) fn take(&self) -> Option<Workspace> {
        self.workspace.lock().take()
    }

    /// Returns how many bytes it holds, roughly; none while a command works in it.
    pub(crate) fn bytes(&self) -> Option<usize> {
        Some(self.workspace.try_lock()?.as_ref().map_or(0, Workspace::bytes))
    }

    /// Returns the workspace, unless the transaction was ended meanwhile. Needs the turn.
    fn opened(&self) -> Result<MappedMutexGuard<'_, Workspace>> {
        MutexGuard::try_map(self.workspace.lock(), Option::as_mut).map_err(|_| {
            Error::new(Code::NO_SUCH_TRANSACTION, "The transaction has ended.")
                .with_label(TRANSIENT_TRANSACTION)
        })
    }
}

impl Executor {
    /// Makes an executor on the database as it is, or in a transaction.
    pub(crate) fn new(shared: &Arc<SharedState>, transaction: Option<Arc<OpenTransaction>>) -> Executor {
        Executor {
            shared: Arc::clone(shared),
            transaction,
            meter: Arc::default(),
            details: Arc::default(),
            permit: Arc::default(),
            cancellation: Cancellation::default(),
        }
    }

    /// Returns the same executor for a command that `cancellation` stops.
    pub(crate) fn with_cancellation(self, cancellation: Cancellation) -> Executor {
        Executor { cancellation, ..self }
    }

    /// Returns the engine behind it.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.shared.engine
    }

    /// Returns the meter of the command's reads and writes.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Returns the command's budget for the details of refused documents.
    pub(crate) fn details(&self) -> &DetailBudget {
        &self.details
    }

    /// Returns where the command's permit is kept.
    pub(crate) fn permit(&self) -> &CommandPermit {
        &self.permit
    }

    /// Returns how often indexes were used.
    pub(crate) fn index_uses(&self) -> &IndexUses {
        &self.shared.index_uses
    }

    /// Begins the scan of a plan, which counts as a use of its indexes. `limit` is how many documents are wanted at most.
    pub(crate) fn scan(
        &self,
        plan: Plan,
        collection: &Arc<Collection>,
        filter: &Arc<Filter>,
        limit: Option<u64>,
    ) -> DocumentScan {
        let uses = self.index_uses();
        self.meter.note_path(collection, &plan.path);
        match &plan.path {
            AccessPath::Empty | AccessPath::CollectionScan(_) => {}
            AccessPath::Id(_) => uses.note_id(collection),
            AccessPath::IndexScans(scans) => scans.iter().for_each(|scan| uses.note(collection, scan.index)),
        }
        plan.into_scan(collection, filter, limit)
    }

    /// Returns the collection of that name, to be written to.
    pub(crate) fn find_collection(&self, database: &str, name: &str) -> Option<Arc<Collection>> {
        match &self.transaction {
            None => {
                let collection = self.engine().collection(database, name)?;
                self.shared.provisional.confirm(&collection);
                Some(collection)
            }
            Some(transaction) => transaction.collections.find(database, name),
        }
    }

    /// Makes a collection; within a transaction, one that goes with it unless it commits.
    pub(crate) fn create_collection(
        &self,
        database: &str,
        name: &str,
        definition: CollectionDefinition,
    ) -> engine::Result<Arc<Collection>> {
        match &self.transaction {
            None => self.engine().create_collection(database, name, definition, None),
            Some(transaction) => transaction.collections.create(database, name, definition),
        }
    }

    /// Shows collections as they are now, or as the transaction sees them: one snapshot, one time. Refuses what belongs to the
    /// system: all reads for clients pass here.
    pub(crate) fn read<T>(
        &self,
        collections: &[&Arc<Collection>],
        work: impl FnOnce(&Reading<'_>) -> Result<T>,
    ) -> Result<T> {
        for collection in collections {
            catalog::refuse_system_read(&collection.database, &collection.name)?;
            self.meter.keep_toll(collection.namespace(), self.engine().admit_collection(collection)?);
        }
        let metered = |reading: &Reading<'_>| {
            let outcome = work(reading);
            if !collections.is_empty() {
                self.meter.read(&reading.metrics());
            }
            outcome
        };
        match &self.transaction {
            None => metered(&self.engine().reading(collections)?.stepping_aside(offload::offload_step)),
            Some(transaction) => {
                let mut opened = transaction.opened()?;
                metered(&opened.reading(collections)?.stepping_aside(offload::offload_step))
            }
        }
    }

    /// Shows a living document to a function and carries out its verdict.
    pub(crate) async fn modify(
        &self,
        collection: &Arc<Collection>,
        target: Target,
        decide: impl FnOnce(Option<&LivingDocument>, Time) -> engine::Result<Verdict> + Send + 'static,
        receipt: Option<Receipt>,
    ) -> Result<Modified> {
        let modified = match &self.transaction {
            None => {
                self.wait_for_transactions(collection, || vec![target.clone()]).await?;
                self.engine().modify(collection, target, decide, receipt).await
            }
            Some(transaction) => {
                let pending = self.engine().admit_collection(collection)?;
                let modified = transaction.opened()?.modify(collection, &target, decide);
                if let Ok(modified) = &modified {
                    pending.pay(modified.charge);
                }
                modified
            }
        };
        let modified = modified.map_err(|error| Error::in_namespace(error, &collection.namespace()))?;
        self.meter.wrote(modified.charge);
        self.meter.committed(modified.position);
        Ok(modified)
    }

    /// Waits until no open transaction has written one of the targets, or until the command is stopped. The lifetime of a
    /// transaction and the number of waiting writes of a user are bounded: one write too many goes ahead, and the transaction
    /// conflicts. A waiting write holds no permit, which the transaction may need for its next statement.
    async fn wait_for_transactions(
        &self,
        collection: &Collection,
        targets: impl FnOnce() -> Vec<Target>,
    ) -> Result<()> {
        let engine = self.engine();
        if !engine.has_claims() {
            return Ok(());
        }
        for target in targets() {
            while engine.is_claimed(collection, &target) {
                let ended = Arc::new(Notify::new());
                let notified = Arc::clone(&ended);
                let wait = engine.when_released(collection, &target, move || notified.notify_one());
                let Some(wait) = wait else { break };
                let Some(paused) = self.permit.pause() else { return Ok(()) };
                unless_stopped(ended.notified(), &self.cancellation).await?;
                drop(wait);
                self.permit.resume(paused, &self.cancellation).await?;
            }
        }
        Ok(())
    }

    /// Inserts documents, each whole or not at all. An ordered insert ends with the first that fails.
    pub(crate) async fn insert(
        &self,
        collection: &Arc<Collection>,
        documents: Vec<RawDocument>,
        ordered: bool,
        receipts: Option<Receipts>,
    ) -> Result<Vec<Result<()>>> {
        let inserted = match &self.transaction {
            None => {
                let id = |document: &RawDocument| document.get("_id").map(|id| Target::Id(id.to_value()));
                let targets = || documents.iter().filter_map(id).collect();
                self.wait_for_transactions(collection, targets).await?;
                self.engine().insert(collection, documents, ordered, receipts).await?
            }
            Some(transaction) => {
                let mut workspace = transaction.opened()?;
                let mut inserted = Vec::new();
                for document in documents {
                    let admitted = self.engine().admit_collection(collection);
                    inserted.push(admitted.and_then(|pending| {
                        let charge = workspace.insert(collection, document)?;
                        pending.pay(charge);
                        Ok(Inserted { charge, position: None })
                    }));
                    if ordered && inserted.last().is_some_and(std::result::Result::is_err) {
                        break;
                    }
                }
                inserted
            }
        };
        let namespace = collection.namespace();
        self.meter.wrote(inserted.iter().flatten().map(|inserted| inserted.charge).sum());
        self.meter.committed(inserted.iter().flatten().filter_map(|inserted| inserted.position).max());
        let mapped = |outcome: engine::Result<Inserted>| {
            outcome.map(drop).map_err(|error| Error::in_namespace(error, &namespace))
        };
        Ok(inserted.into_iter().map(mapped).collect())
    }

    /// Whether this transaction has made the collection and no other has confirmed it yet.
    pub(crate) fn has_made(&self, collection: &Collection) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.collections.holds(collection))
    }

    /// Returns the turns of the transaction that this is, if it is one.
    pub(crate) fn turns(&self) -> Option<Turns> {
        self.transaction.as_ref().map(|transaction| Arc::clone(&transaction.turns))
    }

    /// Whether this is a transaction.
    pub(crate) fn is_transaction(&self) -> bool {
        self.transaction.is_some()
    }
}
