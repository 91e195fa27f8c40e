//! Writing items: one write path for containers and collections, and the operations of the NoSQL API.
//!
//! | file | what |
//! |---|---|
//! | `context.rs` | the write path inside a transaction, generic over an `ItemSchema` |
//! | `schema.rs` | what differs between containers and collections |
//! | `container_schema.rs` | that of containers; that of collections is in `collection/schema.rs` |
//! | `items.rs` | the operations of the NoSQL API on one item |
//! | `held.rs` | refusals of changes to held items |
//!
//! Work that needs no state is done on the caller's thread ([`Prepared`]); work that depends on the current state happens inside
//! the transaction.

pub(crate) mod container_schema;
pub(crate) mod context;
pub(crate) mod delete_partition;
pub(crate) mod held;
mod items;
pub(crate) mod operation;
pub(crate) mod schema;

use std::sync::Arc;

use document::PartitionKey;
use storage::{Lanes, Ticket, Transaction, transact_noting};

use self::container_schema::ContainerContext;
use self::items::Prepared;
use self::operation::{BatchError, Operation};
use crate::Engine;
use crate::access::outcome::Outcome;
use crate::catalog::container::Container;
use crate::catalog::owner::Owner;
use crate::entries::traces::Home;
use crate::entries::writes::Writes;
use crate::expiry::Countdown;
use crate::types::charge::Charge;
use crate::types::error::{Error, Result};
use crate::types::limits::{BATCH_ANSWER_BYTES_MAX, BATCH_OPERATIONS_MAX};

impl Engine {
    /// Does what [`write_with`](Engine::write_with) does; the countdown of an item that is replaced begins again.
    pub fn write(
        &self,
        container: &Arc<Container>,
        key: Option<PartitionKey>,
        operation: Operation,
    ) -> Ticket<Result<Outcome>> {
        self.write_with(container, key, operation, Countdown::Restart)
    }

    /// Runs one operation. `key` is the partition key that came with the request; without it, the item's own counts
    /// (create, upsert and replace only).
    pub fn write_with(
        &self,
        container: &Arc<Container>,
        key: Option<PartitionKey>,
        operation: Operation,
        countdown: Countdown,
    ) -> Ticket<Result<Outcome>> {
        let ready = self.prepare_ttl_modes(container, countdown);
        let Prepared { home, action } = match ready.and_then(|()| Prepared::new(container, key, operation)) {
            Ok(prepared) => prepared,
            Err(error) => return Ticket::ready(Err(error)),
        };
        let known = Arc::clone(&home);
        let apply = move |tx: &mut Transaction<'_>, context: &ContainerContext, writes: &mut Writes| {
            action.apply(tx, (context, &known), writes)
        };
        self.run(container, home, countdown, apply, |outcome| (outcome.charge, outcome.range.lsn))
    }

    /// Does what [`batch_with`](Engine::batch_with) does; the countdowns of items that are replaced begin again.
    pub fn batch(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        operations: Vec<Operation>,
    ) -> Ticket<std::result::Result<Vec<Outcome>, BatchError>> {
        self.batch_with(container, key, operations, Countdown::Restart)
    }

    /// Runs all operations of one logical partition in one commit, or none of them.
    pub fn batch_with(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        operations: Vec<Operation>,
        countdown: Countdown,
    ) -> Ticket<std::result::Result<Vec<Outcome>, BatchError>> {
        let ready = self.prepare_ttl_modes(container, countdown).map_err(BatchError::from);
        let prepared = match ready.and_then(|()| prepare_batch(container, key, operations)) {
            Ok(prepared) => prepared,
            Err(error) => return Ticket::ready(Err(error)),
        };
        let home = Arc::clone(&prepared[0].home);
        let apply = move |tx: &mut Transaction<'_>, context: &ContainerContext, writes: &mut Writes| {
            apply_batch(tx, context, prepared, writes)
        };
        // Whatever the last operation was, it saw all that was written before it in the batch.
        self.run(container, home, countdown, apply, |outcomes: &Vec<Outcome>| {
            let charge = outcomes.iter().map(|outcome| outcome.charge).sum();
            (charge, outcomes.last().map_or(0, |last| last.range.lsn))
        })
    }

    /// Runs operations of one logical partition in one transaction; `sum_up` returns their charge, and the last LSN that they saw.
    fn run<T, E>(
        &self,
        container: &Arc<Container>,
        home: Arc<Home>,
        countdown: Countdown,
        apply: impl FnOnce(&mut Transaction<'_>, &ContainerContext, &mut Writes) -> std::result::Result<T, E>
        + Send
        + 'static,
        sum_up: fn(&T) -> (Charge, u64),
    ) -> Ticket<std::result::Result<T, E>>
    where
        T: Send + 'static,
        E: From<Error> + From<storage::Error> + Send + 'static,
    {
        let partition = Arc::clone(container.partition_of(&home.effective));
        let pending = match self.admit(container, &partition) {
            Ok(pending) => pending,
            Err(refused) => return Ticket::ready(Err(refused.into())),
        };
        let (lanes, counted) = (Lanes::one(u64::from(partition.id.0)), Arc::clone(&partition));
        let (container, alarm) = (Arc::clone(container), Arc::clone(&self.alarm));
        let run = move |tx: &mut Transaction<'_>| {
            let mut context = ContainerContext::open(tx, &container, &partition, &home)?;
            context.countdown = countdown;
            let outcome = apply(tx, &context, &mut Writes::new(partition.id))?;
            context.finish(tx, &alarm);
            tx.check_free_space()?;
            pending.pay(sum_up(&outcome).0);
            Ok(outcome)
        };
        transact_noting(&*self.store, lanes, run, move |outcome| counted.known_lsn.raise(sum_up(outcome).1))
    }

    /// Creates the rules that a continuing countdown needs, because it may begin in the past. They are created once per
    /// container, before its first write of this kind; a caller that cannot wait for that calls this on another thread.
    pub fn prepare_ttl_modes(&self, container: &Arc<Container>, countdown: Countdown) -> Result<()> {
        if container.is_prepared_for(countdown) {
            return Ok(());
        }
        self.enable_ttl_modes(&Owner::Container(Arc::clone(container)))
    }
}

