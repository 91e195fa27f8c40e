//! Parameters: what `getParameter` shows and `setParameter` changes while the server runs.
//!
//! Few of them do anything. Those that do are read where they matter; the others exist because tools and test suites set
//! them, and keep the value that was set.

use std::collections::BTreeMap;

use bson::{Document, Value, ValueRef};
use mql::Code;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::auth::Mechanism;
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::{truth, whole};
use crate::protocol::limits::Limits;
use crate::protocol::reply::list;
use crate::protocol::version;
use crate::service::Service;

/// What a parameter may be set to.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Switch,
    Number { least: i64, most: i64 },
}

/// Parameters that are kept, with their kinds and defaults.
const KEPT: [(&str, Kind, i64); 12] = [
    (CURSOR_TIMEOUT, Kind::Number { least: 1, most: i64::MAX }, 600_000),
    ("diagnosticDataCollectionEnabled", Kind::Switch, 0),
    (SORT_MEMORY, Kind::Number { least: 0, most: i64::MAX }, 104_857_600),
    ("logLevel", Kind::Number { least: 0, most: 5 }, 0),
    ("maxTransactionLockRequestTimeoutMillis", Kind::Number { least: -1, most: i32::MAX as i64 }, 5),
    ("notablescan", Kind::Switch, 0),
    ("periodicNoopIntervalSecs", Kind::Number { least: 1, most: i32::MAX as i64 }, 10),
    ("quiet", Kind::Switch, 0),
    (TRANSACTION_LIFETIME, Kind::Number { least: 1, most: i32::MAX as i64 }, 60),
    ("ttlMonitorBatchDeletes", Kind::Switch, 1),
    (TTL_SLEEP, Kind::Number { least: 1, most: i32::MAX as i64 }, 60),
    ("wiredTigerConcurrentReadTransactions", Kind::Number { least: 1, most: i32::MAX as i64 }, 128),
];

/// The memory of a stage, as the operator has set it; setting it here does nothing.
const SORT_MEMORY: &str = "internalQueryMaxBlockingSortMemoryUsageBytes";
/// How long a cursor may be idle before it is closed.
pub(crate) const CURSOR_TIMEOUT: &str = "cursorTimeoutMillis";
/// How long a transaction may last.
pub(crate) const TRANSACTION_LIFETIME: &str = "transactionLifetimeLimitSeconds";
/// Whether expired documents are removed. They are invisible either way.
const TTL_ENABLED: &str = "ttlMonitorEnabled";
/// The length of a pass, for figures; removal itself begins when something is due.
const TTL_SLEEP: &str = "ttlMonitorSleepSecs";

/// The parameters of one process.
#[derive(Debug)]
pub(crate) struct Parameters {
    kept: Mutex<BTreeMap<&'static str, i64>>,
    passes: Mutex<Passes>,
}

/// Passes of the purge so far: one for every span of `ttlMonitorSleepSecs` in which it was not paused.
#[derive(Debug)]
struct Passes {
    count: u64,
    since: Instant,
}

impl Parameters {
    /// Returns the defaults, and what the operator has set.
    pub(crate) fn new(limits: &Limits) -> Parameters {
        let mut kept: BTreeMap<_, _> = KEPT.iter().map(|(name, _, default)| (*name, *default)).collect();
        let number = |number: u128| i64::try_from(number).unwrap_or(i64::MAX).max(1);
        kept.insert(CURSOR_TIMEOUT, number(limits.cursor_idle_timeout.as_millis()));
        kept.insert(SORT_MEMORY, number(limits.stage_bytes as u128));
        let lifetime = number(limits.transaction_lifetime.as_secs().into()).min(i32::MAX.into());
        kept.insert(TRANSACTION_LIFETIME, lifetime);
        Parameters { kept: Mutex::new(kept), passes: Mutex::new(Passes { count: 0, since: Instant::now() }) }
    }

    /// Returns a parameter that is kept.
    pub(crate) fn get(&self, name: &str) -> i64 {
        self.kept.lock().get(name).copied().unwrap_or(0)
    }

    /// Returns how many passes the purge has made: it runs whenever something is due, and so counts at least one in every
    /// span.
    pub(crate) fn passes(&self, paused: bool) -> u64 {
        let sleep = self.get(TTL_SLEEP).max(1) as u64;
        let mut passes = self.passes.lock();
        let (now, spans) = (Instant::now(), passes.since.elapsed().as_secs() / sleep);
        if paused {
            passes.since = now;
        } else if spans > 0 {
            passes.count += spans;
            passes.since = now;
        }
        passes.count
    }
}

impl Service {
    /// Returns the value of a parameter, of any kind; none if there is no such parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<Value> {
        match name {
            TTL_ENABLED => return Some(Value::Bool(!self.engine.purge_status().paused)),
            "enableTestCommands" => return Some(Value::Bool(self.settings.test_commands)),
            "authenticationMechanisms" => return Some(list(Mechanism::ALL.map(Mechanism::name))),
            "featureCompatibilityVersion" => {
                let [major, minor, ..] = version::VERSION;
                return Some(Document::new().with("version", format!("{major}.{minor}")).into());
            }
            _ => {}
        }
        let (name, kind, _) = KEPT.iter().find(|(known, ..)| *known == name)?;
        Some(match (kind, self.parameters.get(name)) {
            (Kind::Switch, value) => Value::Bool(value != 0),
            (Kind::Number { most, .. }, value) if *most <= i32::MAX.into() => Value::Int32(value as i32),
            (Kind::Number { .. }, value) => Value::Int64(value),
        })
    }

    /// Sets a parameter; returns the previous value.
    pub(crate) fn set_parameter(&self, name: &str, value: ValueRef<'_>) -> Result<Value> {
        let was = self.parameter(name).ok_or_else(|| {
            let text =
                format!("attempted to set unrecognized parameter [{name}], use help:true to see options ");
            Error::new(Code::INVALID_OPTIONS, text)
        })?;
        let wrong =
            || Error::bad_value(format!("Invalid value for parameter {name}: {}", bson::shell_text(value)));
        if name == TTL_ENABLED {
            self.engine.pause_purge(!truth(value).ok_or_else(wrong)?);
            return Ok(was);
        }
        let Some((name, kind, _)) = KEPT.iter().find(|(known, ..)| *known == name) else {
            return Err(Error::new(
                Code::ILLEGAL_OPERATION,
                format!("not allowed to change [{name}] at runtime"),
            ));
        };
        let number = match kind {
            Kind::Switch => truth(value).map(i64::from),
            Kind::Number { least, most } => whole(value).filter(|number| (*least..=*most).contains(number)),
        };
        let number = number.ok_or_else(wrong)?;
        if *name == TTL_SLEEP {
            // The time until now counts by the old span.
            self.parameters.passes(self.engine.purge_status().paused);
        }
        self.parameters.kept.lock().insert(name, number);
        if *name == CURSOR_TIMEOUT {
            self.sweep_timer.set(Instant::now());
        }
        Ok(was)
    }
}

/// Returns the names of all parameters.
pub(crate) fn names() -> Vec<&'static str> {
    let others =
        ["authenticationMechanisms", "enableTestCommands", "featureCompatibilityVersion", TTL_ENABLED];
    let mut names: Vec<_> = KEPT.iter().map(|(name, ..)| *name).chain(others).collect();
    names.sort_unstable();
    names
}
