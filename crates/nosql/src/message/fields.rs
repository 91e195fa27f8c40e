//! The fields of an answer beside its status and body: one table, with the headers that carry each in HTTP. `direct/`
//! carries the same fields as tokens.

use std::fmt::{Display, Write as _};

use bytes::{Bytes, BytesMut};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName};

use crate::protocol::headers;

macro_rules! fields {
    ($($name:ident => [$($header:expr),*];)*) => {
        /// A field of an answer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Field {
            $(#[doc = stringify!($($header),*)] $name,)*
        }

        impl Field {
            /// Returns the headers that carry the field.
            pub(crate) fn headers(self) -> &'static [HeaderName] {
                match self {
                    $(Field::$name => {
                        static NAMES: [HeaderName; [$(stringify!($header)),*].len()] = [$($header),*];
                        &NAMES
                    })*
                }
            }
        }
    };
}

fields! {
    ContentType => [CONTENT_TYPE];
    Etag => [ETAG];
    Substatus => [headers::SUBSTATUS];
    RetryAfterMs => [headers::RETRY_AFTER_MS];

    ItemCount => [headers::ITEM_COUNT];
    Continuation => [headers::CONTINUATION];
    QueryMetrics => [headers::QUERY_METRICS];
    IndexUtilization => [headers::INDEX_UTILIZATION];
    TtlRemaining => [headers::TTL_REMAINING];

    // The origin of the answer. There is one replica: everything it has is acknowledged and committed everywhere.
    SessionToken => [headers::SESSION_TOKEN];
    RangeId => [headers::RANGE_ID];
    OwnerPath => [headers::ALT_CONTENT_PATH];
    OwnerRid => [headers::CONTENT_PATH];
    Lsn => [headers::LSN, headers::LLSN, headers::QUORUM_LSN, headers::QUORUM_LLSN, headers::GLOBAL_COMMITTED_LSN];
    ItemLsn => [headers::ITEM_LSN, headers::ITEM_LLSN];

    IndexProgress => [headers::INDEX_PROGRESS];
    ResourceQuota => [headers::RESOURCE_QUOTA];
    ResourceUsage => [headers::RESOURCE_USAGE];
    MinThroughput => [headers::MIN_THROUGHPUT];
    ShareThroughput => [headers::SHARE_THROUGHPUT];
    ReplacePending => [headers::REPLACE_PENDING];

    // Of the admin API.
    BackupSequence => [headers::BACKUP_SEQUENCE];
    BackupTime => [headers::BACKUP_TIME];
    ExportCount => [headers::EXPORT_COUNT];
    ExportNext => [headers::EXPORT_NEXT];
    Log => [headers::LOG];
    LogCount => [headers::LOG_COUNT];
    LogHead => [headers::LOG_HEAD];
    LogLast => [headers::LOG_LAST];
    CacheControl => [CACHE_CONTROL];
}

/// The value of a field.
#[derive(Debug, Clone)]
pub(crate) enum FieldValue {
    Number(u64),
    Static(&'static str),
    Text(Bytes),
}

impl FieldValue {
    /// Returns the text; a number has none.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            FieldValue::Number(_) => None,
            FieldValue::Static(text) => Some(text),
            FieldValue::Text(text) => std::str::from_utf8(text).ok(),
        }
    }

    /// Returns the number, also of a text that is one.
    pub(crate) fn as_number(&self) -> Option<u64> {
        match self {
            FieldValue::Number(number) => Some(*number),
            FieldValue::Static(_) | FieldValue::Text(_) => self.as_text()?.parse().ok(),
        }
    }
}

/// The fields of an answer under construction. Their text is in one piece of memory: an answer has some twelve.
#[derive(Debug)]
pub(crate) struct Fields {
    list: Vec<(Field, FieldValue)>,
    text: BytesMut,
}

impl Default for Fields {
    fn default() -> Self {
        Self { list: Vec::with_capacity(12), text: BytesMut::with_capacity(384) }
    }
}

impl Fields {
    /// Sets a field to a text.
    pub(crate) fn text(&mut self, field: Field, value: impl Display) {
        if write!(self.text, "{value}").is_ok() {
            let text = self.text.split().freeze();
            self.set(field, FieldValue::Text(text));
        }
    }

    /// Sets a field.
    pub(crate) fn set(&mut self, field: Field, value: FieldValue) {
        match self.list.iter_mut().find(|(present, _)| *present == field) {
            Some((_, before)) => *before = value,
            None => self.list.push((field, value)),
        }
    }

    /// Removes a field; returns whether it was set.
    pub(crate) fn remove(&mut self, field: Field) -> bool {
        let before = self.list.len();
        self.list.retain(|(present, _)| *present != field);
        self.list.len() < before
    }

    /// Returns the fields that are set.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Field, &FieldValue)> {
        self.list.iter().map(|(field, value)| (*field, value))
    }
}

impl IntoIterator for Fields {
    type Item = (Field, FieldValue);
    type IntoIter = std::vec::IntoIter<(Field, FieldValue)>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}
