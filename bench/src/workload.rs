//! The operations of users, and mixtures of them.

use std::sync::Arc;

use crate::documents::{DataSet, GROUP_ITEMS, NAMED_ITEMS, Random, Zipf};

/// One operation on documents by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Insert(u64),
    /// Inserts a document with a time to live.
    InsertExpiring(u64),
    Read(u64),
    /// Replaces a document by that version.
    Replace(u64, u64),
    Upsert(u64, u64),
    /// Sets one field.
    Patch(u64, u64),
    /// Queries ten documents by an indexed field.
    Query(u64),
    /// Queries the same within a partition key.
    Scoped(u64),
    /// Queries the ten highest of a partition by an indexed field.
    Top(u64),
    /// Counts the documents of a partition below the middle.
    Count(u64),
    /// Queries the documents whose name contains an x, by looking at all of them.
    Contains,
    /// Reads the changes since the last call on this connection.
    Tail,
}

/// The kinds of operations; a peer may not support all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Insert,
    InsertExpiring,
    Read,
    Replace,
    Upsert,
    Patch,
    Query,
    Scoped,
    Top,
    Count,
    /// A scan of the whole set, which must have names.
    Contains,
    Tail,
    /// Half reads, half replacements.
    Mixed50,
    /// One replacement in twenty.
    Mixed95,
}

impl Kind {
    /// Reads come first: the others enlarge the set. The scan is missing: it needs a set of its own.
    pub const ALL: [Kind; 13] = [
        Kind::Read,
        Kind::Query,
        Kind::Scoped,
        Kind::Top,
        Kind::Count,
        Kind::Insert,
        Kind::Replace,
        Kind::Patch,
        Kind::Upsert,
        Kind::Mixed50,
        Kind::Mixed95,
        Kind::InsertExpiring,
        Kind::Tail,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Insert => "insert",
            Kind::InsertExpiring => "ttl insert",
            Kind::Read => "point read",
            Kind::Replace => "replace",
            Kind::Upsert => "upsert",
            Kind::Patch => "patch",
            Kind::Query => "query of 10",
            Kind::Scoped => "scoped query",
            Kind::Top => "top 10",
            Kind::Count => "count",
            Kind::Contains => "contains",
            Kind::Tail => "feed tail",
            Kind::Mixed50 => "mixed 50/50",
            Kind::Mixed95 => "mixed 95/5",
        }
    }

    /// Returns the number of documents in the answer, or the number that it contains.
    pub fn rows(self, set: &DataSet) -> usize {
        match self {
            Kind::Query | Kind::Scoped | Kind::Top => 10,
            Kind::Count => set.shape.middle() as usize,
            Kind::Contains => (set.items / NAMED_ITEMS) as usize,
            _ => 1,
        }
    }
}

/// One user's stream of operations.
pub struct Stream {
    kind: Kind,
    set: Arc<DataSet>,
    random: Random,
    zipf: Option<Zipf>,
    turn: u64,
}

impl Stream {
    /// Creates a stream. `zipf` is made once for all users: it takes a while for many items.
    pub fn new(kind: Kind, set: &Arc<DataSet>, zipf: Option<&Zipf>, seed: u64) -> Stream {
        Stream { kind, set: Arc::clone(set), random: Random::new(seed), zipf: zipf.cloned(), turn: 0 }
    }

    pub fn operation(&mut self) -> Operation {
        self.turn += 1;
        let version = self.random.number() & 0xff_ffff;
        let uniform = self.random.below(self.set.items);
        let skewed = self.zipf.as_ref().map_or(uniform, |zipf| zipf.draw(&mut self.random));
        match self.kind {
            Kind::Insert => Operation::Insert(self.set.fresh()),
            Kind::InsertExpiring => Operation::InsertExpiring(self.set.fresh()),
            Kind::Read => Operation::Read(uniform),
            Kind::Replace => Operation::Replace(uniform, version),
            Kind::Upsert if self.turn.is_multiple_of(2) => Operation::Upsert(self.set.fresh(), version),
            Kind::Upsert => Operation::Upsert(uniform, version),
            Kind::Patch => Operation::Patch(uniform, version),
            Kind::Query => Operation::Query(uniform / GROUP_ITEMS),
            Kind::Scoped => Operation::Scoped(uniform / GROUP_ITEMS),
            Kind::Top => Operation::Top(self.set.shape.partition(uniform)),
            Kind::Count => Operation::Count(self.set.shape.partition(uniform)),
            Kind::Contains => Operation::Contains,
            Kind::Tail if self.turn.is_multiple_of(2) => Operation::Tail,
            Kind::Tail => Operation::Insert(self.set.fresh()),
            Kind::Mixed50 if self.random.below(2) == 0 => Operation::Replace(skewed, version),
            Kind::Mixed95 if self.random.below(20) == 0 => Operation::Replace(skewed, version),
            Kind::Mixed50 | Kind::Mixed95 => Operation::Read(skewed),
        }
    }
}
