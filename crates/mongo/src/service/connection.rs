//! What the server knows of a connection: its addresses, the client's description of itself, its identity.

use std::net::SocketAddr;
use std::time::Duration;

use bson::RawDocument;
use engine::Charge;
use parking_lot::Mutex;
use transport::{Api, Tenant};

use crate::auth::{Conversation, Identity};

/// What is known of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: i32,
    pub(crate) peer: SocketAddr,
    /// The address that the client reached.
    pub(crate) local: SocketAddr,
    /// The host name that the client used, known with TLS.
    pub(crate) server_name: Option<String>,
    /// What the client said about itself, and what it did last.
    pub(crate) client: Mutex<Client>,
}

/// What changes about a connection.
#[derive(Debug, Default)]
pub(crate) struct Client {
    /// `client` of the first hello.
    pub(crate) metadata: Option<RawDocument>,
    /// `client.application.name` of the first hello.
    pub(crate) application: Option<String>,
    /// The authenticated client.
    pub(crate) identity: Option<Identity>,
    /// An authentication that has begun.
    pub(crate) conversation: Option<Conversation>,
    /// The user of the last one: a name and its database, for the audit log.
    pub(crate) claimed: Option<(String, String)>,
    /// Wrong passwords so far.
    pub(crate) wrong_proofs: u32,
    /// Whether the last command was one of them.
    pub(crate) was_wrong: bool,
    pub(crate) last_request: Option<LastRequest>,
}

impl Connection {
    /// Whether a client has authenticated on this connection.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.client.lock().identity.is_some()
    }

    /// Returns the tenant that pays for what is done on this connection: a user, or all clients that need not authenticate together.
    pub(crate) fn tenant(&self) -> Tenant {
        Tenant::new(Api::Mongo, self.user_digest())
    }

    /// Returns how many bytes the connection keeps of what a client that authenticates has sent.
    pub(crate) fn authentication_bytes(&self) -> usize {
        let client = self.client.lock();
        let claimed = client.claimed.as_ref().map_or(0, |(user, database)| user.len() + database.len());
        claimed + client.conversation.as_ref().map_or(0, Conversation::bytes)
    }

    /// Returns the digest of the user who owns the sessions and cursors of this connection.
    pub(crate) fn user_digest(&self) -> [u8; 32] {
        self.client.lock().identity.as_ref().map_or([0; 32], |identity| identity.digest)
    }
}

/// What `getLastRequestStatistics` shows.
#[derive(Debug, Clone)]
pub(crate) struct LastRequest {
    pub(crate) command: &'static str,
    pub(crate) charge: Charge,
    pub(crate) duration: Duration,
}
