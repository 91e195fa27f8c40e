//! Direct mode: the codec between the frames of RNTBD and the messages of `message/`.
//!
//! A frame is the same request as in HTTP with other bytes: `target` makes verb and path of its types and names,
//! `request` the options of its tokens, `answer` the tokens of an answer's fields. `incoming` finds the frames in a
//! connection's bytes, `working` the requests that wait, `outgoing` the answers until they are sent. The connection itself
//! is `service::over_direct`.

pub(crate) mod answer;
pub(crate) mod incoming;
pub(crate) mod outgoing;
pub(crate) mod payload;
pub(crate) mod request;
mod target;
pub(crate) mod working;
