//! The protocol's header names, spelled once.

use hyper::header::HeaderName;

macro_rules! names {
    ($($constant:ident = $name:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`")]
            pub(crate) const $constant: HeaderName = HeaderName::from_static($name);
        )*

        /// Returns whether the protocol defines this header.
        pub(crate) fn is_known(name: &HeaderName) -> bool {
            [$($constant),*].contains(name)
        }
    };
}

names! {
    A_IM = "a-im";
    CHANGE_FEED_WIRE_FORMAT = "x-ms-cosmos-changefeed-wire-format-version";
    ACTIVITY_ID = "x-ms-activity-id";
    API_VERSION = "x-ms-version";
    ALT_CONTENT_PATH = "x-ms-alt-content-path";
    AUTOPILOT = "x-ms-cosmos-offer-autopilot-settings";
    BATCH_ATOMIC = "x-ms-cosmos-batch-atomic";
    BATCH_CONTINUE = "x-ms-cosmos-batch-continue-on-error";
    BACKUP_SEQUENCE = "x-bolide-backup-sequence";
    BACKUP_TIME = "x-bolide-backup-time";
    CLIENT_ID = "x-ms-client-id";
    CONFIRM_EXPIRY = "x-bolide-confirm-expiry";
    EXPORT_COUNT = "x-bolide-export-count";
    EXPORT_NEXT = "x-bolide-export-next";
    LOG = "x-bolide-log";
    LOG_COUNT = "x-bolide-log-count";
    LOG_HEAD = "x-bolide-log-head";
    LOG_LAST = "x-bolide-log-last";
    CONSISTENCY = "x-ms-consistency-level";
    CONTENT_PATH = "x-ms-content-path";
    CONTENT_RESPONSE = "x-ms-cosmos-populate-content-response-on-write";
    CONTINUATION = "x-ms-continuation";
    CONTINUATION_LIMIT = "x-ms-documentdb-responsecontinuationtokenlimitinkb";
    CROSS_PARTITION = "x-ms-documentdb-query-enablecrosspartition";
    DATE = "x-ms-date";
    END_EPK = "x-ms-end-epk";
    EXCLUDE_SYSTEM_PROPERTIES = "x-ms-exclude-system-properties";
    EXPIRY_SECONDS = "x-ms-documentdb-expiry-seconds";
    FORCE_REFRESH = "x-ms-force-refresh";
    GATEWAY_VERSION = "x-ms-gatewayversion";
    GLOBAL_COMMITTED_LSN = "x-ms-global-committed-lsn";
    INDEXING_DIRECTIVE = "x-ms-indexing-directive";
    INDEX_METRICS = "x-ms-cosmos-populateindexmetrics";
    INDEX_METRICS_V2 = "x-ms-cosmos-populateindexmetrics-v2";
    INDEX_PROGRESS = "x-ms-documentdb-collection-index-transformation-progress";
    INDEX_UTILIZATION = "x-ms-cosmos-index-utilization";
    INTENDED_RID = "x-ms-cosmos-intended-collection-rid";
    IS_BATCH = "x-ms-cosmos-is-batch-request";
    IS_QUERY = "x-ms-documentdb-isquery";
    IS_QUERY_PLAN = "x-ms-cosmos-is-query-plan-request";
    IS_UPSERT = "x-ms-documentdb-is-upsert";
    ITEM_COUNT = "x-ms-item-count";
    ITEM_LLSN = "x-ms-cosmos-item-llsn";
    ITEM_LSN = "x-ms-item-lsn";
    KEEP_EXPIRY = "x-bolide-keep-expiry";
    LLSN = "x-ms-cosmos-llsn";
    LSN = "lsn";
    MAX_ITEM_COUNT = "x-ms-max-item-count";
    PARTITION_KEY = "x-ms-documentdb-partitionkey";
    PARTITION_STATISTICS = "x-ms-documentdb-populatepartitionstatistics";
    MIGRATE_TO_AUTOSCALE = "x-ms-cosmos-migrate-offer-to-autopilot";
    MIGRATE_TO_MANUAL = "x-ms-cosmos-migrate-offer-to-manual-throughput";
    MIN_THROUGHPUT = "x-ms-cosmos-min-throughput";
    POST_TRIGGER = "x-ms-documentdb-post-trigger-include";
    PREFER = "prefer";
    PRE_TRIGGER = "x-ms-documentdb-pre-trigger-include";
    QUERY_METRICS = "x-ms-documentdb-query-metrics";
    QUORUM_LLSN = "x-ms-cosmos-quorum-acked-llsn";
    QUORUM_LSN = "x-ms-quorum-acked-lsn";
    QUOTA_INFO = "x-ms-documentdb-populatequotainfo";
    RANGE_ID = "x-ms-documentdb-partitionkeyrangeid";
    READ_KEY_TYPE = "x-ms-read-key-type";
    REQUEST_CHARGE = "x-ms-request-charge";
    REQUEST_DURATION = "x-ms-request-duration-ms";
    RESOURCE_QUOTA = "x-ms-resource-quota";
    RESOURCE_USAGE = "x-ms-resource-usage";
    REPLACE_PENDING = "x-ms-offer-replace-pending";
    RETRY_AFTER_MS = "x-ms-retry-after-ms";
    SCHEMA_VERSION = "x-ms-schemaversion";
    SERVICE_VERSION = "x-ms-serviceversion";
    SERIALIZATION_FORMAT = "x-ms-documentdb-content-serialization-format";
    SESSION_TOKEN = "x-ms-session-token";
    SHARE_THROUGHPUT = "x-ms-share-throughput";
    START_EPK = "x-ms-start-epk";
    SUBSTATUS = "x-ms-substatus";
    SUPPORTED_FEATURES = "x-ms-cosmos-supported-query-features";
    SUPPORTED_FORMATS = "x-ms-cosmos-supported-serialization-formats";
    THROUGHPUT = "x-ms-offer-throughput";
    TTL_REMAINING = "x-bolide-ttl-remaining";
    WANT_QUERY_METRICS = "x-ms-documentdb-populatequerymetrics";
}
