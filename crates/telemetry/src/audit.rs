//! What an auditor wants to know: who did what, from where, and what came of it.
//!
//! Front ends make events of sign-ins, refusals and changes of what is not a document: keys, users, rules of expiry, holds, the
//! clock. An event has the fields of [`AuditEvent`] and no others, and each names something: no key, password or document has a
//! place in it. Whoever keeps events is handed in ([`AuditSink`]); without one no event is made.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// What came of an audited action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOutcome {
    /// It was done.
    Success,
    /// It was refused for want of a credential or of rights.
    Denied,
    /// It was allowed, and failed.
    Failure,
    /// The client left before the answer. What it asked for may be done all the same.
    Abandoned,
}

impl AuditOutcome {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            AuditOutcome::Success => "success",
            AuditOutcome::Denied => "denied",
            AuditOutcome::Failure => "failure",
            AuditOutcome::Abandoned => "abandoned",
        }
    }

    /// What an HTTP status says; none if the client left before there was one.
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
    /// The front end: `nosql`, `mongodb`, `explorer`; `server` for what no client asked for.
    pub api: &'static str,
    /// The key, by kind and fingerprint, or the user; none if nobody has proved anything.
    pub who: Option<String>,
    /// The peer's address.
    pub from: Option<SocketAddr>,
    /// The operation, by the name that metrics have for it.
    pub action: String,
    /// What it was about: a path, a namespace, a user.
    pub target: Option<String>,
    /// Settings that it names, as JSON.
    pub details: Option<String>,
    /// What came of it,
    pub outcome: AuditOutcome,
    /// and the status or the number of the error that the client was sent.
    pub status: Option<i64>,
}

/// Where events go.
pub trait AuditSink: Send + Sync {
    /// Takes an event. It must not block: requests wait for it.
    fn take(&self, event: AuditEvent);
}

/// Keeps events in memory, for tests.
#[derive(Debug, Default)]
pub struct AuditMemory(Mutex<Vec<AuditEvent>>);

impl AuditMemory {
    /// What was told so far.
    pub fn events(&self) -> Vec<AuditEvent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl AuditSink for AuditMemory {
    fn take(&self, event: AuditEvent) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}