/// Returns the operations of a batch, all in one logical partition.
fn prepare_batch(
    container: &Container,
    key: &PartitionKey,
    operations: Vec<Operation>,
) -> std::result::Result<Vec<Prepared>, BatchError> {
    check_batch_size(operations.len())?;
    let prepare = |(index, operation)| {
        Prepared::new(container, Some(key.clone()), operation)
            .map_err(|error| BatchError { index: Some(index), error })
    };
    operations.into_iter().enumerate().map(prepare).collect()
}

/// Runs the operations of a batch, each as those before it have left things.
fn apply_batch(
    tx: &mut Transaction<'_>,
    context: &ContainerContext,
    operations: Vec<Prepared>,
    writes: &mut Writes,
) -> std::result::Result<Vec<Outcome>, BatchError> {
    let (mut outcomes, mut bytes) = (Vec::with_capacity(operations.len()), 0);
    for (index, Prepared { home, action }) in operations.into_iter().enumerate() {
        let outcome = action.apply(tx, (context, &home), writes);
        let outcome = outcome.map_err(|error| BatchError { index: Some(index), error })?;
        bytes += outcome.item.as_ref().map_or(0, |item| item.body.as_bytes().len());
        if bytes > BATCH_ANSWER_BYTES_MAX {
            let (what, limit) = ("the answer to the batch", BATCH_ANSWER_BYTES_MAX);
            let error = Error::TooLarge { what, actual: bytes, limit };
            return Err(BatchError { index: Some(index), error });
        }
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Refuses a batch with no or too many operations; the messages are the service's, because clients match them.
pub fn check_batch_size(operations: usize) -> Result<()> {
    match operations {
        0 => Err(Error::invalid("Batch request has no operations.")),
        1..=BATCH_OPERATIONS_MAX => Ok(()),
        _ => Err(Error::invalid(format!(
            "Batch request has more operations than what is supported. It has {operations}, the limit is \
             {BATCH_OPERATIONS_MAX}."
        ))),
    }
}
