//! Provisioned throughput on the wire: request headers, and the offer resource.
//!
//! The engine defines which values are allowed; this module only reads and writes their JSON.

use document::{Object, Value};
use engine::{Charge, Offer, PerformanceLevel, Throughput};
use hyper::StatusCode;

use crate::message::fields::Field;
use crate::message::options::Flag;
use crate::message::reply::Reply;
use crate::protocol::error::Error;
use crate::protocol::json::{member, object};

/// The step to which a manual throughput is rounded up when it becomes an autoscale maximum.
const AUTOSCALE_STEP: u32 = 1000;
const INCREMENT_PERCENT_MAX: u32 = 100;

/// Parses `x-ms-offer-throughput` or the autopilot header.
pub(crate) fn from_headers(
    manual: Option<&str>,
    autopilot: Option<&str>,
) -> Result<Option<Throughput>, Error> {
    match (manual, autopilot) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(Error::BadRequest(
            "Manual throughput and autoscale settings cannot be given together; choose one.".to_owned(),
        )),
        (Some(text), None) => {
            let figure = text.trim().parse().map_err(|_| {
                Error::BadRequest(format!("The offer throughput '{text}' is not an integer."))
            })?;
            self::manual(figure).map(Some)
        }
        (None, Some(text)) => {
            let settings = document::parse_json(text.as_bytes())?;
            autoscale(&settings).map(Some)
        }
    }
}

/// Whether the kind of an offer changes. That requires a header: a client that meant another value of the same kind
/// must not end up with another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Migration {
    None,
    ToManual,
    ToAutoscale,
}

/// Parses the `content` of a replaced offer, in place of `current`.
pub(crate) fn from_offer(
    offer: &Value,
    current: Throughput,
    migration: Migration,
) -> Result<Throughput, Error> {
    let content = offer
        .get("content")
        .filter(|content| content.as_object().is_some())
        .ok_or_else(|| Error::BadRequest("An offer must have an object 'content'.".to_owned()))?;
    let settings = content.get("offerAutopilotSettings").filter(|settings| !settings.is_null());
    let figure = content.get("offerThroughput").and_then(Value::as_i64);
    match (current, migration, settings, figure) {
        (Throughput::Autoscale { max, .. }, Migration::ToManual, ..) => Ok(Throughput::Manual(max).check()?),
        (Throughput::Manual(figure), Migration::ToAutoscale, None, _) => {
            Ok(Throughput::autoscale(figure.next_multiple_of(AUTOSCALE_STEP)).check()?)
        }
        (_, Migration::ToAutoscale, Some(settings), _) => autoscale(settings),
        (Throughput::Autoscale { .. }, _, Some(settings), figure) => {
            let wanted = autoscale(settings)?;
            let is_new = figure.is_some_and(|figure| figure != i64::from(shown(current)));
            if is_new && wanted == current {
                Err(other_kind("autoscale", Flag::MigrateToManual))
            } else {
                Ok(wanted)
            }
        }
        (Throughput::Autoscale { .. }, ..) => Err(other_kind("autoscale", Flag::MigrateToManual)),
        (Throughput::Manual(_), _, Some(_), _) => Err(other_kind("manual", Flag::MigrateToAutoscale)),
        (Throughput::Manual(_), _, None, Some(figure)) => manual(figure),
        (Throughput::Manual(_), _, None, None) => {
            Err(Error::BadRequest("An offer's content must have an integer 'offerThroughput'.".to_owned()))
        }
    }
}

/// Returns the performance level in an offer's body, if it has one.
pub(crate) fn level(offer: &Value) -> Result<Option<PerformanceLevel>, Error> {
    let Some(given) = offer.get("offerType").filter(|given| !given.is_null()) else { return Ok(None) };
    match given.as_str().and_then(PerformanceLevel::from_name) {
        Some(level) => Ok(Some(level)),
        None => Err(Error::BadRequest(format!(
            "The offer's 'offerType' is {}; it must be \"S1\", \"S2\", \"S3\" or \"Invalid\".",
            given.to_json()
        ))),
    }
}

fn other_kind(kind: &str, flag: Flag) -> Error {
    Error::BadRequest(format!(
        "The offer has {kind} throughput. Send the header '{}: true' to change that.",
        flag.header()
    ))
}

/// Returns the current value: autoscale idles at a tenth of its maximum.
fn shown(throughput: Throughput) -> u32 {
    match throughput {
        Throughput::Manual(figure) => figure,
        Throughput::Autoscale { max, .. } => max / 10,
    }
}

/// Returns an offer as the answer to a read or a replace.
pub(crate) fn offer_reply(offer: &Offer, charge: Charge) -> Reply {
    Reply::json(StatusCode::OK, offer_json(offer).to_json())
        .charged(charge)
        .etag(offer.etag)
        .with(Field::MinThroughput, offer.least)
        // A replaced throughput is in force at once.
        .with(Field::ReplacePending, false)
}

