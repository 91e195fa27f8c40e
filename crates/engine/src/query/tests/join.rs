//! Joins the parts of groups and aggregates that ranges send, as SDKs do.

use super::json::{Json, double, order};

/// Makes the ranges' parts of each group one row.
pub(super) fn join(
    parts: Vec<Json>,
    aggregate: Option<&str>,
    aliases: &serde_json::Map<String, Json>,
    grouped: bool,
) -> Vec<Json> {
    let mut groups: Vec<(Json, Vec<Option<Json>>)> = Vec::new();
    for part in parts {
        let key = if grouped { part["groupByItems"].clone() } else { Json::Null };
        // The rows of an aggregate without groups are bare if they are values.
        let payload = if grouped || aggregate.is_none() { part.get("payload").cloned() } else { Some(part) };
        match groups.iter_mut().find(|(other, _)| order(Some(other), Some(&key)).is_eq()) {
            Some((_, payloads)) => payloads.push(payload),
            None => groups.push((key, vec![payload])),
        }
    }
    groups.into_iter().filter_map(|(_, payloads)| joined(&payloads, aggregate, aliases)).collect()
}

/// Returns one row from the payloads of a group; a payload that is not there is undefined, and so is the row then.
fn joined(
    payloads: &[Option<Json>],
    aggregate: Option<&str>,
    aliases: &serde_json::Map<String, Json>,
) -> Option<Json> {
    if aggregate.is_none() && aliases.is_empty() {
        return payloads.first().cloned().flatten();
    }
    let payloads: Vec<&Json> =
        payloads.iter().map(|payload| payload.as_ref().expect("an array or object")).collect();
    if let Some(kind) = aggregate {
        return total(kind, payloads.iter().map(|payload| &payload[0]));
    }
    let member = |(alias, kind): (&String, &Json)| {
        let value = match kind.as_str() {
            Some(kind) => total(kind, payloads.iter().map(|payload| &payload[alias])),
            None => payloads.first().and_then(|payload| payload.get(alias).cloned()),
        };
        Some((alias.clone(), value?))
    };
    Some(Json::Object(aliases.iter().filter_map(member).collect()))
}

/// Returns one value from those of the ranges; none is undefined.
fn total<'a>(kind: &str, parts: impl Iterator<Item = &'a Json>) -> Option<Json> {
    let parts: Vec<&Json> = parts.collect();
    let sum = |of: fn(&Json) -> Option<f64>| parts.iter().map(|part| of(part)).sum::<Option<f64>>();
    match kind {
        "Count" | "CountIf" | "Sum" => double(sum(|part| part["item"].as_f64())?),
        "Average" => {
            let count = sum(|part| part["item"]["count"].as_f64())?;
            if count == 0.0 { None } else { double(sum(|part| part["item"]["sum"].as_f64())? / count) }
        }
        "Min" | "Max" => {
            let name = if kind == "Min" { "min" } else { "max" };
            let counted = parts.iter().filter(|part| part["item2"]["count"].as_u64() != Some(0));
            let values: Vec<Option<&Json>> = counted.map(|part| part["item2"].get(name)).collect();
            let values = values.into_iter().collect::<Option<Vec<_>>>()?;
            let by_order = |one: &&Json, other: &&Json| order(Some(one), Some(other));
            let values = values.into_iter();
            if kind == "Min" { values.min_by(by_order) } else { values.max_by(by_order) }.cloned()
        }
        "MakeList" | "MakeSet" => {
            let parts = parts.iter().map(|part| part["item"].as_array());
            let mut list: Vec<Json> = Vec::new();
            for value in parts.collect::<Option<Vec<_>>>()?.into_iter().flatten() {
                let is_known = |other: &Json| order(Some(other), Some(value)).is_eq();
                if kind == "MakeList" || !list.iter().any(is_known) {
                    list.push(value.clone());
                }
            }
            Some(Json::Array(list))
        }
        other => panic!("no aggregate that a plan names: {other}"),
    }
}
