//! `/_bolide/ttl/{db}/{coll}`: rules, wishes and figures of one container or collection.

use document::Value;
use engine::{Api, DefaultTtl, DryRun, Engine, Forecast, Holder, Interval};

use super::{evidence, number, purge, reply, tally, wishes};
use crate::call::Call;
use crate::error::Error;
use crate::json::{member, object, parse_object, text};
use crate::response::Reply;

/// How many intervals a forecast has unless it is asked for another number.
const FORECAST_INTERVALS: usize = 24;

/// Rules, wishes and figures; with the parameter `forecast` what will expire when, with `defaultTtl` what that would kill at
/// once (T30).
pub(super) async fn show(call: &Call) -> Result<Reply, Error> {
    let holder = holder(call)?;
    let asked = (interval(call)?, default_ttl(call)?);
    let tell = move |engine: &Engine| {
        let mut told = describe(engine, &holder)?;
        let members = told.as_object_mut().expect("made as an object");
        if let Some((word, interval, count)) = asked.0 {
            let forecast = engine.forecast(&holder, interval, count)?;
            members.insert("forecast", show_forecast(word, interval, &forecast));
        }
        if let Some(default_ttl) = asked.1 {
            let dry_run = engine.dry_run(&holder, default_ttl)?;
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
    let intervals = forecast.intervals.iter().zip(0..).map(|(dying, at)| {
        object([
            member("from", number(from + at * interval.seconds())),
            member("items", number(dying.items)),
            member("bytes", number(dying.bytes)),
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
        member("exact", Value::Bool(dry_run.dying.exact)),
        member("dyingAtOnce", tally(dry_run.dying.tally)),
        member("livingThen", tally(dry_run.remaining())),
    ])
}

/// Changes what the owner wishes: the members that are there, and no other.
pub(super) async fn change(call: &Call) -> Result<Reply, Error> {
    let holder = holder(call)?;
    let body = parse_object(&call.body)?;
    wishes::read(&body, &mut holder.lifecycle())?;
    if holder.api() == Api::NoSql && body.get(wishes::HISTORY).is_some() {
        let text = format!("'{}' of a container is what its changeFeedPolicy says.", wishes::HISTORY);
        return Err(Error::BadRequest(text));
    }
    if holder.api() == Api::MongoDb && body.get(wishes::PREVIOUS_IMAGES).is_some() {
        let text = format!(
            "'{}' is for containers; of a collection its changeStreamPreAndPostImages says that.",
            wishes::PREVIOUS_IMAGES
        );
        return Err(Error::BadRequest(text));
    }
    let consent = call.head.consent()?;
    let change = move |engine: &Engine| {
        engine.change_lifecycle_with(&holder, consent, |wishes| {
            wishes::read(&body, wishes).expect("what a wish accepts depends on its value alone");
        })?;
        describe(engine, &holder)
    };
    Ok(reply(&call.blocking(change).await?))
}

/// The container or collection that the path names; the parameter `api` says whose.
pub(super) fn holder(call: &Call) -> Result<Holder, Error> {
    let api = match call.head.parameter("api") {
        None | Some("nosql") => Api::NoSql,
        Some("mongodb") => Api::MongoDb,
        Some(_) => return Err(Error::BadRequest("'api' must be nosql or mongodb.".to_owned())),
    };
    Ok(call.engine().holder(api, call.head.path.at(2), call.head.path.at(3))?)
}

fn describe(engine: &Engine, holder: &Holder) -> Result<Value, Error> {
    let (usage, figures) = (engine.usage_of(holder)?, engine.purge_figures(holder)?);
    let date_rules = holder.date_rules().into_iter().map(|rule| {
        object([
            member("index", text(rule.index)),
            member("expireAfterSeconds", Value::Int(rule.expire_after_seconds.into())),
            member("inForce", Value::Bool(rule.in_force)),
        ])
    });
    Ok(object([
        member("database", text(holder.database())),
        member("container", text(holder.name())),
        member("defaultTtl", holder.default_ttl().to_member().unwrap_or(Value::Null)),
        member("dateRules", Value::Array(date_rules.collect())),
        member("wishes", wishes::show(&holder.lifecycle())),
        member("living", tally(usage.living)),
        member("backlog", tally(usage.dead)),
        member("purge", purge::figures_value(engine, &figures)?),
        member("archive", evidence::archive_value(engine.archive_status(holder)?)),
        member("deletionRecord", evidence::records_value(engine, holder)?),
    ]))
}