/// Returns the offer resource.
pub(crate) fn offer_json(offer: &Offer) -> Value {
    let rid = offer.rid.to_string();
    let mut content = Object::default();
    content.insert("offerThroughput".to_owned(), Value::Int(shown(offer.throughput).into()));
    content.insert("offerIsRUPerMinuteThroughputEnabled".to_owned(), Value::Bool(false));
    let minimum = [member("maxThroughputEverProvisioned", Value::Int(offer.highest.into()))];
    content.insert("offerMinimumThroughputParameters".to_owned(), object(minimum));
    if let Throughput::Autoscale { max, increment_percent } = offer.throughput {
        let policy = increment_percent.map(|percent| {
            let policy = object([member("incrementPercent", Value::Int(percent.into()))]);
            member("autoUpgradePolicy", object([member("throughputPolicy", policy)]))
        });
        let settings = [
            member("tier", Value::Int(0)),
            member("maximumTierThroughput", Value::Int(max.into())),
            member("autoUpgrade", Value::Bool(false)),
            member("maxThroughput", Value::Int(max.into())),
        ];
        content.insert("offerAutopilotSettings".to_owned(), object(policy.into_iter().chain(settings)));
    }
    object([
        member("id", Value::String(rid.clone())),
        member("_rid", Value::String(rid.clone())),
        member("_self", Value::String(format!("offers/{rid}/"))),
        member("_etag", Value::String(offer.etag.to_string())),
        member("_ts", Value::Int(offer.ts as i64)),
        member("resource", Value::String(offer.resource.clone())),
        member("offerResourceId", Value::String(offer.resource_rid.clone())),
        member("offerType", Value::String(offer.level.name().to_owned())),
        member("offerVersion", Value::String("V2".to_owned())),
        member("content", Value::Object(content)),
    ])
}

fn manual(figure: i64) -> Result<Throughput, Error> {
    Ok(Throughput::Manual(bounded(figure)).check()?)
}

fn autoscale(settings: &Value) -> Result<Throughput, Error> {
    let max = settings.get("maxThroughput").and_then(Value::as_i64).ok_or_else(|| {
        Error::BadRequest("Autoscale settings must have an integer 'maxThroughput'.".to_owned())
    })?;
    let increment = settings.get("autoUpgradePolicy").and_then(|policy| policy.get("throughputPolicy"));
    let increment = increment.and_then(|policy| policy.get("incrementPercent")).and_then(Value::as_i64);
    let increment_percent = increment.map(bounded);
    if increment_percent.is_some_and(|percent| percent > INCREMENT_PERCENT_MAX) {
        return Err(Error::BadRequest(format!(
            "The increment of autoscale settings must be between 0 and {INCREMENT_PERCENT_MAX} percent."
        )));
    }
    Ok(Throughput::Autoscale { max: bounded(max), increment_percent }.check()?)
}

/// Converts values out of range to ones that the check refuses.
fn bounded(figure: i64) -> u32 {
    u32::try_from(figure.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_the_services_steps() {
        for good in [400, 500, 20_000, 1_000_000] {
            assert!(matches!(manual(good), Ok(Throughput::Manual(figure)) if i64::from(figure) == good));
        }
        for bad in [-400, 0, 300, 450, 1_000_100] {
            assert!(manual(bad).is_err(), "{bad}");
        }
        assert!(from_headers(Some("many"), None).is_err());
        assert!(from_headers(Some("400"), Some("{\"maxThroughput\":4000}")).is_err());
        assert!(from_headers(None, Some("{\"maxThroughput\":900}")).is_err());
        assert!(from_headers(None, Some("{}")).is_err());
        let autoscale = from_headers(None, Some("{\"maxThroughput\":4000}")).unwrap();
        assert_eq!(autoscale, Some(Throughput::autoscale(4000)));
        assert!(matches!(from_headers(None, None), Ok(None)));
    }

    #[test]
    fn the_kind_of_an_offer_changes_only_when_asked_for() {
        let (manual, auto) = (Throughput::Manual(500), Throughput::autoscale(4000));
        let figure = r#"{"content":{"offerThroughput":600}}"#;
        let settings =
            r#"{"content":{"offerThroughput":400,"offerAutopilotSettings":{"maxThroughput":7000}}}"#;
        let same = r#"{"content":{"offerThroughput":600,"offerAutopilotSettings":{"maxThroughput":4000}}}"#;
        for (body, current, migration, expected) in [
            (figure, manual, Migration::None, Some(Throughput::Manual(600))),
            (settings, auto, Migration::None, Some(Throughput::autoscale(7000))),
            (settings, manual, Migration::None, None),
            (figure, auto, Migration::None, None),
            // A client that changes its value in the offer that it has read, and leaves the rest.
            (same, auto, Migration::None, None),
            (figure, manual, Migration::ToAutoscale, Some(Throughput::autoscale(1000))),
            (settings, manual, Migration::ToAutoscale, Some(Throughput::autoscale(7000))),
            (settings, auto, Migration::ToManual, Some(Throughput::Manual(4000))),
            ("{}", manual, Migration::None, None),
        ] {
            let offer = document::parse_json(body.as_bytes()).unwrap();
            assert_eq!(
                from_offer(&offer, current, migration).ok(),
                expected,
                "{body} {current:?} {migration:?}"
            );
        }
    }
}
