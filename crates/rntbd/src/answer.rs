//! Answers: the tokens that a server sends.

use crate::ActivityId;
use crate::error::{Error, TooLong};
use crate::frame;
use crate::set::{self, WithPayload, token_set};

token_set! {
    /// The tokens of an answer. Java reads each with the type of its own table, so the types here are exact.
    pub struct AnswerTokens<'a> {
        /// Present in every answer that was read. [`Answer::encode`] sets it.
        0x0000 "payloadPresent" Byte => payload_present: bool,
        /// The number of the request. Without it clients wait in vain.
        0x0035 "transportRequestID" ULong => transport_request_id: u32,
        0x0002 "lastStateChangeDateTime" SmallString => last_state_change: &'a str,
        0x0003 "continuationToken" String => continuation: &'a str,
        /// Also where a change feed goes on: .NET requires it there.
        0x0004 "eTag" String => etag: &'a str,
        0x000C "retryAfterMilliseconds" ULong => retry_after_ms: u32,
        0x000E "storageMaxResoureQuota" String => resource_quota: &'a str,
        0x000F "storageResourceQuotaUsage" String => resource_usage: &'a str,
        0x0010 "schemaVersion" SmallString => schema_version: &'a str,
        /// On every answer, errors too: Java builds its exceptions from it.
        0x0013 "LSN" LongLong => lsn: i64,
        /// On every feed and query. .NET requires it in a change feed.
        0x0014 "itemCount" ULong => item_count: u32,
        0x0015 "requestCharge" Double => request_charge: f64,
        0x0017 "ownerFullName" String => owner_full_name: &'a str,
        0x0018 "ownerId" String => owner_id: &'a str,
        0x001A "quorumAckedLSN" LongLong => quorum_acked_lsn: i64,
        0x001C "subStatus" ULong => substatus: u32,
        0x001D "collectionUpdateProgress" ULong => collection_update_progress: u32,
        0x001E "currentWriteQuorum" ULong => current_write_quorum: u32,
        /// Needed at `Strong` and `BoundedStaleness`, and by reads of the master partition.
        0x001F "currentReplicaSetSize" ULong => current_replica_set_size: u32,
        0x0021 "partitionKeyRangeId" String => partition_key_range_id: &'a str,
        0x0025 "logResults" String => log_results: &'a str,
        0x0026 "xpRole" ULong => xp_role: u32,
        0x0028 "queryMetrics" String => query_metrics: &'a str,
        0x0029 "globalCommittedLSN" LongLong => global_committed_lsn: i64,
        /// More than 0 makes clients at Strong wait for other regions.
        0x0030 "numberOfReadRegions" ULong => number_of_read_regions: u32,
        0x0032 "itemLSN" LongLong => item_lsn: i64,
        0x0038 "disableRntbdChannel" Byte => disable_rntbd_channel: bool,
        0x0039 "serverDateTimeUtc" SmallString => server_date_time_utc: &'a str,
        /// Without it clients at Session read items again that are not found.
        0x003A "localLSN" LongLong => local_lsn: i64,
        /// Equal to `local_lsn`, or clients send barriers.
        0x003B "quorumAckedLocalLSN" LongLong => quorum_acked_local_lsn: i64,
        0x003C "itemLocalLSN" LongLong => item_local_lsn: i64,
        0x003E "sessionToken" String => session_token: &'a str,
        0x0044 "indexUtilization" String => index_utilization: &'a str,
        0x0045 "queryExecutionInfo" String => query_execution_info: &'a str,
        0x0051 "backendRequestDurationMilliseconds" Double => request_duration_ms: f64,
        0x0052 "correlatedActivityId" Guid => correlated_activity_id: ActivityId,
    }
}

impl<'a> AnswerTokens<'a> {
    /// Reads the tokens of an answer: the bytes of the frame behind its head.
    pub fn decode(tokens: &'a [u8]) -> Result<Self, Error> {
        set::decode_with_payload(tokens)
    }

    /// Returns whether a payload follows the frame.
    pub fn has_payload(&self) -> bool {
        self.payload_present == Some(true)
    }
}

impl<'a> WithPayload<'a> for AnswerTokens<'a> {
    const PAYLOAD_PRESENT: u16 = 0x0000;

    fn payload_present(&self) -> Option<bool> {
        self.payload_present
    }

    fn transport_request_id(&self) -> Option<u32> {
        self.transport_request_id
    }
}

/// An answer that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer<'a> {
    /// The HTTP status.
    pub status: u32,
    /// The id of the request.
    pub activity_id: ActivityId,
    /// Everything else.
    pub tokens: AnswerTokens<'a>,
}

impl Answer<'_> {
    /// Appends the frame and its payload. On an error nothing is appended.
    pub fn encode(&self, payload: Option<&[u8]>, out: &mut Vec<u8>) -> Result<(), TooLong> {
        self.encode_head(payload.map(<[u8]>::len), out)?;
        out.extend_from_slice(payload.unwrap_or_default());
        Ok(())
    }

    /// Appends the frame and the length of its payload, which the caller writes next. On an error nothing is appended.
    pub fn encode_head(&self, payload_bytes: Option<usize>, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let tokens = AnswerTokens { payload_present: Some(payload_bytes.is_some()), ..self.tokens };
        frame::write(self.status.to_le_bytes(), self.activity_id, &tokens, payload_bytes, out)
    }
}
