//! The first exchange of a connection, in which both sides identify themselves.

use crate::ActivityId;
use crate::error::{Error, TooLong};
use crate::frame;
use crate::set::{self, token_set};

token_set! {
    /// The first frame of a client. No payload follows it.
    pub struct ContextRequest<'a> {
        0x0000 "protocolVersion" ULong => protocol_version: u32,
        /// The version of the REST API, as in `x-ms-version`, for all requests of the connection.
        0x0001 "clientVersion" SmallString => client_version: &'a str,
        0x0002 "userAgent" SmallString => user_agent: &'a str,
        /// 0 is anonymous.
        0x0003 "callerId" Byte => caller_id: u8,
        0x0004 "enableChannelMultiplexing" Byte => enable_channel_multiplexing: bool,
    }
}

token_set! {
    /// The answer to the context request. Clients need the agent and the version of the server.
    pub struct ContextAnswer<'a> {
        0x0000 "protocolVersion" ULong => protocol_version: u32,
        0x0001 "clientVersion" SmallString => client_version: &'a str,
        0x0002 "serverAgent" SmallString => server_agent: &'a str,
        0x0003 "serverVersion" SmallString => server_version: &'a str,
        0x0004 "idleTimeoutInSeconds" ULong => idle_timeout_seconds: u32,
        0x0005 "unauthenticatedTimeoutInSeconds" ULong => unauthenticated_timeout_seconds: u32,
    }
}

impl<'a> ContextRequest<'a> {
    /// Reads the tokens of a context request: the bytes of the frame behind its head.
    pub fn decode(tokens: &'a [u8]) -> Result<Self, Error> {
        set::decode(tokens)
    }

    /// Appends the frame. On an error nothing is appended.
    pub fn encode(&self, activity_id: ActivityId, out: &mut Vec<u8>) -> Result<(), TooLong> {
        frame::write([0; 4], activity_id, self, None, out)
    }
}

impl<'a> ContextAnswer<'a> {
    /// Reads the tokens of the answer to a context request: the bytes of the frame behind its head.
    pub fn decode(tokens: &'a [u8]) -> Result<Self, Error> {
        set::decode(tokens)
    }

    /// Appends the frame of an answer that opens the connection. On an error nothing is appended.
    pub fn encode(&self, activity_id: ActivityId, out: &mut Vec<u8>) -> Result<(), TooLong> {
        frame::write(200_u32.to_le_bytes(), activity_id, self, None, out)
    }

    /// Appends the frame of an answer that refuses the connection with a status of 400 or more, and the error as JSON, which
    /// clients expect although no token says so. On an error nothing is appended.
    pub fn encode_refusal(
        &self,
        status: u32,
        activity_id: ActivityId,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), TooLong> {
        frame::write(status.to_le_bytes(), activity_id, self, Some(payload.len()), out)?;
        out.extend_from_slice(payload);
        Ok(())
    }
}
