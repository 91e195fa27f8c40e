//! Commands that move time, run the purge, and stop the engine.

use engine::PurgeFigures;
use storage::{CrashMode, Scrubbed, Time};

use super::Answer;
use super::call::Call;
use super::labels::{START_SECONDS, count, duration, time};
use super::stage::Stage;

/// Lets time pass: `advance 30s`.
pub(super) fn advance(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    stage.advance(duration(call.name));
    Ok(Vec::new())
}

/// Sets the machine's wall clock alone, to so long before the start of the script.
pub(super) fn clock(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let before = duration(call.name.trim_start_matches('-'));
    stage.clock.set_wall(Time::from_millis(START_SECONDS * 1000 - before));
    Ok(Vec::new())
}

pub(super) fn now(stage: &mut Stage, _: &mut Call<'_>) -> Answer {
    Ok(vec![time(stage.now())])
}

/// Runs the purge until nothing is due, or one step of it that removes at most `step=` items. With a name: of that container
/// or collection, as on an operator's demand.
pub(super) fn purge(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let owner = if call.name.is_empty() { None } else { Some(stage.owner(call.name)?) };
    let step = call.take_count("step");
    let (mut purged, mut urgent) = (0, false);
    let next_due = loop {
        let limit = step.unwrap_or(3);
        let report = match &owner {
            Some(owner) => stage.engine().purge_at_once(Some(owner), limit)?,
            None => stage.engine().purge_step(limit)?,
        };
        purged += report.purged_items;
        urgent |= report.urgent;
        let now = stage.now();
        if step.is_some() || report.next_due.is_none_or(|due| due > now) {
            break report.next_due;
        }
    };
    let next = next_due.map_or("nothing due".to_owned(), |due| format!("next due {}", time(due)));
    let urgent = if urgent { ", urgent" } else { "" };
    Ok(vec![format!("purged {}, {next}{urgent}", count(purged, "item"))])
}

/// Checks the retention promises, and prints the figures of all checks.
pub(super) fn retention(stage: &mut Stage, _: &mut Call<'_>) -> Answer {
    let report = stage.engine().retention_step()?;
    let scrubbed = match report.scrubbed {
        None => "nothing scrubbed".to_owned(),
        Some(Scrubbed::Done) => "scrubbed".to_owned(),
        Some(Scrubbed::Held) => "scrubbed but for what readers hold".to_owned(),
    };
    let next = report.next_due.map_or("nothing due".to_owned(), |due| format!("next due {}", time(due)));
    let missed = if report.missed.is_empty() {
        String::new()
    } else {
        format!(", missed {}", report.missed.join(" "))
    };
    let sum = stage.engine().retention_status();
    let all = format!("in all scrubbed {}, held {}, missed {}", sum.scrubs, sum.held_scrubs, sum.missed);
    Ok(vec![format!("{scrubbed}, {next}{missed}; {all}")])
}

pub(super) fn commits(stage: &mut Stage, _: &mut Call<'_>) -> Answer {
    let last = stage.engine().last_sequence();
    let since = last - std::mem::replace(&mut stage.counted, last);
    Ok(vec![count(since, "commit")])
}

pub(super) fn pause(stage: &mut Stage, _: &mut Call<'_>) -> Answer {
    stage.engine().pause_purge(true);
    Ok(Vec::new())
}

pub(super) fn resume(stage: &mut Stage, _: &mut Call<'_>) -> Answer {
    stage.engine().pause_purge(false);
    Ok(Vec::new())
}

/// Prints the backlog of the purge, and the items that it has removed since the start.
pub(super) fn backlog(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let figures = if call.name.is_empty() {
        let all = stage.engine().purge_figures_of_all()?;
        all.iter().map(|(_, figures)| *figures).fold(PurgeFigures::default(), PurgeFigures::plus)
    } else {
        stage.engine().purge_figures(&stage.owner(call.name)?)?
    };
    let or_none = |at: Option<Time>| match at {
        None => "none".to_owned(),
        Some(Time::ZERO) => "at once".to_owned(),
        Some(at) => time(at),
    };
    Ok(vec![format!(
        "backlog {} of {}; oldest expired {}; purged {}; last pass {}; next due {}",
        count(figures.backlog.items, "item"),
        count(figures.backlog.bytes, "byte"),
        or_none(figures.oldest_expiry),
        count(figures.purged.items, "item"),
        or_none(figures.last_pass),
        or_none(figures.next_due)
    )])
}

pub(super) fn restart(stage: &mut Stage, _: &mut Call<'_>) -> Answer {
    stage.restart();
    Ok(Vec::new())
}

pub(super) fn kill(stage: &mut Stage, _: &mut Call<'_>) -> Answer {
    stage.kill();
    Ok(Vec::new())
}

/// Crashes the machine: now, or `before` or `after` the next commit, which the rest of the line makes: `crash before put c {..}`.
pub(super) fn crash(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let mode = match call.name {
        "" => {
            stage.crash();
            return Ok(Vec::new());
        }
        "before" => CrashMode::BeforeCommit,
        "after" => CrashMode::AfterCommit,
        other => panic!("crash before or after a commit, not {other}"),
    };
    stage.plan_crash(mode);
    let mut struck = Call::new(call.rest(), Vec::new());
    let answer = stage.answer(&mut struck);
    struck.end();
    assert!(!stage.disk().fault_is_planned(), "{} has made no commit", call.rest());
    stage.start_after_crash();
    answer
}
