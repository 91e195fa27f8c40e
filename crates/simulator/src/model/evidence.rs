//! What must be provable of the dead (T32, the deletion record): each death, written down when it happens.
//!
//! When the bytes of a dead item are dropped is the purge's business, and nothing here knows it. So the model says of whom a
//! line or entry may tell, and of whom one must when the purge has nothing left to do: of those who died while evidence was
//! wished for, as long as it still is.

use super::{DefaultTtl, Item, Model, Ttl, deadline};

/// Which evidence a container's owner wishes for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Evidence {
    /// A line in the archive.
    Archive,
    /// An entry in the deletion record.
    Record,
}

/// One death.
#[derive(Debug, Clone)]
pub(crate) struct Death {
    /// The container that it happened in, by number: a name may be used again.
    pub(crate) container: u64,
    /// Its name.
    pub(crate) name: &'static str,
    /// Who died.
    pub(crate) item: Item,
    /// When.
    pub(crate) time_ms: u64,
    /// The rule that killed it.
    pub(crate) rule: &'static str,
    /// How long it gave.
    pub(crate) seconds: i64,
    /// Whether another rule had killed it just then, too.
    pub(crate) twice: bool,
    turn: u64,
}

impl Model {
    /// An item has died at a time.
    pub(super) fn mourn(&mut self, name: &'static str, time_ms: u64, item: &Item) {
        let container = &self.containers[name];
        let by_ttl = deadline(container.default_ttl, item.body.ttl, item.counts_from);
        let (rule, seconds) = match (item.body.ttl, container.default_ttl) {
            _ if by_ttl.is_none_or(|by_ttl| item.dies_at.is_some_and(|named| named < by_ttl)) => {
                ("expireAtPath", 0)
            }
            (Ttl::After(own) | Ttl::AfterPoint(own), _) => ("ttl", own),
            (_, DefaultTtl::After(default)) => ("defaultTtl", default),
            _ => ("none", 0),
        };
        let (number, item) = (container.number, item.clone());
        let now = self.trusted;
        let overdue = [by_ttl, item.dies_at].into_iter().flatten().filter(|second| *second <= now).count();
        let (twice, turn) = (overdue > 1, self.turns);
        self.deaths.push(Death { container: number, name, item, time_ms, rule, seconds, twice, turn });
    }

    /// The owner wishes for evidence, or does not any more.
    pub(super) fn wish_for(&mut self, name: &str, evidence: Evidence, wished: bool) {
        self.turns += 1;
        let turn = self.turns;
        let Some(container) = self.containers.get_mut(name) else { return };
        if wished {
            container.evidence.entry(evidence).or_insert(turn);
        } else {
            container.evidence.remove(&evidence);
        }
    }

    /// Those whose evidence must exist once their bytes are gone.
    pub(crate) fn owed(&self, name: &str, evidence: Evidence) -> Vec<&Death> {
        let Some(container) = self.containers.get(name) else { return Vec::new() };
        let Some(since) = container.evidence.get(&evidence) else { return Vec::new() };
        let owed = |death: &&Death| death.container == container.number && death.turn > *since;
        self.deaths.iter().filter(owed).collect()
    }
}
