//! `/_bolide/purge`: the state of the purge, and its control (T23).

use document::{Object, Value};
use engine::{Api, Engine, Owner, PaceStatus, PurgeFigures, PurgeReport};

use super::catalog::api_name;
use super::evidence::archive_value;
use super::{number, reply, tally};
use crate::handlers::call::Call;
use crate::message::reply::Reply;
use crate::protocol::error::Error;
use crate::protocol::json::{member, object, parse_object, text};

/// The number of items that one step of a purge on demand removes.
const STEP_ITEMS: usize = 1000;

/// Steps after which a purge on demand stops; the background purge continues from there.
const STEPS: usize = 10_000;

/// Returns the figures in sum, and of every container in which there is or was something to purge.
pub(super) async fn show(call: &Call) -> Result<Reply, Error> {
    let all = call.blocking(|engine| Ok(engine.purge_figures_of_all()?)).await?;
    let engine = call.engine();
    let telling = |figures: &PurgeFigures| {
        figures.backlog.items > 0 || figures.purged.items > 0 || figures.set_aside > 0
    };
    let containers = all.iter().filter(|(_, figures)| telling(figures)).map(|(owner, figures)| {
        Ok(object([
            member("api", text(api_name(owner.api()))),
            member("database", text(owner.database())),
            member("container", text(owner.name())),
            member("purge", figures_value(engine, figures)?),
            member("archive", archive_value(engine.archive_status(owner)?)),
        ]))
    });
    let containers = containers.collect::<Result<Vec<_>, Error>>()?;
    let mut shown = sum(engine, &all)?;
    shown.insert("containers", Value::Array(containers));
    Ok(reply(&Value::Object(shown)))
}

/// Returns the figures in sum.
pub(super) fn sum_value(engine: &Engine) -> Result<Value, Error> {
    sum(engine, &engine.purge_figures_of_all()?).map(Value::Object)
}

fn sum(engine: &Engine, all: &[(Owner, PurgeFigures)]) -> Result<Object, Error> {
    let status = engine.purge_status();
    let (retention, archives) = (engine.retention_status(), engine.archive_sums());
    let sum = all.iter().map(|(_, figures)| *figures).fold(PurgeFigures::default(), PurgeFigures::plus);
    let mut shown = Object::new();
    let own = [
        ("paused", Value::Bool(status.paused)),
        ("purgedItems", number(status.purged_items)),
        ("purgedBytes", number(status.purged_bytes)),
        ("passes", number(status.passes)),
        ("lastStep", status.last_step.map_or(Value::Null, |time| number(time.seconds()))),
        ("nextDue", status.next_due.map_or(Value::Null, |time| number(time.seconds()))),
        ("backlog", tally(sum.backlog)),
        ("oldestAgeSeconds", age(engine, &sum)?),
        ("pace", pace_value(&status.pace)),
        ("setAside", number(sum.set_aside)),
        ("missedBounds", number(retention.missed)),
        ("scrubs", number(retention.scrubs)),
        ("heldScrubs", number(retention.held_scrubs)),
        ("archived", tally(archives.archived)),
        ("archiveFailures", number(archives.failures)),
        ("waitingForArchive", number(archives.waiting)),
    ];
    for (name, value) in own {
        shown.insert(name, value);
    }
    Ok(shown)
}

/// Returns the rate of the purge and of expiry, and whether capacity suffices.
fn pace_value(pace: &PaceStatus) -> Value {
    object([
        member("expiringPerSecond", number(pace.expiring_per_second)),
        member("purgingPerSecond", number(pace.purging_per_second)),
        member("drainedInSeconds", pace.drained_in_seconds.map_or(Value::Null, number)),
        member("capacityIsShort", Value::Bool(pace.is_capacity_short)),
    ])
}

/// Returns the figures of one container.
pub(super) fn figures_value(engine: &Engine, figures: &PurgeFigures) -> Result<Value, Error> {
    Ok(object([
        member("backlog", tally(figures.backlog)),
        member("oldestAgeSeconds", age(engine, figures)?),
        member("purged", tally(figures.purged)),
        member("setAside", number(figures.set_aside)),
        member("lastPass", figures.last_pass.map_or(Value::Null, |time| number(time.seconds()))),
        member("nextDue", figures.next_due.map_or(Value::Null, |time| number(time.seconds()))),
    ]))
}

/// Returns how long the oldest expired item has been expired; null if there is none.
fn age(engine: &Engine, figures: &PurgeFigures) -> Result<Value, Error> {
    let now = engine.now()?;
    Ok(figures.oldest_expiry.map_or(Value::Null, |oldest| number(now.millis_since(oldest) / 1000)))
}

/// Pauses or resumes the purge, or purges now.
pub(super) async fn steer(call: &Call) -> Result<Reply, Error> {
    let body = parse_object(&call.body)?;
    let members = || body.as_object().into_iter().flat_map(Object::iter);
    let place: Vec<_> = members().filter(|(name, _)| *name != "now").collect();
    match (place.as_slice(), body.get("now")) {
        ([("paused", Value::Bool(paused))], None) => call.engine().pause_purge(*paused),
        (place, Some(Value::Bool(true))) => {
            let owner = place_of(call.engine(), place)?;
            call.blocking(move |engine| purge_now(engine, owner.as_ref())).await?;
        }
        _ => return Err(not_understood()),
    }
    let sum = call.blocking(sum_value).await?;
    Ok(reply(&sum))
}

fn not_understood() -> Error {
    Error::BadRequest(
        "The body must be {\"paused\": true}, {\"paused\": false} or {\"now\": true}, the last with \"database\" and \
         \"container\", and \"api\" if it is not nosql, for one container alone; and nothing else."
            .to_owned(),
    )
}

/// Returns the container that a purge on demand is for; `None` for all.
fn place_of(engine: &Engine, place: &[(&str, &Value)]) -> Result<Option<Owner>, Error> {
    let (mut database, mut container, mut api) = (None, None, Api::NoSql);
    for (name, value) in place {
        match (*name, value.as_str()) {
            ("database", Some(text)) => database = Some(text),
            ("container", Some(text)) => container = Some(text),
            ("api", Some("nosql")) => api = Api::NoSql,
            ("api", Some("mongodb")) => api = Api::MongoDb,
            _ => return Err(not_understood()),
        }
    }
    match (database, container) {
        (None, None) if place.is_empty() => Ok(None),
        (Some(database), Some(container)) => Ok(Some(engine.owner(api, database, container)?)),
        _ => Err(not_understood()),
    }
}

/// Runs steps until nothing is due except items that an archive does not take; refused when no step would do anything.
fn purge_now(engine: &Engine, owner: Option<&Owner>) -> Result<(), Error> {
    if engine.purge_status().paused {
        return Err(Error::PurgeStopped("it is paused; send {\"paused\": false} first"));
    }
    if engine.clock_status()?.suspect.is_some() {
        return Err(Error::PurgeStopped("the clock is suspect; accept or reject its leap first"));
    }
    // A background attempt that began earlier may fail meanwhile, although items can be archived now.
    for _ in 0..2 {
        engine.retry_archives(owner)?;
        for _ in 0..STEPS {
            let PurgeReport { next_due, .. } = engine.purge_at_once(owner, STEP_ITEMS)?;
            if next_due.is_none_or(|due| engine.now().is_ok_and(|now| due > now)) {
                break;
            }
        }
        if engine.archive_sums().waiting == 0 {
            break;
        }
    }
    Ok(())
}
