//! A session: the requests and answers of a connection, without the connection.

use std::io;

use rntbd::{
    ActivityId, AnswerHead, AnswerTokens, Broken, ContextAnswer, ContextRequest, HEAD_BYTES,
    PAYLOAD_LENGTH_BYTES, Request, payload_bytes,
};

use crate::call::Call;
use crate::signature::sign_link;

/// The longest frame of an answer.
const FRAME_BYTES_MAX: usize = 1 << 20;
/// The longest payload of an answer.
const PAYLOAD_BYTES_MAX: usize = 1 << 26;

/// The account that requests are signed for.
#[derive(Debug, Clone)]
pub struct Account {
    /// The key, in base64.
    pub key: String,
    /// The date, as RFC 1123 has it. The test knows which one the server accepts.
    pub date: String,
}

/// The requests of a connection: signs and numbers them.
#[derive(Debug)]
pub struct Session {
    account: Account,
    /// How many requests there have been.
    requests: u32,
}

impl Session {
    /// Returns a session of an account.
    pub fn new(account: Account) -> Self {
        Self { account, requests: 0 }
    }

    /// Changes the date of the requests that follow.
    pub fn set_date(&mut self, date: &str) {
        date.clone_into(&mut self.account.date);
    }

    /// Returns the bytes that open the connection.
    pub fn context(&self) -> io::Result<Vec<u8>> {
        let context = ContextRequest {
            protocol_version: Some(1),
            client_version: Some("2020-07-15"),
            user_agent: Some("bolide-direct"),
            ..ContextRequest::default()
        };
        let mut out = Vec::new();
        context.encode(ActivityId::default(), &mut out).map_err(invalid)?;
        Ok(out)
    }

    /// Returns the number of the next request, and its bytes.
    ///
    /// What the call does not have is added: authorization, date, the path of a replica, a deadline, a number.
    pub fn request(&mut self, call: &Call<'_>) -> io::Result<(u32, Vec<u8>)> {
        self.requests += 1;
        let mut tokens = call.tokens;
        let (kind, link) = call.signed();
        let date = tokens.date.unwrap_or(&self.account.date);
        let authorization = sign_link(call.verb(), kind, &link, date, &self.account.key);
        tokens.date = Some(date);
        tokens.authorization = Some(tokens.authorization.unwrap_or(&authorization));
        tokens.replica_path = Some(tokens.replica_path.unwrap_or("/0/1p"));
        tokens.remaining_time_ms = Some(tokens.remaining_time_ms.unwrap_or(30_000));
        let number = tokens.transport_request_id.unwrap_or(self.requests);
        tokens.transport_request_id = Some(number);
        let Call { resource_type, operation_type, payload, .. } = *call;
        let activity_id = ActivityId((u128::from(number) << 64 | 1).to_le_bytes());
        let mut out = Vec::new();
        Request { resource_type, operation_type, activity_id, tokens }
            .encode(payload, &mut out)
            .map_err(invalid)?;
        Ok((number, out))
    }
}

/// The server's description of itself when a connection is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// 200, or why the connection is refused.
    pub status: u32,
    /// The id of the context request.
    pub activity_id: ActivityId,
    /// The server's name, without which the vendor's clients fail.
    pub server_agent: Option<String>,
    /// The server's version, likewise.
    pub server_version: Option<String>,
    /// The error, if the connection is refused.
    pub payload: Option<Vec<u8>>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u32,
    /// The id of the request.
    pub activity_id: ActivityId,
    /// The number of the request.
    pub number: Option<u32>,
    /// The bytes of the tokens, already checked.
    tokens: Vec<u8>,
    /// The body.
    pub payload: Option<Vec<u8>>,
}

impl Reply {
    /// Returns the tokens.
    pub fn tokens(&self) -> AnswerTokens<'_> {
        AnswerTokens::decode(&self.tokens).expect("they were read before")
    }

    /// Returns the body as text, empty if there is none.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.payload.as_deref().unwrap_or_default()).into_owned()
    }

    /// Returns the answer, if it has this status.
    #[track_caller]
    #[must_use]
    pub fn expect_status(self, status: u32) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

/// The answers of a connection, whose bytes arrive in pieces of any size.
#[derive(Debug, Default)]
pub struct Answers {
    received: Vec<u8>,
}

/// A frame with what follows it, and how many bytes both have.
struct Frame<'a> {
    head: AnswerHead,
    tokens: &'a [u8],
    payload: Option<&'a [u8]>,
    bytes: usize,
}

impl Answers {
    /// Takes bytes of the connection.
    pub fn push(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// Returns whether the connection may end here: no answer has begun.
    pub fn is_between(&self) -> bool {
        self.received.is_empty()
    }

    /// Returns the answer to the context request, or nothing if more bytes are needed.
    pub fn greeting(&mut self) -> io::Result<Option<Greeting>> {
        let frame = self.frame(|head, _| Ok(!(200..400).contains(&head.status)))?;
        let Some(Frame { head, tokens, payload, bytes }) = frame else { return Ok(None) };
        let tokens = ContextAnswer::decode(tokens).map_err(invalid)?;
        let greeting = Greeting {
            status: head.status,
            activity_id: head.activity_id,
            server_agent: tokens.server_agent.map(str::to_owned),
            server_version: tokens.server_version.map(str::to_owned),
            payload: payload.map(<[u8]>::to_vec),
        };
        self.received.drain(..bytes);
        Ok(Some(greeting))
    }

    /// Returns the next answer, or nothing if more bytes are needed.
    pub fn reply(&mut self) -> io::Result<Option<Reply>> {
        let frame =
            self.frame(|_, tokens| Ok(AnswerTokens::decode(tokens).map_err(invalid)?.has_payload()))?;
        let Some(Frame { head, tokens, payload, bytes }) = frame else { return Ok(None) };
        let reply = Reply {
            status: head.status,
            activity_id: head.activity_id,
            number: AnswerTokens::decode(tokens).map_err(invalid)?.transport_request_id,
            tokens: tokens.to_vec(),
            payload: payload.map(<[u8]>::to_vec),
        };
        self.received.drain(..bytes);
        Ok(Some(reply))
    }

    /// Returns the frame that has been received, if it is whole; `follows` says whether a payload does.
    fn frame(
        &self,
        follows: impl FnOnce(&AnswerHead, &[u8]) -> io::Result<bool>,
    ) -> io::Result<Option<Frame<'_>>> {
        let Some(head) = AnswerHead::parse(&self.received, FRAME_BYTES_MAX).map_err(broken)? else {
            return Ok(None);
        };
        let Some((frame, rest)) = self.received.split_at_checked(head.frame_bytes) else { return Ok(None) };
        let tokens = &frame[HEAD_BYTES..];
        if !follows(&head, tokens)? {
            return Ok(Some(Frame { head, tokens, payload: None, bytes: frame.len() }));
        }
        let Some(length) = payload_bytes(rest, PAYLOAD_BYTES_MAX).map_err(broken)? else { return Ok(None) };
        let Some(payload) = rest[PAYLOAD_LENGTH_BYTES..].get(..length) else { return Ok(None) };
        let bytes = frame.len() + PAYLOAD_LENGTH_BYTES + length;
        Ok(Some(Frame { head, tokens, payload: Some(payload), bytes }))
    }
}

fn broken(broken: Broken) -> io::Error {
    invalid(broken)
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
