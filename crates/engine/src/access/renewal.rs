//! Sliding renewals: reads that restart the countdown of an item (T33, *sliding*).
//!
//! A renewal is not a write of the item. Its bytes, `_ts`, etag, index entries and feed stay as they are, and it
//! takes no sequence. What moves, to the second of the read, is the item's entry in its queue and its weight in the
//! counters. A small record beside the item has the new start:
//!
//! ```text
//!   header    countdown from 100, reads restart it       queue   100  ...            before the first renewal
//!   record    countdown from 160                         queue         ...  160      after it
//! ```
//!
//! So queues and counters are always exact, and purge, figures, forecasts and feeds need no knowledge of renewals.
//! Code that judges an item by its header reads the record only if the item has expired by the header alone. An index
//! entry, whose mark may be as old as the version, remains a valid bound. A write of the item removes the record, and
//! so does its removal.
//!
//! One renewal for a version and second is enough, however many requests read it: once it is durable, later reads of
//! that second find it in memory without using the store. Reads that come before that wait for it too, because no
//! client may be promised an extension that a crash could undo.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use document::ItemNumber;
use storage::{Lanes, Ticket, Time, Transaction, transact};

use crate::Engine;
use crate::access::gate::{Gate, LookupResult};
use crate::catalog::container::Partition;
use crate::catalog::put;
use crate::catalog::renewed::Version;
use crate::entries::counters::{self, Weight};
use crate::entries::traces::put_places;
use crate::expiry::header::{Body, Header, Record};
use crate::expiry::{Millis, Policy, from_seconds};
use crate::keys::Key;
use crate::types::error::Result;

/// The largest number of countdowns that one transaction restarts.
const RENEWALS_MAX: usize = 256;

/// A countdown that a read has to restart; [`Engine::renew`] does it.
#[derive(Debug, Clone)]
#[must_use = "the countdown is not restarted until the renewal runs"]
pub struct SlidingRenewal {
    partition: Arc<Partition>,
    version: Version,
    at: Time,
}

impl SlidingRenewal {
    /// Returns the renewal that a read at `now` calls for, or `None` if there is nothing to restart or another read
    /// of this second has done it.
    pub(crate) fn of(
        partition: &Arc<Partition>,
        gate: &Gate,
        number: ItemNumber,
        header: &Header,
    ) -> Option<SlidingRenewal> {
        restarted(&gate.policy, header, gate.now)?;
        Some(SlidingRenewal {
            partition: Arc::clone(partition),
            version: (number, header.sequence),
            at: gate.now,
        })
    }

    fn is_done(&self) -> bool {
        self.partition.renewed.has(self.version, self.at.seconds())
    }
}

/// A renewal in progress. Its result is the seconds that the item has left once the renewal is durable, or `None` if
/// the item has expired meanwhile, which is final (T13).
#[must_use = "a renewal is known to be durable only once this resolves"]
pub struct PendingRenewal {
    renewal: SlidingRenewal,
    ticket: Ticket<Result<Option<u64>>>,
}

impl PendingRenewal {
    /// Blocks this thread until the result is known.
    pub fn wait(self) -> Result<Option<u64>> {
        let PendingRenewal { renewal, ticket } = self;
        done(&renewal, ticket.wait())
    }
}

impl Future for PendingRenewal {
    type Output = Result<Option<u64>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.ticket).poll(context).map(|outcome| done(&self.renewal, outcome))
    }
}

/// Notes that the renewal is durable, so that later reads in the same second need not wait.
fn done(renewal: &SlidingRenewal, outcome: Result<Option<u64>>) -> Result<Option<u64>> {
    if outcome.as_ref().is_ok_and(|left| *left != Some(0)) {
        renewal.partition.renewed.put(renewal.version, renewal.at.seconds());
    }
    outcome
}

impl Engine {
    /// Restarts the countdown of an item that was read. Returns `None` if another read of the same second has done
    /// it.
    pub fn renew(&self, renewal: &SlidingRenewal) -> Option<PendingRenewal> {
        let ticket = (!renewal.is_done()).then(|| self.restart(std::slice::from_ref(renewal)))?;
        Some(PendingRenewal { renewal: renewal.clone(), ticket })
    }

    /// Restarts the countdowns of items that were read together, and waits until that is durable.
    pub fn renew_all(&self, renewals: &[SlidingRenewal]) -> Result<()> {
        let open: Vec<SlidingRenewal> =
            renewals.iter().filter(|renewal| !renewal.is_done()).cloned().collect();
        let of_one_partition =
            |one: &SlidingRenewal, other: &SlidingRenewal| one.partition.id == other.partition.id;
        let parts = open.chunk_by(of_one_partition).flat_map(|part| part.chunks(RENEWALS_MAX));
        let begun: Vec<_> = parts.map(|part| (part, self.restart(part))).collect();
        for (part, ticket) in begun {
            ticket.wait()?;
            for renewal in part {
                renewal.partition.renewed.put(renewal.version, renewal.at.seconds());
            }
        }
        Ok(())
    }

    /// Restarts countdowns in one partition; the result is the seconds that the last item has left.
    fn restart(&self, renewals: &[SlidingRenewal]) -> Ticket<Result<Option<u64>>> {
        let id = renewals[0].partition.id;
        let numbers: Vec<_> = renewals.iter().map(|renewal| renewal.version.0).collect();
        transact(&*self.store, Lanes::one(u64::from(id.0)), move |tx| {
            let gate = Gate::for_write(tx, id)?;
            let mut left = None;
            for number in &numbers {
                left = match gate.by_number::<document::Document>(tx, *number)? {
                    LookupResult::Living(mut record) => {
                        restart(tx, &gate, &mut record)?;
                        gate.policy.seconds_left(&record.header, gate.now)
                    }
                    LookupResult::Expired(_) | LookupResult::Damaged(_) | LookupResult::Absent => Some(0),
                };
            }
            Ok(left)
        })
    }
}

/// Restarts the countdown of a living item.
pub(crate) fn restart<B: Body>(tx: &mut Transaction<'_>, gate: &Gate, record: &mut Record<B>) -> Result<()> {
    let Some(renewed_at) = restarted(&gate.policy, &record.header, gate.now) else { return Ok(()) };
    let (before, number) = (Weight::of(gate.partition, record), record.number);
    record.header.renewed_at = Some(renewed_at);
    let after = Weight::of(gate.partition, record);
    counters::subtract(tx, &before)?;
    counters::add(tx, &after)?;
    put_places(tx, number, &before, &after);
    put(tx, Key::SlidingRenewal(gate.partition, number), renewed_at.to_be_bytes().to_vec());
    Ok(())
}

/// Returns where the countdown starts after a read, or `None` if the read does not restart it: the item was written
/// or read in this second, its mode is not sliding, or nothing may be changed. Any other earlier read is overwritten,
/// even one in the future: its time was rejected (T34).
pub(crate) fn restarted(policy: &Policy, header: &Header, now: Time) -> Option<Millis> {
    let second = from_seconds(now.seconds());
    let is_due = policy.lifecycle.sliding
        && header.slides()
        && header.written_from() < second
        && header.renewed_at != Some(second)
        && header.ttl_position().and_then(|place| policy.due(place)).is_some();
    is_due.then_some(second)
}
