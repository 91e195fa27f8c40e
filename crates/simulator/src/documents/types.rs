//! The types of the MongoDB form: documents, date rules, requests, events. They depend on nothing but `std` and each other.

use crate::model::{Consent, Evidence};

/// How many date fields a document may have, and so how many date rules a collection may.
pub(super) const FIELDS: usize = 2;

/// What a document has in a date field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Dates {
    /// No such field.
    Missing,
    /// Something else.
    NoDate,
    /// A date, in milliseconds since 1970.
    One(i64),
    /// An array of dates.
    Several(Vec<i64>),
}

impl Dates {
    /// Returns the date that counts (T27).
    pub(super) fn earliest(&self) -> Option<i64> {
        match self {
            Dates::Missing | Dates::NoDate => None,
            Dates::One(date) => Some(*date),
            Dates::Several(dates) => dates.iter().min().copied(),
        }
    }
}

/// A `ttl` that T6 ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnoredTtl {
    /// `20.5`
    Fraction,
    /// `NumberLong(2147483649)`
    TooLarge,
    /// `"2"`
    Text,
    /// `0`
    Zero,
    /// `-5`
    Negative,
    /// `null`
    Null,
}

/// A document's own `ttl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ttl {
    /// No such field.
    Absent,
    /// A value that T6 ignores.
    Ignored(IgnoredTtl),
    /// `-1`
    Never,
    /// Seconds, as an int32, an int64 or a double.
    After(i64, NumberType),
}

/// The type of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberType {
    Int32,
    Int64,
    Double,
}

/// What a client stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Doc {
    pub(super) id: i32,
    pub(super) ttl: Ttl,
    pub(super) dates: [Dates; FIELDS],
    /// The field that partial rules test.
    pub(super) tag: bool,
    pub(super) number: i32,
}

/// The default of a collection: its `_ts` index (T26).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Default {
    /// No such index.
    #[default]
    Off,
    /// `-1`
    Never,
    /// Seconds.
    After(i64),
}

impl Default {
    /// Returns the seconds that documents inherit.
    pub(super) fn seconds(self) -> Option<i64> {
        match self {
            Default::Off | Default::Never => None,
            Default::After(seconds) => Some(seconds),
        }
    }
}

/// A date rule (T27).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) seconds: i64,
    /// Whether it is for documents with the tag alone.
    pub(super) partial: bool,
    /// Whether queries may not use its index; it counts all the same.
    pub(super) hidden: bool,
    /// Whether it expires documents: not while its index is being built.
    pub(super) in_force: bool,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    Insert(Doc),
    /// As a whole, or in parts; inserts if `upsert`.
    Change {
        doc: Doc,
        parts: bool,
        upsert: bool,
    },
    Delete(i32),
    SetDefault(Default, Consent),
    /// Another number of seconds, or hidden or not.
    ChangeRule(usize, Rule, Consent),
    DropRule(usize),
    HoldItem(i32),
    LiftItem(i32),
    HoldCollection(bool, Consent),
    /// The share of the living items, in millionths, that may expire at once (T30).
    Guard(Option<u32>),
    /// Whether there is to be evidence of the expired items.
    Evidence(Evidence, bool),
    Make,
    Drop,
    Rename(&'static str),
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// Something was written.
    Written,
    /// Nothing was written, because nothing would change.
    Same,
    NotFound,
    Duplicate,
    Held,
    /// Too many would have expired.
    NotConfirmed,
    Exists,
    NoCollection,
    Other(String),
}

/// The cause of an expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// Its own `ttl`.
    Ttl(i64),
    /// The default of its collection.
    Default(i64),
    /// The date in a field, and so many seconds; evidence does not name an index that was dropped.
    Date { field: Option<usize>, seconds: i64 },
}

/// The kind of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChangeKind {
    Inserted(Doc),
    Changed { before: Doc, after: Doc, parts: bool },
    Deleted(Doc),
    Expired(Doc),
    Made,
    Dropped,
    Renamed(&'static str),
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// Events of one turn have no order.
    pub(super) turn: u64,
    pub(super) time_ms: u64,
    /// The name that the collection had then.
    pub(super) name: &'static str,
    pub(super) what: ChangeKind,
}

/// The visible state of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) default: Default,
    /// By field.
    pub(super) rules: [Option<Rule>; FIELDS],
    pub(super) hold: bool,
    pub(super) guard: Option<u32>,
    pub(super) evidence: Vec<Evidence>,
    /// Ids of held documents.
    pub(super) held: Vec<i32>,
    /// In the order of their creation.
    pub(super) documents: Vec<Doc>,
    /// By the counters.
    pub(super) living: u64,
}
