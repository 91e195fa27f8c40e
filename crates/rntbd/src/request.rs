//! Requests: the tokens that a server understands.

use crate::ActivityId;
use crate::error::{Error, TooLong};
use crate::frame;
use crate::kinds::{
    ConsistencyLevel, IndexingDirective, OperationType, PriorityLevel, ReadFeedKeyType, ResourceType,
    ReturnPreference, SerializationFormat,
};
use crate::set::{self, WithPayload, token_set};

token_set! {
    /// The tokens of a request that a server understands; all others are skipped.
    /// Names stand here as they are, without any encoding. Where nothing is said below, a token has the content of the HTTP
    /// header that it replaces.
    /// takes the place.
    pub struct RequestTokens<'a> {
        /// The id of the collection as 8 bytes; in a request without names that of the resource, as 4, 8 or 16 bytes.
        0x0000 "resourceId" Bytes => resource_id: &'a [u8],
        /// As in HTTP, percent-encoding included.
        0x0001 "authorizationToken" String => authorization: &'a str,
        /// Present in every request that was read. [`Request::encode`] sets it.
        0x0002 "payloadPresent" Byte => payload_present: bool,
        0x0003 "date" SmallString => date: &'a str,
        /// -1 leaves the size to the server.
        0x0004 "pageSize" ULong => page_size: i32,
        0x0005 "sessionToken" String => session_token: &'a str,
        0x0006 "continuationToken" String => continuation: &'a str,
        0x0007 "indexingDirective" Byte => indexing_directive: IndexingDirective,
        /// `if-none-match` of `Read` and `ReadFeed`, where it also continues a change feed; `if-match` of all others.
        0x0008 "match" String => match_etag: &'a str,
        0x0009 "preTriggerInclude" String => pre_trigger_include: &'a str,
        0x000A "postTriggerInclude" String => post_trigger_include: &'a str,
        0x0010 "consistencyLevel" Byte => consistency_level: ConsistencyLevel,
        /// The path of the address that the client was given, without the slash at its end.
        0x0013 "replicaPath" String => replica_path: &'a str,
        0x0015 "databaseName" String => database_name: &'a str,
        0x0016 "collectionName" String => collection_name: &'a str,
        0x0017 "documentName" String => document_name: &'a str,
        0x0019 "userName" String => user_name: &'a str,
        0x001A "permissionName" String => permission_name: &'a str,
        0x001B "storedProcedureName" String => stored_procedure_name: &'a str,
        0x001C "userDefinedFunctionName" String => user_defined_function_name: &'a str,
        0x001D "triggerName" String => trigger_name: &'a str,
        0x001E "enableScanInQuery" Byte => enable_scan_in_query: bool,
        0x0020 "conflictName" String => conflict_name: &'a str,
        /// The version of the REST API, if it is not that of the context request.
        0x0028 "clientVersion" SmallString => client_version: &'a str,
        /// A JSON array.
        0x002B "partitionKey" String => partition_key: &'a str,
        0x002C "partitionKeyRangeId" String => partition_key_range_id: &'a str,
        /// The id of the collection that the client believes it addresses, in base64.
        0x0035 "collectionRid" String => collection_rid: &'a str,
        0x0036 "partitionKeyRangeName" String => partition_key_range_name: &'a str,
        0x003E "enableLogging" Byte => enable_logging: bool,
        0x003F "a_IM" String => a_im: &'a str,
        0x0042 "populateQueryMetrics" Byte => populate_query_metrics: bool,
        0x0043 "responseContinuationTokenLimitInKb" ULong => continuation_limit_kib: u32,
        0x0047 "ifModifiedSince" String => if_modified_since: &'a str,
        /// How long the client waits for an answer.
        0x0049 "remainingTimeInMsOnClientRequest" ULong => remaining_time_ms: u32,
        0x004A "clientRetryAttemptCount" ULong => client_retry_attempt_count: u32,
        0x004B "targetLsn" LongLong => target_lsn: i64,
        0x004C "targetGlobalCommittedLsn" LongLong => target_global_committed_lsn: i64,
        /// The number of the request in its connection, which the answer echoes.
        0x004D "transportRequestID" ULong => transport_request_id: u32,
        /// .NET calls it unsigned, Java signed.
        0x0059 "timeToLiveInSeconds" ULong | Long => time_to_live_seconds: i32,
        /// The hexadecimal digits as text. An empty start is left out.
        0x0062 "startEpk" Bytes => start_epk: &'a str,
        /// As `start_epk`.
        0x0063 "endEpk" Bytes => end_epk: &'a str,
        0x0064 "readFeedKeyType" Byte => read_feed_key_type: ReadFeedKeyType,
        0x0065 "contentSerializationFormat" Byte => content_serialization_format: SerializationFormat,
        0x0073 "isBatchAtomic" Byte => is_batch_atomic: bool,
        0x0074 "shouldBatchContinueOnError" Byte => should_batch_continue_on_error: bool,
        0x0075 "isBatchOrdered" Byte => is_batch_ordered: bool,
        0x0080 "clientEncryptionKeyName" String => client_encryption_key_name: &'a str,
        0x0082 "returnPreference" Byte => return_preference: ReturnPreference,
        0x009D "intendedCollectionRid" String => intended_collection_rid: &'a str,
        /// A set of bits.
        0x00A2 "sDKSupportedCapabilities" ULong => sdk_supported_capabilities: u32,
        0x00A9 "populateIndexMetrics" Byte => populate_index_metrics: bool,
        0x00B0 "correlatedActivityId" Guid => correlated_activity_id: ActivityId,
        0x00B2 "changeFeedWireFormatVersion" String => change_feed_wire_format_version: &'a str,
        0x00BF "priorityLevel" Byte => priority_level: PriorityLevel,
        0x00C2 "populateIndexMetricsV2" Byte => populate_index_metrics_v2: bool,
        /// A set of bits: 1 JSON text, 2 binary JSON, 4 `HybridRow`. JSON text may always be answered.
        0x00C4 "supportedSerializationFormats" Byte => supported_serialization_formats: u8,
        0x00C8 "optimisticDirectExecute" Byte => optimistic_direct_execute: bool,
        0x00DB "throughputBucket" Byte => throughput_bucket: u8,
    }
}

