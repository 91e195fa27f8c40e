//! Regular expressions of one request share one memory budget, wherever they are.

use bson::{Document, RawDocument, Value, parse_extended_json};
use mql::filter::{Filter, Settings};
use mql::pipeline::{self, Pipeline};
use mql::update::Update;
use mql::{Code, Result};

/// Fourteen letters that take two megabytes once they are compiled.
const DEAR: &str = r"(*UCP)\\w{40}";
/// How many of them no request may have.
const TOO_MANY: usize = 100;

fn document(text: &str) -> Document {
    parse_extended_json(text).unwrap().as_document().unwrap().clone()
}

/// Returns a text with `DEAR` in place of `R`, so many times, each with its number in place of `N`.
fn repeated(one: &str, times: usize) -> String {
    let each = (0..times).map(|number| one.replace('R', DEAR).replace('N', &number.to_string()));
    each.collect::<Vec<_>>().join(",")
}

fn is_refused<T>(outcome: Result<T>, what: &str) {
    let refusal = outcome.err().unwrap_or_else(|| panic!("{what} was read"));
    assert!(refusal.message.contains("too large together"), "{what}: {refusal:?}");
}

#[test]
fn no_filter_compiles_without_end() {
    for (before, one, after) in [
        (r#"{"$or":["#, r#"{"a":{"$regularExpression":{"pattern":"R","options":""}}}"#, "]}"),
        (r#"{"$and":["#, r#"{"a":{"$not":{"$regex":"R"}}}"#, "]}"),
        (r#"{"a":{"$in":["#, r#"{"$regularExpression":{"pattern":"R","options":"i"}}"#, "]}}"),
        (r#"{"a":{"$all":["#, r#"{"$regularExpression":{"pattern":"R","options":""}}"#, "]}}"),
        (r#"{"$expr":{"$and":["#, r#"{"$regexMatch":{"input":"$a","regex":"R"}}"#, "]}}"),
        (r#"{"$jsonSchema":{"properties":{"#, r#""aN":{"pattern":"R"}"#, "}}}"),
        (r#"{"$jsonSchema":{"patternProperties":{"#, r#""R|N":{}"#, "}}}"),
    ] {
        let text = |times| format!("{before}{}{after}", repeated(one, times));
        is_refused(Filter::parse(document(&text(TOO_MANY)).view(), &Settings::default()), one);
        Filter::parse(document(&text(2)).view(), &Settings::default()).unwrap();
    }
}

#[test]
fn stages_and_updates_share_the_room_of_their_request() {
    for one in [
        r#"{"$match":{"a":{"$regex":"R"}}}"#,
        r#"{"$set":{"x":{"$regexFind":{"input":"$a","regex":"R"}}}}"#,
        r#"{"$lookup":{"from":"c","as":"x","pipeline":[{"$match":{"a":{"$regex":"R"}}}]}}"#,
        r#"{"$facet":{"x":[{"$match":{"a":{"$regex":"R"}}}]}}"#,
    ] {
        let stages = document(&format!(r#"{{"p":[{}]}}"#, repeated(one, TOO_MANY)));
        let stages = stages.get("p").and_then(Value::as_array).unwrap();
        let stages: Vec<_> = stages.iter().filter_map(|stage| stage.view().as_document()).collect();
        let settings = pipeline::Settings { collection: Some("c".into()), ..pipeline::Settings::default() };
        is_refused(Pipeline::parse(&stages, &settings), one);
    }
    for update in [
        format!("[{}]", repeated(r#"{"$set":{"x":{"$regexFind":{"input":"$a","regex":"R"}}}}"#, TOO_MANY)),
        format!(r#"{{"$pull":{{{}}}}}"#, repeated(r#""aN":{"$regex":"R"}"#, TOO_MANY)),
    ] {
        let parsed = parse_extended_json(&update).unwrap();
        is_refused(Update::parse(parsed.view(), &[], &Settings::default()), &update[..20]);
    }
}

/// A statement releases its patterns, so that one command may have many statements.
#[test]
fn what_has_been_read_and_forgotten_takes_no_room() {
    let settings = Settings::default();
    let filter = document(&format!(r#"{{"$or":[{}]}}"#, repeated(r#"{"a":{"$regex":"R"}}"#, 4)));
    for _ in 0..TOO_MANY / 4 {
        Filter::parse(filter.view(), &settings).unwrap();
    }
}

/// Each document may compute another pattern; compiling them counts as work.
#[test]
fn computed_patterns_are_paid_for() {
    let filter = document(r#"{"$expr":{"$regexMatch":{"input":"a","regex":"$r"}}}"#);
    let filter = Filter::parse(filter.view(), &Settings::default()).unwrap();
    let item = RawDocument::from_document(&document(&format!(r#"{{"r":"{DEAR}"}}"#)));
    let context = mql::Context::at(0).with_steps_max(10_000_000);
    let refusal = (0..100).find_map(|_| filter.matches(item.view(), &context).err()).unwrap();
    assert_eq!(refusal.code, Code::MAX_TIME_MS_EXPIRED);
}
