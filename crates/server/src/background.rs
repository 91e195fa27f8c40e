//! The loop around the purge: a bounded step, then sleep until the engine says that something is due.
//!
//! An idle store costs nothing here. Writes, policy changes and moves of the clock ring when something becomes
//! due earlier than the loop believes. Between two busy steps other work gets its turn.

use std::sync::Arc;
use std::time::Duration;

use engine::Engine;
use storage::ClockStatus;
use tokio::sync::Notify;
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::timeout;

/// Items per step: few enough that a foreground write never waits long behind one.
const STEP_ITEMS: usize = 256;

/// The longest sleep; wall clocks get adjusted, so due times and the clock itself are looked at again now and then.
const SLEEP_MAX: Duration = Duration::from_mins(10);

/// Pause after a step that found nothing to do although something was due.
const IDLE_PAUSE: Duration = Duration::from_millis(10);

/// Pause after a failed step.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// Runs until dropped.
pub(crate) async fn purge(engine: Arc<Engine>) {
    let bell = Arc::new(Notify::new());
    let ringer = Arc::clone(&bell);
    engine.on_purge_due(move || ringer.notify_one());
    let mut suspect = false;
    loop {
        let pause = match step(&engine, &mut suspect).await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::error!("the purge failed and will be tried again: {error:#}");
                FAILURE_PAUSE
            }
        };
        if pause.is_zero() {
            yield_now().await;
        } else {
            let _ = timeout(pause, bell.notified()).await;
        }
    }
}

/// One step, and how long until the next.
async fn step(engine: &Arc<Engine>, suspect: &mut bool) -> anyhow::Result<Duration> {
    let worker = Arc::clone(engine);
    let report = spawn_blocking(move || worker.purge_step(STEP_ITEMS)).await??;
    let clock = engine.clock_status()?;
    log_suspicion(&clock, suspect);
    let Some(due) = report.next_due else { return Ok(SLEEP_MAX) };
    let wait = Duration::from_millis(due.millis_since(clock.now)).min(SLEEP_MAX);
    // Nothing was due although something should be: do not spin.
    let idle = wait.is_zero() && report.purged_items == 0 && report.other_entries == 0;
    Ok(if idle { IDLE_PAUSE } else { wait })
}

/// Says once when the clock becomes suspect, and once when that is over (T34).
fn log_suspicion(clock: &ClockStatus, suspect: &mut bool) {
    match clock.suspect {
        Some(suspicion) if !*suspect => tracing::error!(
            "clock suspect: the wall clock is {} s ahead of the trusted time; nothing is purged until an operator \
             accepts or rejects it (POST /_bolide/clock)",
            suspicion.ahead_ms / 1000
        ),
        None if *suspect => tracing::warn!("the clock is trusted again"),
        Some(_) | None => {}
    }
    *suspect = clock.suspect.is_some();
}
