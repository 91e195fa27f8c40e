//! The options of a request beside its verb, its path and its body: one table, with the header that carries each in HTTP.
//! Direct mode carries them as tokens, which its codec types ([`TypedOptions`]).
//!
//! Header text is untrusted and clients disagree about spelling (`True`, `true`), so an option is parsed when it is used. A
//! known option without a valid value is refused; unknown headers are ignored, as the service does.

use hyper::HeaderMap;
use hyper::header::{
    AUTHORIZATION, CONTENT_TYPE, DATE, HOST, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
};

use crate::protocol::error::Error;
use crate::protocol::headers;

macro_rules! options {
    ($(#[$about:meta])* $kind:ident: $($name:ident => $header:expr;)*) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $kind {
            $(#[doc = stringify!($header)] $name,)*
        }

        impl $kind {
            /// Returns the header that carries the option.
            pub(crate) fn header(self) -> HeaderName {
                match self {
                    $($kind::$name => $header,)*
                }
            }
        }
    };
}

options! {
    /// An option that is a text.
    TextOption:
    AIm => headers::A_IM;
    ApiVersion => headers::API_VERSION;
    Authorization => AUTHORIZATION;
    Autopilot => headers::AUTOPILOT;
    ChangeFeedWireFormat => headers::CHANGE_FEED_WIRE_FORMAT;
    ClientId => headers::CLIENT_ID;
    Consistency => headers::CONSISTENCY;
    ContentResponse => headers::CONTENT_RESPONSE;
    ContentType => CONTENT_TYPE;
    Continuation => headers::CONTINUATION;
    ContinuationLimit => headers::CONTINUATION_LIMIT;
    Date => DATE;
    EndEpk => headers::END_EPK;
    ExpirySeconds => headers::EXPIRY_SECONDS;
    Host => HOST;
    IfMatch => IF_MATCH;
    IfModifiedSince => IF_MODIFIED_SINCE;
    IfNoneMatch => IF_NONE_MATCH;
    IndexingDirective => headers::INDEXING_DIRECTIVE;
    IntendedRid => headers::INTENDED_RID;
    MaxItemCount => headers::MAX_ITEM_COUNT;
    MsDate => headers::DATE;
    PartitionKey => headers::PARTITION_KEY;
    PostTrigger => headers::POST_TRIGGER;
    PreTrigger => headers::PRE_TRIGGER;
    Prefer => headers::PREFER;
    RangeId => headers::RANGE_ID;
    ReadKeyType => headers::READ_KEY_TYPE;
    SerializationFormat => headers::SERIALIZATION_FORMAT;
    SessionToken => headers::SESSION_TOKEN;
    StartEpk => headers::START_EPK;
    SupportedFeatures => headers::SUPPORTED_FEATURES;
    SupportedFormats => headers::SUPPORTED_FORMATS;
    Throughput => headers::THROUGHPUT;
}

options! {
    /// An option that is true or false.
    Flag:
    BatchAtomic => headers::BATCH_ATOMIC;
    BatchContinue => headers::BATCH_CONTINUE;
    ConfirmExpiry => headers::CONFIRM_EXPIRY;
    CrossPartition => headers::CROSS_PARTITION;
    ExcludeSystemProperties => headers::EXCLUDE_SYSTEM_PROPERTIES;
    ForceRefresh => headers::FORCE_REFRESH;
    IndexMetrics => headers::INDEX_METRICS;
    IndexMetricsV2 => headers::INDEX_METRICS_V2;
    IsBatch => headers::IS_BATCH;
    IsQuery => headers::IS_QUERY;
    IsQueryPlan => headers::IS_QUERY_PLAN;
    IsUpsert => headers::IS_UPSERT;
    KeepExpiry => headers::KEEP_EXPIRY;
    MigrateToAutoscale => headers::MIGRATE_TO_AUTOSCALE;
    MigrateToManual => headers::MIGRATE_TO_MANUAL;
    PartitionStatistics => headers::PARTITION_STATISTICS;
    QueryMetrics => headers::WANT_QUERY_METRICS;
    QuotaInfo => headers::QUOTA_INFO;
}

/// The options of a request, as received.
#[derive(Debug)]
pub(crate) enum Options {
    /// In HTTP.
    Headers(HeaderMap),
    /// In direct mode.
    Typed(TypedOptions),
}

/// Options that a codec has typed.
#[derive(Debug, Default)]
pub(crate) struct TypedOptions {
    texts: Vec<(TextOption, Box<str>)>,
    flags: Vec<Flag>,
}

impl TypedOptions {
    /// Sets a text, if there is one.
    pub(crate) fn text(&mut self, option: TextOption, text: Option<impl Into<Box<str>>>) {
        self.texts.extend(text.map(|text| (option, text.into())));
    }

    /// Sets a flag.
    pub(crate) fn flag(&mut self, flag: Flag, value: Option<bool>) {
        if value == Some(true) {
            self.flags.push(flag);
        }
    }
}

impl Options {
    /// Returns an option as text.
    pub(crate) fn text(&self, option: TextOption) -> Option<&str> {
        match self {
            Options::Headers(map) => {
                map.get(option.header()).and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
            }
            Options::Typed(options) => {
                options.texts.iter().find(|(given, _)| *given == option).map(|(_, text)| &**text)
            }
        }
    }

    /// Returns a flag, ignoring case; absent or empty is false.
    pub(crate) fn flag(&self, flag: Flag) -> Result<bool, Error> {
        let map = match self {
            Options::Headers(map) => map,
            Options::Typed(options) => return Ok(options.flags.contains(&flag)),
        };
        let header = flag.header();
        let text = map.get(&header).map_or("", |value| std::str::from_utf8(value.as_bytes()).unwrap_or("?"));
        match text.trim() {
            "" => Ok(false),
            text if text.eq_ignore_ascii_case("true") => Ok(true),
            text if text.eq_ignore_ascii_case("false") => Ok(false),
            text => Err(bad_value(&header, text, "true or false")),
        }
    }

    /// Refuses an option unless it is absent or one of these words, ignoring case.
    pub(crate) fn one_of(&self, option: TextOption, words: &[&str]) -> Result<(), Error> {
        match self.text(option).map(str::trim) {
            None | Some("") => Ok(()),
            Some(text) if words.iter().any(|word| word.eq_ignore_ascii_case(text)) => Ok(()),
            Some(text) => Err(bad_option(option, text, &words.join(", "))),
        }
    }
}

/// Returns whether a header carries an option, so that its text must be valid.
pub(crate) fn is_known(name: &HeaderName) -> bool {
    let standard = [CONTENT_TYPE, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH];
    headers::is_known(name) || standard.contains(name)
}

/// Returns the error for an option with an invalid value.
pub(crate) fn bad_option(option: TextOption, text: &str, expected: &str) -> Error {
    bad_value(&option.header(), text, expected)
}

/// Returns the error for a header with an invalid value.
pub(crate) fn bad_value(name: &HeaderName, text: &str, expected: &str) -> Error {
    let shown: String = text.chars().take(100).collect();
    Error::BadRequest(format!("The value '{shown}' specified for '{name}' is invalid: expected {expected}."))
}
