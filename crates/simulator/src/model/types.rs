//! The types of the contract: the requests of clients, their preconditions, and the answers.

use super::Evidence;

/// The greatest number of seconds that T4 and T5 accept.
pub(crate) const MAX_TTL: i64 = 2_147_483_647;

/// A `ttl` or `defaultTtl` that T4 and T5 refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadTtl {
    /// `0`
    Zero,
    /// `-10`
    Negative,
    /// `1.5`
    Fraction,
    /// `"10"`
    Text,
    /// `true`
    True,
    /// `2147483648`
    TooLarge,
    /// `{}` (an item) - a container's `defaultTtl` may be null, an item's may not
    NullOrObject,
}

/// An item's own `ttl`, as a client wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ttl {
    /// No such property.
    Absent,
    /// `-1`
    Never,
    /// A whole number of seconds.
    After(i64),
    /// The same, written with a decimal point: `20.0`.
    AfterPoint(i64),
    /// What T5 refuses.
    Bad(BadTtl),
}

/// A container's `defaultTtl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefaultTtl {
    /// Absent or null.
    Off,
    /// `-1`
    Never,
    /// Seconds.
    After(i64),
    /// What T4 refuses.
    Bad(BadTtl),
}

/// A container's indexing policy. It must never show in an answer, only in the entries of the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Indexing {
    /// Every path, the default.
    #[default]
    Everything,
    /// `/n` alone, and `id`, which always is.
    OnlyNumber,
    /// Every path but `/pad`.
    NoPadding,
    /// Every path, and two composite indexes, one of them with `_ts`.
    Composite,
    /// No index. TTL must be off (T25).
    None,
}

/// What a client stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    /// Its `id`.
    pub(crate) id: String,
    /// Its partition key, one of the pool's.
    pub(crate) key: usize,
    /// Its `ttl`.
    pub(crate) ttl: Ttl,
    /// The value under the container's unique key; none = the property is missing, which is a value like any other.
    pub(crate) unique: Option<i64>,
    /// Something to patch and to query.
    pub(crate) number: i64,
    /// Length of a filler string, so that sizes differ.
    pub(crate) padding: usize,
    /// The value of the property that may hold the beginning of a countdown (T33).
    pub(crate) base: Option<Instant>,
    /// The value of the property that may hold the instant of expiry (T33).
    pub(crate) gone: Option<Instant>,
}

/// A value of a property that should hold a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instant {
    /// Seconds since 1970.
    Seconds(u64),
    /// A date as text.
    Date(u64),
    /// Something else.
    Nonsense,
}

impl Instant {
    /// Returns the beginning of a countdown: only a number is one.
    pub(crate) fn beginning(self) -> Option<u64> {
        match self {
            Instant::Seconds(seconds) => Some(seconds),
            Instant::Date(_) | Instant::Nonsense => None,
        }
    }

    /// Returns the instant of expiry.
    pub(crate) fn end(self) -> Option<u64> {
        match self {
            Instant::Seconds(seconds) | Instant::Date(seconds) => Some(seconds),
            Instant::Nonsense => None,
        }
    }
}

/// The values that the store chose for a version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp {
    /// Opaque text; empty while unknown.
    pub(crate) etag: String,
    /// The item's number; the same for all versions of one item, never used again.
    pub(crate) number: u64,
    /// The sequence of the write.
    pub(crate) sequence: u64,
}

impl Stamp {
    /// Returns `true` if a store's stamp can be this one.
    pub(crate) fn admits(&self, other: &Stamp) -> bool {
        if self.etag.is_empty() { self.number == other.number } else { self == other }
    }
}

/// How an operation names its item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Name {
    /// By id.
    Id(String),
    /// By item number.
    Number(u64),
}

/// A condition on the current version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Guard {
    /// None.
    None,
    /// `If-Match: etag`
    Match(String),
    /// `If-Match: *`
    Exists,
    /// `If-None-Match: etag`, on reads
    NoneMatch(String),
}