impl<'a> RequestTokens<'a> {
    /// Reads the tokens of a request: the bytes of the frame behind its head.
    ///
    /// Unknown tokens are skipped. A token that cannot be used refuses the request and leaves the connection in step; only a
    /// frame that does not say where it ends, or whether a payload follows, breaks the connection.
    pub fn decode(tokens: &'a [u8]) -> Result<Self, Error> {
        set::decode_with_payload(tokens)
    }

    /// Returns whether a payload follows the frame.
    pub fn has_payload(&self) -> bool {
        self.payload_present == Some(true)
    }
}

impl<'a> WithPayload<'a> for RequestTokens<'a> {
    const PAYLOAD_PRESENT: u16 = 0x0002;

    fn payload_present(&self) -> Option<bool> {
        self.payload_present
    }

    fn transport_request_id(&self) -> Option<u32> {
        self.transport_request_id
    }
}

/// A request that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request<'a> {
    /// The type of its resource.
    pub resource_type: ResourceType,
    /// The operation.
    pub operation_type: OperationType,
    /// The id that the answer echoes.
    pub activity_id: ActivityId,
    /// Everything else.
    pub tokens: RequestTokens<'a>,
}

impl Request<'_> {
    /// Appends the frame and its payload. On an error nothing is appended.
    pub fn encode(&self, payload: Option<&[u8]>, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let tokens = RequestTokens { payload_present: Some(payload.is_some()), ..self.tokens };
        let [low, high] = self.resource_type.number().to_le_bytes();
        let [operation_low, operation_high] = self.operation_type.number().to_le_bytes();
        let kind = [low, high, operation_low, operation_high];
        frame::write(kind, self.activity_id, &tokens, payload.map(<[u8]>::len), out)?;
        out.extend_from_slice(payload.unwrap_or_default());
        Ok(())
    }
}
