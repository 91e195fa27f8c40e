//! A SASL conversation: what `saslStart`, `saslContinue` and the first hello share.
//!
//! All failures have the same error, and an unknown user gets as far as a user with a wrong password: the salt for an
//! unknown user is made from its name and a secret, so it stays the same from one attempt to the next.

use bson::{Binary, BinaryRef, Document, ValueRef};
use mql::Code;

use super::credential::{Credential, Mechanism};
use super::scram::{Exchange, First};
use super::{Identity, Principal, Users};
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::random;

/// What a conversation counts for beside what the client has sent: the credentials of the user, above all.
const BASE_BYTES: usize = 1024;

/// A conversation that has begun.
#[derive(Debug)]
pub(crate) struct Conversation {
    id: i32,
    user: String,
    database: String,
    skip_empty: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The server waits for the proof of one of these principals.
    Proof(Box<Exchange>, Vec<Principal>),
    /// The proof was good; a client that did not ask to skip it sends one more empty message.
    Empty(Principal),
}

/// The outcome of a step of a conversation.
#[derive(Debug)]
pub(crate) struct Step {
    /// The reply.
    pub(crate) reply: Document,
    /// Set with the last step.
    pub(crate) proved: Option<Identity>,
    /// The conversation, if it continues.
    pub(crate) next: Option<Conversation>,
}

/// Returns the one error for every failure.
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
        let known = users.credentials(&first.user, database, mechanism)?;
        let (mut credentials, principal): (Vec<_>, Vec<_>) = known.into_iter().unzip();
        if credentials.is_empty() {
            credentials.push(unusable_credential(mechanism, users.keys.salt(&first.user, mechanism)));
        }
        let (user, database) = (first.user.clone(), database.to_owned());
        let exchange = Exchange::start(mechanism, first, credentials, &nonce());
        let id = 1;
        let reply = reply(id, false, exchange.answer());
        let state = State::Proof(Box::new(exchange), principal);
        let next = Conversation { id, user, database, skip_empty, state };
        Ok(Step { reply, proved: None, next: Some(next) })
    }

    /// Returns the user that it is about: a name, and the database it belongs to.
    pub(crate) fn about(&self) -> (String, String) {
        (self.user.clone(), self.database.clone())
    }

    /// Returns how many bytes it holds, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let exchange = match &self.state {
            State::Proof(exchange, _) => exchange.bytes(),
            State::Empty(_) => 0,
        };
        BASE_BYTES + self.user.capacity() + self.database.capacity() + exchange
    }

    fn proved(&self, principal: &Principal) -> Identity {
        Identity::new(&self.user, &self.database, principal.clone())
    }

    /// `saslContinue`.
    pub(crate) fn go_on(self, fields: Fields<'_>, users: &Users<'_>) -> Result<Step> {
        if fields.integer("conversationId")? != Some(self.id.into()) {
            return Err(Error::new(Code::PROTOCOL_ERROR, "sasl: Mismatched conversation id"));
        }
        let payload = payload(fields)?;
        match &self.state {
            State::Proof(exchange, principal) => {
                let (which, signature) = exchange.finish(payload).ok_or_else(failed)?;
                // Keys may have changed since the conversation began, and no user has the unusable credential.
                let principal = principal
                    .get(which)
                    .filter(|principal| users.is_good(principal))
                    .ok_or_else(failed)?
                    .clone();
                let reply = reply(self.id, self.skip_empty, &signature);
                if self.skip_empty {
                    return Ok(Step { reply, proved: Some(self.proved(&principal)), next: None });
                }
                let next = Conversation { state: State::Empty(principal), ..self };
                Ok(Step { reply, proved: None, next: Some(next) })
            }
            State::Empty(principal) if payload.is_empty() => Ok(Step {
                reply: reply(self.id, true, &[]),
                proved: Some(self.proved(principal)),
                next: None,
            }),
            State::Empty(_) => Err(failed()),
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

/// Returns a credential that no proof meets.
fn unusable_credential(mechanism: Mechanism, salt: Vec<u8>) -> Credential {
    let keys: [u8; 64] = random::bytes();
    let length = mechanism.hash(b"").len();
    Credential {
        iterations: mechanism.iterations(),
        salt,
        stored_key: keys[..length].to_vec(),
        server_key: keys[32..32 + length].to_vec(),
    }
}

/// Returns the server's part of the nonce, of characters that need no quoting.
fn nonce() -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(random::bytes::<24>())
}
