//! `/_bolide/ttl/{db}/{coll}`: rules, lifecycle settings and statistics of one container or collection.

use document::Value;
use engine::{Api, DefaultTtl, DryRun, Engine, Forecast, Interval, Owner};

use super::{evidence, lifecycle_settings, number, purge, reply, tally};
use crate::handlers::call::Call;
use crate::message::reply::Reply;
use crate::protocol::error::Error;
use crate::protocol::json::{member, object, parse_object, text};

/// The default number of intervals of a forecast.
const FORECAST_INTERVALS: usize = 24;

/// Returns rules, settings and statistics; with the parameter `forecast` future expiry, with `defaultTtl` which items
/// that rule would expire at once (T30).
pub(super) async fn show(call: &Call) -> Result<Reply, Error> {
    let owner = owner(call)?;
    let asked = (interval(call)?, default_ttl(call)?);
    let tell = move |engine: &Engine| {
        let mut told = describe(engine, &owner)?;
        let members = told.as_object_mut().expect("made as an object");
        if let Some((word, interval, count)) = asked.0 {
            let forecast = engine.forecast(&owner, interval, count)?;
            members.insert("forecast", show_forecast(word, interval, &forecast));
        }
        if let Some(default_ttl) = asked.1 {
            let dry_run = engine.dry_run(&owner, default_ttl)?;
            members.insert("dryRun", show_dry_run(default_ttl, &dry_run));
        }
        Ok(told)
    };
    Ok(reply(&call.blocking(tell).await?))
}

fn interval(call: &Call) -> Result<Option<(&'static str, Interval, usize)>, Error> {
    let (word, interval) = match call.head.parameter("forecast") {
        None => return Ok(None),
        Some("minute") => ("minute", Interval::Minute),
        Some("hour") => ("hour", Interval::Hour),
        Some("day") => ("day", Interval::Day),
        Some(_) => return Err(Error::BadRequest("'forecast' must be minute, hour or day.".to_owned())),
    };
    let count = call.head.parameter("count").map_or(Some(FORECAST_INTERVALS), |count| count.parse().ok());
    let count = count.ok_or_else(|| Error::BadRequest("'count' must be a number.".to_owned()))?;
    Ok(Some((word, interval, count)))
}

fn default_ttl(call: &Call) -> Result<Option<DefaultTtl>, Error> {
    let Some(word) = call.head.parameter("defaultTtl") else { return Ok(None) };
    let member = match word {
        "off" => None,
        number => Some(number.parse().map_or_else(|_| text(number), Value::Int)),
    };
    Ok(Some(DefaultTtl::from_member(member.as_ref()).map_err(engine::Error::from)?))
}

fn show_forecast(word: &str, interval: Interval, forecast: &Forecast) -> Value {
    let from = forecast.now.seconds();
    let intervals = forecast.intervals.iter().zip(0..).map(|(expiring, at)| {
        object([
            member("from", number(from + at * interval.seconds())),
            member("items", number(expiring.items)),
            member("bytes", number(expiring.bytes)),
        ])
    });
    object([
        member("interval", text(word)),
        member("exact", Value::Bool(forecast.exact)),
        member("overdue", tally(forecast.overdue)),
        member("intervals", Value::Array(intervals.collect())),
        member("later", tally(forecast.later)),
        member("never", tally(forecast.never)),
    ])
}

fn show_dry_run(default_ttl: DefaultTtl, dry_run: &DryRun) -> Value {
    object([
        member("defaultTtl", default_ttl.to_member().unwrap_or(Value::Null)),
        member("exact", Value::Bool(dry_run.expiring.exact)),
        member("expiringAtOnce", tally(dry_run.expiring.tally)),
        // The former name, for one version.
        member("dyingAtOnce", tally(dry_run.expiring.tally)),
        member("livingThen", tally(dry_run.remaining())),
    ])
}

/// Changes the settings that are members of the body, and no others.
pub(super) async fn change(call: &Call) -> Result<Reply, Error> {
    let owner = owner(call)?;
    let body = parse_object(&call.body)?;
    lifecycle_settings::read(&body, &mut owner.lifecycle())?;
    if owner.api() == Api::NoSql && body.get(lifecycle_settings::HISTORY).is_some() {
        let text =
            format!("'{}' of a container is what its changeFeedPolicy says.", lifecycle_settings::HISTORY);
        return Err(Error::BadRequest(text));
    }
    if owner.api() == Api::MongoDb && body.get(lifecycle_settings::PREVIOUS_IMAGES).is_some() {
        let text = format!(
            "'{}' is for containers; of a collection its changeStreamPreAndPostImages says that.",
            lifecycle_settings::PREVIOUS_IMAGES
        );
        return Err(Error::BadRequest(text));
    }
    let consent = call.head.consent()?;
    let change = move |engine: &Engine| {
        engine.change_lifecycle_with(&owner, consent, |settings| {
            lifecycle_settings::read(&body, settings).expect("the value was accepted before");
        })?;
        describe(engine, &owner)
    };
    Ok(reply(&call.blocking(change).await?))
}

/// Returns the container or collection that the path names; the parameter `api` selects the API.
pub(super) fn owner(call: &Call) -> Result<Owner, Error> {
    let api = match call.head.parameter("api") {
        None | Some("nosql") => Api::NoSql,
        Some("mongodb") => Api::MongoDb,
        Some(_) => return Err(Error::BadRequest("'api' must be nosql or mongodb.".to_owned())),
    };
    Ok(call.engine().owner(api, call.head.path.at(2), call.head.path.at(3))?)
}

fn describe(engine: &Engine, owner: &Owner) -> Result<Value, Error> {
    let (usage, figures) = (engine.usage_of(owner)?, engine.purge_figures(owner)?);
    let date_rules = owner.date_rules().into_iter().map(|rule| {
        object([
            member("index", text(rule.index)),
            member("expireAfterSeconds", Value::Int(rule.expire_after_seconds.into())),
            member("inForce", Value::Bool(rule.in_force)),
        ])
    });
    Ok(object([
        member("database", text(owner.database())),
        member("container", text(owner.name())),
        member("defaultTtl", owner.default_ttl().to_member().unwrap_or(Value::Null)),
        member("dateRules", Value::Array(date_rules.collect())),
        member("lifecycle", lifecycle_settings::show(&owner.lifecycle())),
        // The former name, for one version.
        member("wishes", lifecycle_settings::show(&owner.lifecycle())),
        member("living", tally(usage.living)),
        member("backlog", tally(usage.expired)),
        member("purge", purge::figures_value(engine, &figures)?),
        member("archive", evidence::archive_value(engine.archive_status(owner)?)),
        member("deletionRecord", evidence::records_value(engine, owner)?),
    ]))
}
