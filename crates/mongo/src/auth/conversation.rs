//! A SASL conversation: what `saslStart`, `saslContinue` and the first hello share.
//!
//! Whatever is wrong, clients hear the same words, and an unknown user gets as far as one with a wrong password: the salt that
//! is shown for it is made from its name and a secret, so it stays the same from one attempt to the next.

use bson::{Binary, BinaryRef, Document, ValueRef};
use mql::Code;

use super::credential::{Credential, Mechanism};
use super::scram::{Exchange, First};
use super::{Identity, Users};
use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::random;

/// A conversation under way.
#[derive(Debug)]
pub(crate) struct Conversation {
    id: i32,
    identity: Identity,
    skip_empty: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The proof is awaited.
    Proof(Box<Exchange>),
    /// The proof was good; a client that did not ask to skip it sends one more empty message.
    Empty,
}

/// What a step of a conversation comes to.
#[derive(Debug)]
pub(crate) struct Step {
    /// The reply.
    pub(crate) reply: Document,
    /// Set with the last step.
    pub(crate) proved: Option<Identity>,
    /// The conversation, if it goes on.
    pub(crate) next: Option<Conversation>,
}

/// The one answer to everything that is wrong.
fn failed() -> Error {
    Error::new(Code::AUTHENTICATION_FAILED, "Authentication failed.")
}

impl Conversation {
    /// `saslStart`.
    pub(crate) fn start(fields: Fields<'_>, database: &str, users: &Users<'_>) -> Result<Step> {
        let name = fields.required("mechanism", fields.text("mechanism")?)?;
        let mechanism = Mechanism::from_name(name).ok_or_else(|| {
            let text = format!("Received authentication for mechanism {name} which is not enabled");
            Error::new(Code::MECHANISM_UNAVAILABLE, text)
        })?;
        let options = fields.document("options")?;
        let skip_empty = options.map_or(Ok(false), |options| {
            Fields::new("saslStart.options", options).is_set("skipEmptyExchange")
        })?;
        let first = First::parse(payload(fields)?).ok_or_else(failed)?;
        let known = users.credential(&first.user, database, mechanism)?;
        let (credential, id) =
            known.unwrap_or_else(|| (nobody(mechanism, users.decoy_salt(&first.user, mechanism)), None));
        let identity = Identity::new(&first.user, database, id);
        let exchange = Exchange::start(mechanism, first, credential, &nonce());
        let id = 1;
        let reply = reply(id, false, exchange.answer());
        let next = Conversation { id, identity, skip_empty, state: State::Proof(Box::new(exchange)) };
        Ok(Step { reply, proved: None, next: Some(next) })
    }

    /// `saslContinue`.
    pub(crate) fn go_on(self, fields: Fields<'_>) -> Result<Step> {
        if fields.integer("conversationId")? != Some(self.id.into()) {
            return Err(Error::new(Code::PROTOCOL_ERROR, "sasl: Mismatched conversation id"));
        }
        let payload = payload(fields)?;
        match &self.state {
            State::Proof(exchange) => {
                let signature = exchange.finish(payload).ok_or_else(failed)?;
                let reply = reply(self.id, self.skip_empty, &signature);
                if self.skip_empty {
                    return Ok(Step { reply, proved: Some(self.identity), next: None });
                }
                Ok(Step { reply, proved: None, next: Some(Conversation { state: State::Empty, ..self }) })
            }
            State::Empty if payload.is_empty() => {
                Ok(Step { reply: reply(self.id, true, &[]), proved: Some(self.identity), next: None })
            }
            State::Empty => Err(failed()),
        }
    }
}

fn payload(fields: Fields<'_>) -> Result<&[u8]> {
    match fields.value("payload") {
        Some(ValueRef::Binary(BinaryRef { bytes, .. })) => Ok(bytes),
        Some(ValueRef::String(text)) => Ok(text.as_bytes()),
        _ => Err(Error::new(Code::PROTOCOL_ERROR, "a SASL step needs a payload")),
    }
}

fn reply(id: i32, done: bool, payload: &[u8]) -> Document {
    let payload = Binary { subtype: 0, bytes: payload.to_vec() };
    Document::new().with("conversationId", id).with("done", done).with("payload", payload)
}

/// A credential that no proof meets.
fn nobody(mechanism: Mechanism, salt: Vec<u8>) -> Credential {
    let keys: [u8; 64] = random::bytes();
    let length = mechanism.hash(b"").len();
    Credential {
        iterations: mechanism.iterations(),
        salt,
        stored_key: keys[..length].to_vec(),
        server_key: keys[32..32 + length].to_vec(),
    }
}

/// Our part of the nonce, of signs that need no quoting.
fn nonce() -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(random::bytes::<24>())
}
