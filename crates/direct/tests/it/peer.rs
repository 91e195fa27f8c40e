//! The other end of a connection, played by the test.

use rntbd::{
    ActivityId, Answer, AnswerTokens, ContextAnswer, ContextRequest, HEAD_BYTES, PAYLOAD_LENGTH_BYTES,
    RequestHead, RequestTokens, payload_bytes,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A server that only does what the test calls.
pub(crate) struct Peer<S>(pub(crate) S);

/// A request as it came.
pub(crate) struct Asked {
    pub(crate) head: RequestHead,
    tokens: Vec<u8>,
    pub(crate) payload: Option<Vec<u8>>,
}

impl Asked {
    pub(crate) fn tokens(&self) -> RequestTokens<'_> {
        RequestTokens::decode(&self.tokens).unwrap()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    async fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).await.unwrap();
        bytes
    }

    async fn frame(&mut self) -> (RequestHead, Vec<u8>) {
        let head = self.bytes(HEAD_BYTES).await;
        let head = RequestHead::parse(&head, 1 << 16).unwrap().unwrap();
        let tokens = self.bytes(head.frame_bytes - HEAD_BYTES).await;
        (head, tokens)
    }

    /// Reads a context request and lets the client in.
    pub(crate) async fn welcome(&mut self) {
        let (head, tokens) = self.frame().await;
        assert!(head.is_context());
        assert_eq!(ContextRequest::decode(&tokens).unwrap().client_version, Some("2020-07-15"));
        let context = ContextAnswer {
            protocol_version: Some(1),
            server_agent: Some("peer"),
            server_version: Some("1"),
            ..ContextAnswer::default()
        };
        let mut out = Vec::new();
        context.encode(head.activity_id, &mut out).unwrap();
        self.write(&out).await;
    }

    /// Reads a context request and refuses it.
    pub(crate) async fn turn_away(&mut self) {
        let (head, _) = self.frame().await;
        let mut out = Vec::new();
        ContextAnswer::default().encode_refusal(400, head.activity_id, b"{\"code\":1}", &mut out).unwrap();
        self.write(&out).await;
    }

    pub(crate) async fn request(&mut self) -> Asked {
        let (head, tokens) = self.frame().await;
        let mut payload = None;
        if RequestTokens::decode(&tokens).unwrap().has_payload() {
            let length = self.bytes(PAYLOAD_LENGTH_BYTES).await;
            payload = Some(self.bytes(payload_bytes(&length, 1 << 20).unwrap().unwrap()).await);
        }
        Asked { head, tokens, payload }
    }

    /// Answers a request with a number of its own as LSN.
    pub(crate) async fn answer(&mut self, asked: &Asked, status: u32, payload: Option<&[u8]>) {
        let transport_request_id = asked.tokens().transport_request_id;
        let lsn = transport_request_id.map(i64::from);
        let tokens = AnswerTokens { transport_request_id, lsn, ..AnswerTokens::default() };
        let activity_id: ActivityId = asked.head.activity_id;
        let mut out = Vec::new();
        Answer { status, activity_id, tokens }.encode(payload, &mut out).unwrap();
        self.write(&out).await;
    }

    async fn write(&mut self, bytes: &[u8]) {
        // In pieces, so that no frame comes whole.
        for piece in bytes.chunks(7) {
            self.0.write_all(piece).await.unwrap();
            self.0.flush().await.unwrap();
        }
    }
}
