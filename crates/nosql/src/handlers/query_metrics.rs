//! The metrics of a query in the formats that clients parse: query metrics, and the indexes it used or could have used.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use document::{Object, Value};
use engine::{IndexUse, QueryMetrics, QueryPage};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::handlers::call::Call;
use crate::message::fields::Field;
use crate::message::options::Flag;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

/// Adds the reports that the request asks for.
pub(crate) fn report(call: &Call, mut reply: Reply, page: &QueryPage) -> Result<Reply, Error> {
    let head = &call.head;
    if head.flag(Flag::QueryMetrics)? {
        reply = reply.with(Field::QueryMetrics, figures(&page.metrics));
    }
    if head.flag(Flag::IndexMetricsV2)? {
        let text = second_form(&page.index).to_json();
        return Ok(reply.with(Field::IndexUtilization, utf8_percent_encode(&text, NON_ALPHANUMERIC)));
    }
    if head.flag(Flag::IndexMetrics)? {
        return Ok(reply.with(Field::IndexUtilization, STANDARD.encode(first_form(&page.index).to_json())));
    }
    Ok(reply)
}

/// Times are always zero: an answer must not depend on the machine, nor on whether the purge has run.
const TIMES: [&str; 11] = [
    "totalExecutionTimeInMs",
    "queryCompileTimeInMs",
    "queryLogicalPlanBuildTimeInMs",
    "queryPhysicalPlanBuildTimeInMs",
    "queryOptimizationTimeInMs",
    "VMExecutionTimeInMs",
    "indexLookupTimeInMs",
    "documentLoadTimeInMs",
    "systemFunctionExecuteTimeInMs",
    "userFunctionExecuteTimeInMs",
    "writeOutputTimeInMs",
];

/// Formats the service's list, followed by the number of index entries read.
fn figures(metrics: &QueryMetrics) -> String {
    let QueryMetrics { index_entries, loaded_items, loaded_bytes, output_items, output_bytes } = metrics;
    let ratio = if *loaded_items == 0 { 1.0 } else { (*output_items as f64 / *loaded_items as f64).min(1.0) };
    let mut text = String::new();
    for name in TIMES {
        let _ = write!(text, "{name}=0.00;");
    }
    let _ = write!(
        text,
        "retrievedDocumentCount={loaded_items};retrievedDocumentSize={loaded_bytes};\
         outputDocumentCount={output_items};outputDocumentSize={output_bytes};indexUtilizationRatio={ratio:.2};\
         indexEntryCount={index_entries}"
    );
    text
}

fn first_form(index: &IndexUse) -> Value {
    object([
        ("UtilizedSingleIndexes", list(&index.utilized_single, |path| single(path))),
        ("PotentialSingleIndexes", list(&index.potential_single, |path| single(path))),
        ("UtilizedCompositeIndexes", list(&index.utilized_composite, |paths| composite(paths))),
        ("PotentialCompositeIndexes", list(&index.potential_composite, |paths| composite(paths))),
    ])
}

fn single(path: &str) -> Value {
    object([
        ("FilterExpression", "".into()),
        ("IndexSpec", path.into()),
        ("FilterPreciseSet", true.into()),
        ("IndexPreciseSet", true.into()),
        ("IndexImpactScore", "High".into()),
    ])
}

fn composite(paths: &[String]) -> Value {
    object([
        ("IndexSpecs", list(paths, |path| path.as_str().into())),
        ("IndexPreciseSet", true.into()),
        ("IndexImpactScore", "High".into()),
    ])
}

fn second_form(index: &IndexUse) -> Value {
    let half = |single: &[String], composite: &[Vec<String>]| {
        let one = |path: &String| object([("IndexSpec", path.as_str().into())]);
        let many = |paths: &Vec<String>| object([("IndexSpecs", list(paths, |path| path.as_str().into()))]);
        object([("SingleIndexes", list(single, one)), ("CompositeIndexes", list(composite, many))])
    };
    object([
        ("UtilizedIndexes", half(&index.utilized_single, &index.utilized_composite)),
        ("PotentialIndexes", half(&index.potential_single, &index.potential_composite)),
    ])
}

fn list<T>(entries: &[T], form: impl Fn(&T) -> Value) -> Value {
    Value::Array(entries.iter().map(form).collect())
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(Object::from_iter(members))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_name_every_index() {
        let index = IndexUse {
            utilized_single: vec!["/a/?".to_owned()],
            utilized_composite: vec![vec!["/a ASC".to_owned(), "/b DESC".to_owned()]],
            ..IndexUse::default()
        };
        let single = r#"{"FilterExpression":"","IndexSpec":"/a/?","FilterPreciseSet":true,"IndexPreciseSet":true,"IndexImpactScore":"High"}"#;
        let composite =
            r#"{"IndexSpecs":["/a ASC","/b DESC"],"IndexPreciseSet":true,"IndexImpactScore":"High"}"#;
        assert_eq!(
            first_form(&index).to_json(),
            format!(
                r#"{{"UtilizedSingleIndexes":[{single}],"PotentialSingleIndexes":[],"UtilizedCompositeIndexes":[{composite}],"PotentialCompositeIndexes":[]}}"#
            )
        );
        assert_eq!(
            second_form(&index).to_json(),
            r#"{"UtilizedIndexes":{"SingleIndexes":[{"IndexSpec":"/a/?"}],"CompositeIndexes":[{"IndexSpecs":["/a ASC","/b DESC"]}]},"PotentialIndexes":{"SingleIndexes":[],"CompositeIndexes":[]}}"#
        );
    }

    #[test]
    fn the_figures_are_a_list_that_clients_split_at_semicolons() {
        let metrics = QueryMetrics { loaded_items: 4, output_items: 1, ..QueryMetrics::default() };
        let text = figures(&metrics);
        assert!(
            text.split(';').all(|pair| pair.split_once('=').is_some_and(|(_, n)| n.parse::<f64>().is_ok()))
        );
        assert!(text.contains("retrievedDocumentCount=4;") && text.contains("indexUtilizationRatio=0.25"));
    }
}
