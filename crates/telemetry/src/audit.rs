//! Audit events: which user did what, from where, and with what result.
//!
//! Front ends record sign-ins, refusals and changes of everything but documents: keys, users, rules of expiry, holds,
//! the clock. An event has the fields of [`AuditEvent`] and no others, and each is a name: no key, password or document
//! fits in. The caller provides the [`AuditSink`]; without one no event is created.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// The result of an audited action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOutcome {
    /// The action was performed.
    Success,
    /// The action was refused because a credential or a right was missing.
    Denied,
    /// The action was allowed, and failed.
    Failure,
    /// The client disconnected before the answer. The action may have been performed all the same.
    Abandoned,
}

impl AuditOutcome {
    /// Returns the name used in events.
    pub fn name(self) -> &'static str {
        match self {
            AuditOutcome::Success => "success",
            AuditOutcome::Denied => "denied",
            AuditOutcome::Failure => "failure",
            AuditOutcome::Abandoned => "abandoned",
        }
    }

    /// Returns the result for an HTTP status; `None` stands for a client that disconnected before there was one.
    pub fn of_status(status: Option<u16>) -> AuditOutcome {
        match status {
            None => AuditOutcome::Abandoned,
            Some(..=399) => AuditOutcome::Success,
            Some(401 | 403) => AuditOutcome::Denied,
            Some(_) => AuditOutcome::Failure,
        }
    }
}

/// One audited action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    /// The front end: `nosql`, `mongodb`, `explorer`; `server` for actions that no client requested.
    pub api: &'static str,
    /// The key, by kind and fingerprint, or the user; `None` if nothing was authenticated.
    pub who: Option<String>,
    /// The client's address.
    pub from: Option<SocketAddr>,
    /// The operation, by its name in metrics.
    pub action: String,
    /// The target of the action: a path, a namespace, a user.
    pub target: Option<String>,
    /// The settings it names, as JSON.
    pub details: Option<String>,
    /// The result.
    pub outcome: AuditOutcome,
    /// The status or error number that the client was sent.
    pub status: Option<i64>,
}

/// The destination of events.
pub trait AuditSink: Send + Sync {
    /// Records an event. It must not block: requests wait for it.
    fn record(&self, event: AuditEvent);
}

/// A sink that keeps events in memory, for tests.
#[derive(Debug, Default)]
pub struct MemoryAuditSink(Mutex<Vec<AuditEvent>>);

impl MemoryAuditSink {
    /// Returns the events recorded so far.
    pub fn events(&self) -> Vec<AuditEvent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl AuditSink for MemoryAuditSink {
    fn record(&self, event: AuditEvent) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}