/// One patch operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    /// `set /ttl`
    SetTtl(Ttl),
    /// `remove /ttl`
    RemoveTtl,
    /// `incr /ttl`
    AddToTtl(i64),
    /// `set /n`
    SetNumber(i64),
    /// `incr /n`
    AddToNumber(i64),
    /// `set /u`
    SetUnique(i64),
}

/// One operation on one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Create.
    Create(Body),
    /// Upsert.
    Upsert(Body, Guard),
    /// Replace.
    Replace(Name, Body, Guard),
    /// Patch, with the condition `n = value`.
    Patch(Name, Vec<Edit>, Option<i64>, Guard),
    /// Delete.
    Delete(Name, Guard),
    /// Read.
    Read(Name, Guard),
}

impl Change {
    /// Returns `true` if T5 refuses the body that comes with it.
    pub(super) fn has_bad_body(&self) -> bool {
        match self {
            Change::Create(body) | Change::Upsert(body, _) | Change::Replace(_, body, _) => {
                matches!(body.ttl, Ttl::Bad(_))
            }
            Change::Patch(..) | Change::Delete(..) | Change::Read(..) => false,
        }
    }

    /// Returns the id of the item it is about, if it names one.
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Change::Create(body) | Change::Upsert(body, _) => Some(&body.id),
            Change::Replace(name, ..)
            | Change::Patch(name, ..)
            | Change::Delete(name, _)
            | Change::Read(name, _) => match name {
                Name::Id(id) => Some(id),
                Name::Number(_) => None,
            },
        }
    }
}

/// A setting that the owner of a container changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingChange {
    /// All versions are kept in the feed for so many minutes (T28).
    Feed(Option<u32>),
    /// Nothing may expire, be changed or deleted (T31).
    Hold(bool),
    /// `maxInstantExpiry`, in millionths (T30).
    Guard(Option<u32>),
    /// `maxPurgeDelay`, in seconds (T24).
    PurgeDelay(Option<u32>),
    /// An archive (T32) or a deletion record.
    Evidence(Evidence, bool),
    /// Items name the instant of their expiry (T33).
    Absolute(bool),
    /// Reads restart countdowns (T33).
    Sliding(bool),
}

/// What a write does to the countdown of what it replaces (T33).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Countdown {
    /// It begins again.
    #[default]
    Restart,
    /// It goes on.
    Keep,
}

/// Whether the caller consents to a change of rules that expires items at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// No.
    NotGiven,
    /// Yes.
    Given,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 201
    Created,
    /// 200 of a write
    Replaced,
    /// 204
    Deleted,
    /// 200 of a read
    Read,
    /// 304
    NotModified,
    /// 404
    NotFound,
    /// 409, the id
    IdTaken,
    /// 409, a unique key
    UniqueTaken,
    /// 412
    PreconditionFailed,
    /// 400, the ttl (T4, T5)
    BadTtl,
    /// 400, a patch that cannot be applied
    BadPatch,
    /// Refused until an operator has judged the clock (T34)
    ClockSuspect,
    /// The container is not there (any more)
    NoContainer,
    /// The setting was changed
    Changed,
    /// Refused because of a hold (T31)
    Held,
    /// Refused because too many would expire at once (T30)
    NotConfirmed,
    /// The feed does not reach back to the position of its reader (T28)
    HistoryGone,
    /// There is no feed of all versions
    NoFeed,
    /// The store takes no writes
    Unavailable,
    /// Every operation of a batch
    Batch(Vec<Answer>),
    /// The batch did nothing, because of this operation
    BatchFailed(usize, Box<Answer>),
    /// Something else that the model never expects
    Other(String),
}

impl Answer {
    /// Returns `true` if the sequence may have moved.
    pub(crate) fn may_take_a_sequence(&self) -> bool {
        self.is_write() || *self == Answer::Changed
    }

    /// Returns `true` if something changed that a client had stored.
    pub(crate) fn is_write(&self) -> bool {
        match self {
            Answer::Created | Answer::Replaced | Answer::Deleted => true,
            Answer::Batch(answers) => answers.iter().any(Answer::is_write),
            _ => false,
        }
    }
}
