//! Provisioned throughput on the wire: request headers, and the offer resource.
//!
//! Which figures are allowed is the engine's business; this room only reads and writes their JSON.

use document::{Object, Value};
use engine::{Offer, Throughput};

use crate::error::Error;
use crate::json::{member, object};

/// What `x-ms-offer-throughput` or the autopilot header asks for.
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

/// What the `content` of a replaced offer asks for.
pub(crate) fn from_offer(offer: &Value) -> Result<Throughput, Error> {
    let content = offer
        .get("content")
        .filter(|content| content.as_object().is_some())
        .ok_or_else(|| Error::BadRequest("An offer must have an object 'content'.".to_owned()))?;
    if let Some(settings) = content.get("offerAutopilotSettings").filter(|settings| !settings.is_null()) {
        return autoscale(settings);
    }
    let figure = content.get("offerThroughput").and_then(Value::as_i64).ok_or_else(|| {
        Error::BadRequest("An offer's content must have an integer 'offerThroughput'.".to_owned())
    })?;
    manual(figure)
}

/// The offer resource.
pub(crate) fn offer_json(offer: &Offer) -> Value {
    let rid = offer.rid.to_string();
    let mut content = Object::default();
    let figure = match offer.throughput {
        Throughput::Manual(figure) => figure,
        // What autoscale idles at: a tenth of its maximum.
        Throughput::Autoscale { max } => max / 10,
    };
    content.insert("offerThroughput".to_owned(), Value::Int(figure.into()));
    content.insert("offerIsRUPerMinuteThroughputEnabled".to_owned(), Value::Bool(false));
    if let Throughput::Autoscale { max } = offer.throughput {
        let settings = [
            member("tier", Value::Int(0)),
            member("maximumTierThroughput", Value::Int(max.into())),
            member("autoUpgrade", Value::Bool(false)),
            member("maxThroughput", Value::Int(max.into())),
        ];
        content.insert("offerAutopilotSettings".to_owned(), object(settings));
    }
    object([
        member("id", Value::String(rid.clone())),
        member("_rid", Value::String(rid.clone())),
        member("_self", Value::String(format!("offers/{rid}/"))),
        member("_etag", Value::String(offer.etag.to_string())),
        member("_ts", Value::Int(offer.ts as i64)),
        member("resource", Value::String(offer.resource.clone())),
        member("offerResourceId", Value::String(offer.resource_rid.clone())),
        member("offerType", Value::String("Invalid".to_owned())),
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
    Ok(Throughput::Autoscale { max: bounded(max) }.check()?)
}

/// Figures out of range become ones that the check refuses.
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
        assert!(matches!(autoscale, Some(Throughput::Autoscale { max: 4000 })));
        assert!(matches!(from_headers(None, None), Ok(None)));
    }
}
