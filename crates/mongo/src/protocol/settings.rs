//! The settings of the front end, which the operator chooses.

use std::sync::Arc;

use account::Keyring;
use mql::Scratch;
use telemetry::Registry;
use transport::{Admission, ServerConfig};

use crate::protocol::limits::Limits;

/// What the server says it is. Clients behave by it: sessions, retryable writes and transactions depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Profile {
    /// The only member of a replica set of that name.
    ReplicaSet {
        /// Its name, as `replicaSet=` in a connection string gives it.
        name: String,
    },
    /// One server for itself.
    Standalone,
    /// A router of a sharded cluster: it has no list of hosts, so it also works behind mapped ports.
    Sharded,
}

impl Profile {
    /// Whether replies carry a cluster time.
    pub(crate) fn has_cluster_time(&self) -> bool {
        !matches!(self, Profile::Standalone)
    }
}

/// Whether clients must authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authentication {
    /// All clients must.
    Required,
    /// Every client that can connect may do everything, as long as the primary key is the one of the start, which counts as
    /// public. Clients may authenticate.
    Optional,
}

/// The user that always exists, so that a Cosmos connection string works.
#[derive(Debug, Clone)]
pub struct Account {
    /// The user's name.
    pub user: String,
    /// The passwords: the account's keys, as the base64 text that clients have.
    pub keys: Keyring,
}

/// The machine, as far as clients ask about it.
#[derive(Debug, Clone)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The operating system's name and version.
    pub system: (String, String),
    /// How many processors there are.
    pub cores: usize,
    /// Memory in all, in bytes.
    pub memory_bytes: u64,
    /// The number of this process.
    pub process: u32,
    /// Memory that this process uses now, in bytes: resident and in all.
    pub used_bytes: fn() -> (u64, u64),
}

/// All settings of a front end besides its engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the server says it is.
    pub profile: Profile,
    /// The `host:port` under which clients reach it; the address that each client reached if not given.
    pub advertise: Option<String>,
    /// Whether clients must authenticate.
    pub authentication: Authentication,
    /// The user that always exists.
    pub account: Account,
    /// Whether commands for test suites, fail points above all, are there.
    pub test_commands: bool,
    /// With TLS, the first bytes of a connection tell whether the client wants it.
    pub tls: Option<Arc<ServerConfig>>,
    /// The machine.
    pub host: Host,
    /// The command line without secrets, for `getCmdLineOpts`.
    pub arguments: Vec<String>,
    /// Bounds on peers.
    pub limits: Limits,
    /// Where sorts and groups keep what exceeds their memory; without it they fail at that point.
    pub scratch: Option<Arc<dyn Scratch>>,
    /// How much is done at once, together with the other front ends.
    pub admission: Arc<Admission>,
    /// Where its figures are kept.
    pub registry: Arc<Registry>,
}
