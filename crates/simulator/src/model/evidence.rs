//! The evidence that must exist of expired items (T32, the deletion record): each expiry, recorded when it happens.
//!
//! The purge decides when the bytes of an expired item are removed, and the model does not follow it. So the model returns
//! the expiries that may have a line or entry, and those that must have one when the purge has nothing left to do: the items
//! that expired while evidence was configured, as long as it still is.

use super::{DefaultTtl, Item, Model, Ttl, deadline};

/// The kinds of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Evidence {
    /// A line in the archive.
    Archive,
    /// An entry in the deletion record.
    Record,
}

/// One expiry.
#[derive(Debug, Clone)]
pub(crate) struct Expiry {
    /// The container that it happened in, by number: a name may be used again.
    pub(crate) container: u64,
    /// Its name.
    pub(crate) name: &'static str,
    /// The item that expired.
    pub(crate) item: Item,
    /// When.
    pub(crate) time_ms: u64,
    /// The rule that expired it.
    pub(crate) rule: &'static str,
    /// The seconds of the rule.
    pub(crate) seconds: i64,
    /// Whether another rule had expired it just then, too.
    pub(crate) twice: bool,
    turn: u64,
}

impl Model {
    /// Records that an item has expired.
    pub(super) fn record_expiry(&mut self, name: &'static str, time_ms: u64, item: &Item) {
        let container = &self.containers[name];
        let by_ttl = deadline(container.default_ttl, item.body.ttl, item.counts_from);
        let (rule, seconds) = match (item.body.ttl, container.default_ttl) {
            _ if by_ttl.is_none_or(|by_ttl| item.expires_at.is_some_and(|named| named < by_ttl)) => {
                ("expireAtPath", 0)
            }
            (Ttl::After(own) | Ttl::AfterPoint(own), _) => ("ttl", own),
            (_, DefaultTtl::After(default)) => ("defaultTtl", default),
            _ => ("none", 0),
        };
        let (number, item) = (container.number, item.clone());
        let now = self.trusted;
        let overdue = [by_ttl, item.expires_at].into_iter().flatten().filter(|second| *second <= now).count();
        let (twice, turn) = (overdue > 1, self.turns);
        self.expiries.push(Expiry { container: number, name, item, time_ms, rule, seconds, twice, turn });
    }

    /// Turns a kind of evidence on or off.
    pub(super) fn set_evidence(&mut self, name: &str, evidence: Evidence, is_on: bool) {
        self.turns += 1;
        let turn = self.turns;
        let Some(container) = self.containers.get_mut(name) else { return };
        if is_on {
            container.evidence.entry(evidence).or_insert(turn);
        } else {
            container.evidence.remove(&evidence);
        }
    }

    /// Returns the expiries whose evidence must exist once their bytes are gone.
    pub(crate) fn owed(&self, name: &str, evidence: Evidence) -> Vec<&Expiry> {
        let Some(container) = self.containers.get(name) else { return Vec::new() };
        let Some(since) = container.evidence.get(&evidence) else { return Vec::new() };
        let owed = |expiry: &&Expiry| expiry.container == container.number && expiry.turn > *since;
        self.expiries.iter().filter(owed).collect()
    }
}
