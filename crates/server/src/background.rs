//! The loop around the purge: a bounded step, then sleep until the engine says that something is due.
//!
//! An idle store costs nothing here. Writes, policy changes and moves of the clock ring when something becomes
//! due earlier than the loop believes. Between two busy steps other work gets its turn.

use std::sync::Arc;
use std::time::Duration;

use engine::Engine;
use tokio::sync::Notify;
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::timeout;

/// Items per step: few enough that a foreground write never waits long behind one.
const STEP_ITEMS: usize = 256;

/// The longest sleep; wall clocks get adjusted, so due times are looked at again now and then.
const SLEEP_MAX: Duration = Duration::from_mins(10);

/// Pause after a failed step.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// Runs until dropped.
pub(crate) async fn purge(engine: Arc<Engine>) {
    let bell = Arc::new(Notify::new());
    let ringer = Arc::clone(&bell);
    engine.on_purge_due(move || ringer.notify_one());
    loop {
        let pause = match step(&engine).await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::error!("the purge failed and will be tried again: {error:#}");
                Some(FAILURE_PAUSE)
            }
        };
        match pause {
            Some(Duration::ZERO) => yield_now().await,
            Some(pause) => {
                let _ = timeout(pause.min(SLEEP_MAX), bell.notified()).await;
            }
            None => bell.notified().await,
        }
    }
}

/// One step, and how long until the next: none if nothing is ever due as things stand.
async fn step(engine: &Arc<Engine>) -> anyhow::Result<Option<Duration>> {
    let worker = Arc::clone(engine);
    let report = spawn_blocking(move || worker.purge_step(STEP_ITEMS)).await??;
    let Some(due) = report.next_due else { return Ok(None) };
    let wait = due.millis_since(engine.now()?);
    // Nothing was due although something should be: do not spin.
    let idle = wait == 0 && report.purged_items == 0;
    Ok(Some(Duration::from_millis(if idle { 10 } else { wait })))
}
