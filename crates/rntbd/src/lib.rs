//! RNTBD, the binary protocol of Cosmos DB's direct mode: frames, tokens and their tables.
//!
//! The default of the .NET and Java clients. After TLS a connection begins with a context request and its answer; then
//! requests and answers follow, many at once and answers in any order.
//!
//! ```text
//! request    u32 length, u16 resource type, u16 operation type, 16 bytes activity id, tokens
//! answer     u32 length, u32 status,                            16 bytes activity id, tokens
//! token      u16 id, u8 type, value
//! payload    u32 length, bytes: behind the frame, if one of its tokens says so
//! ```
//!
//! The length of a frame counts itself and the tokens, not the payload. Integers are little-endian.
//!
//! Each set of tokens is one table of rows (id, name, type, field) from which reading and writing are both made:
//! [`RequestTokens`], [`AnswerTokens`], [`ContextRequest`], [`ContextAnswer`]. Both sides of the protocol are here: a server
//! reads requests and writes answers, a test client does the reverse with the same types.
//!
//! The crate does no I/O and has no dependencies. Every length is compared with a limit of the caller's or with the bytes that
//! are there before it is used; texts and bytes are slices of the input, and nothing is allocated in reading.

mod activity_id;
mod answer;
mod context;
mod error;
mod frame;
mod kinds;
mod request;
mod set;
mod token;

pub use activity_id::ActivityId;
pub use answer::{Answer, AnswerTokens};
pub use context::{ContextAnswer, ContextRequest};
pub use error::{Broken, Error, Refusal, Refused, TooLong};
pub use frame::{AnswerHead, HEAD_BYTES, PAYLOAD_LENGTH_BYTES, Protocol, RequestHead, payload_bytes};
pub use kinds::{
    ConsistencyLevel, IndexingDirective, Kind, OperationType, PriorityLevel, ReadFeedKeyType, ResourceType,
    ReturnPreference, SerializationFormat,
};
pub use request::{Request, RequestTokens};
