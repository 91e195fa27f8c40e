//! Specifications of indexes, as clients send them and as they are stored.

use bson::{Collation, Document, DocumentRef, Value, ValueRef};

use super::pattern::{self, Part, PartKind};
use super::text_options;
use super::wildcard::WildcardRules;
use super::{ID_INDEX_NAME, IndexSpec, Partial, UnknownOptions, as_double, cannot_create, show, ttl};
use crate::error::{Code, Error, Result};
use crate::filter::{Comparison, Filter, Node, Settings, Test};
use crate::text::TextRules;

/// Where a specification comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A client.
    Client(UnknownOptions),
    /// The store: collations name the order of the keys on disk, text indexes the rules of their terms.
    Store,
}

/// Known options. Those of the second list have an effect only for the index on `_id`, or for all indexes.
const OPTIONS: &[&str] = &[
    "unique",
    "sparse",
    "hidden",
    "expireAfterSeconds",
    "partialFilterExpression",
    "wildcardProjection",
    "weights",
    "default_language",
    "language_override",
    "textIndexVersion",
    "2dsphereIndexVersion",
    "finestIndexedLevel",
    "coarsestIndexedLevel",
    "background",
    "dropDups",
    "storageEngine",
];
const BASIC_OPTIONS: &[&str] = &["key", "name", "v", "ns", "collation"];
/// Options that are refused by name, because ignoring them would promise something that does not happen.
const UNSUPPORTED_OPTIONS: &[&str] =
    &["prepareUnique", "clustered", "columnstoreProjection", "bits", "min", "max", "bucketSize"];

/// Reads a specification. `inherited` is the collation of an index that names none.
pub(super) fn parse(spec: DocumentRef<'_>, origin: Origin, inherited: &Collation) -> Result<IndexSpec> {
    parse_fields(spec, origin, inherited).map_err(|error| in_context(error, spec))
}

/// Errors of the TTL option and of unknown options carry the specification themselves.
fn in_context(error: Error, spec: DocumentRef<'_>) -> Error {
    if error.message.contains("pecification: {") || error.message.contains("Index spec: {") {
        return error;
    }
    let message = format!("Error in specification {} :: caused by :: {}", show(spec), error.message);
    Error { message, ..error }
}

fn parse_fields(spec: DocumentRef<'_>, origin: Origin, inherited: &Collation) -> Result<IndexSpec> {
    let key = key(spec)?;
    let is_id = match pattern::id_direction(&key) {
        Some(direction) if direction.total_cmp(&1.0).is_ne() => {
            return Err(Error::bad_value(format!(
                "The field 'key' for an _id index must be {{_id: 1}}, but got {}",
                show(key.view())
            )));
        }
        direction => direction.is_some(),
    };
    check_options(spec, origin, is_id)?;
    let name = name(spec, is_id)?;
    check_version(spec)?;
    let collation = collation(spec, origin, inherited)?;
    if is_id {
        return Ok(IndexSpec::id(collation));
    }
    let parts = pattern::parse(key.view())?;
    let mut index = IndexSpec {
        name,
        unique: flag(spec, "unique")?,
        sparse: flag(spec, "sparse")?,
        hidden: flag(spec, "hidden")?,
        expire_after_seconds: None,
        partial: partial(spec, &collation)?,
        collation,
        wildcard: None,
        text: None,
        kept: kept(spec, &parts)?,
        key,
        parts,
    };
    if let Some(value) = spec.get("expireAfterSeconds") {
        index.expire_after_seconds = Some(ttl::parse(value, &index.key, spec)?);
    }
    index.wildcard = WildcardRules::parse(spec, &index.parts)?;
    if let Some((text, key, parts)) = TextRules::parse(spec, &index.key, &index.parts, origin)? {
        (index.text, index.key, index.parts) = (Some(text), key, parts);
    }
    check_together(&index)?;
    Ok(index)
}

fn key(spec: DocumentRef<'_>) -> Result<Document> {
    match spec.get("key") {
        Some(ValueRef::Document(key)) => Ok(key.to_document()),
        Some(other) => Err(wrong_type("key", "an object", other)),
        None => Err(missing("key")),
    }
}

fn missing(name: &str) -> Error {
    Error::failed_to_parse(format!("The '{name}' field is a required property of an index specification"))
}

fn wrong_type(name: &str, wanted: &str, value: ValueRef<'_>) -> Error {
    let kind = value.kind().alias();
    Error::type_mismatch(format!("The field '{name}' must be {wanted}, but got {kind}"))
}

fn check_options(spec: DocumentRef<'_>, origin: Origin, is_id: bool) -> Result<()> {
    let refused = |message: String| Err(Error::new(Code::INVALID_INDEX_SPECIFICATION_OPTION, message));
    for (name, _) in spec.iter() {
        if BASIC_OPTIONS.contains(&name) {
            continue;
        }
        let harmless = matches!(name, "background" | "dropDups");
        if is_id && OPTIONS.contains(&name) && !harmless {
            return refused(format!(
                "The field '{name}' is not valid for an _id index specification. Specification: {}",
                show(spec)
            ));
        }
        if UNSUPPORTED_OPTIONS.contains(&name) {
            return refused(format!(
                "The field '{name}' of an index specification is not supported. Specification: {}",
                show(spec)
            ));
        }
        let is_stored = origin == Origin::Store && name == text_options::TERMS;
        let is_ignored = origin == Origin::Client(UnknownOptions::Ignored);
        if !OPTIONS.contains(&name) && !is_stored && !is_ignored {
            return refused(format!(
                "The field '{name}' is not valid for an index specification. Specification: {}",
                show(spec)
            ));
        }
    }
    Ok(())
}

fn name(spec: DocumentRef<'_>, is_id: bool) -> Result<String> {
    let name = match spec.get("name") {
        Some(ValueRef::String(name)) => name,
        Some(other) => return Err(wrong_type("name", "a string", other)),
        None => return Err(missing("name")),
    };
    match name {
        _ if is_id => Ok(ID_INDEX_NAME.to_owned()),
        "*" => Err(Error::bad_value("The index name '*' is not valid.")),
        "" => Err(cannot_create("index name cannot be empty")),
        ID_INDEX_NAME => Err(Error::bad_value(
            "The index name '_id_' is reserved for the _id index, which must have key pattern {_id: 1}",
        )),
        name if name.contains('\0') => Err(cannot_create("index name cannot contain NUL bytes")),
        name => Ok(name.to_owned()),
    }
}

fn check_version(spec: DocumentRef<'_>) -> Result<()> {
    let Some(version) = spec.get("v") else { return Ok(()) };
    let Some(number) = as_double(&version.to_value()) else {
        return Err(wrong_type("v", "a number", version));
    };
    let known = [1.0, 2.0].iter().any(|known: &f64| known.total_cmp(&number).is_eq());
    if known {
        return Ok(());
    }
    let message = format!("Invalid index specification; cannot create an index with v={number}");
    Err(cannot_create(message))
}

fn collation(spec: DocumentRef<'_>, origin: Origin, inherited: &Collation) -> Result<Collation> {
    let read = if origin == Origin::Store { Collation::parse_stored } else { Collation::parse };
    match spec.get("collation") {
        None => Ok(inherited.clone()),
        Some(ValueRef::Document(collation)) if collation.is_empty() => {
            Err(Error::bad_value("The field 'collation' cannot be an empty object."))
        }
        Some(ValueRef::Document(collation)) => {
            read(collation).map_err(|error| Error::bad_value(error.to_string()))
        }
        Some(other) => Err(wrong_type("collation", "an object", other)),
    }
}

/// Returns a switch: a boolean, or a number that is zero or not.
pub(super) fn flag(spec: DocumentRef<'_>, name: &str) -> Result<bool> {
    let Some(value) = spec.get(name) else { return Ok(false) };
    if let ValueRef::Bool(value) = value {
        return Ok(value);
    }
    as_double(&value.to_value()).map(|number| number != 0.0).ok_or_else(|| {
        let shown = bson::shell_text(value);
        Error::type_mismatch(format!(
            "The field '{name}' has value {name}: {shown}, which is not convertible to bool"
        ))
    })
}

fn partial(spec: DocumentRef<'_>, collation: &Collation) -> Result<Option<Partial>> {
    let expression = match spec.get("partialFilterExpression") {
        None => return Ok(None),
        Some(ValueRef::Document(expression)) => expression,
        Some(other) => return Err(wrong_type("partialFilterExpression", "an object", other)),
    };
    let filter =
        Filter::parse(expression, &Settings { collation: collation.clone(), ..Settings::default() })?;
    check_partial(filter.root(), 0)?;
    Ok(Some(Partial { expression: expression.to_document(), filter }))
}

/// Refuses conditions that cannot be compared with those of a filter.
fn check_partial(node: &Node, depth: usize) -> Result<()> {
    let unsupported =
        |what: &str| Err(cannot_create(format!("Expression not supported in partial index: {what}")));
    match node {
        _ if depth > 50 => unsupported("nested too deep"),
        Node::True => Ok(()),
        Node::And(nodes) | Node::Or(nodes) => {
            nodes.iter().try_for_each(|node| check_partial(node, depth + 1))
        }
        Node::Field { test, .. } => {
            let comparable = matches!(test, Test::Compare(..) | Test::Exists | Test::Type(_))
                || matches!(test, Test::In(members) if members.patterns().is_empty());
            if comparable {
                return Ok(());
            }
            unsupported("an operator other than $eq, $in, $gt, $gte, $lt, $lte, $exists and $type")
        }
        Node::Nor(_) => unsupported("$nor"),
        Node::Not(inner) => match inner.as_ref() {
            Node::Field { test: Test::Exists, .. } => unsupported("$exists: false"),
            Node::Field { test: Test::Compare(Comparison::Equal, _), .. } => unsupported("$ne"),
            _ => unsupported("$not"),
        },
        _ => unsupported("an operator other than $and and $or"),
    }
}

/// Returns the options that are listed unchanged.
fn kept(spec: DocumentRef<'_>, parts: &[Part]) -> Result<Document> {
    let mut kept = Document::new();
    if parts.iter().any(|part| part.kind == PartKind::Sphere) {
        let version = spec.get("2dsphereIndexVersion").map_or(Value::Int32(3), ValueRef::to_value);
        match as_double(&version) {
            Some(number) if (1.0..=3.0).contains(&number) => kept.push("2dsphereIndexVersion", number as i32),
            _ => {
                let shown = bson::shell_text(version.view());
                return Err(cannot_create(format!(
                    "unsupported geo index version {{ 2dsphereIndexVersion: {shown} }}, only support versions: [1,2,3]"
                )));
            }
        }
        for name in ["finestIndexedLevel", "coarsestIndexedLevel"] {
            if let Some(value) = spec.get(name) {
                kept.push(name, value.to_value());
            }
        }
    }
    if let Some(engine) = spec.get("storageEngine") {
        if !matches!(engine, ValueRef::Document(_)) {
            return Err(wrong_type("storageEngine", "an object", engine));
        }
        kept.push("storageEngine", engine.to_value());
    }
    // Every build runs in the background; clients that request it check whether the option is listed.
    if let Some(background) = spec.get("background") {
        kept.push("background", background.to_value());
    }
    Ok(kept)
}

fn check_together(index: &IndexSpec) -> Result<()> {
    if index.sparse && index.partial.is_some() {
        return Err(cannot_create("cannot mix \"partialFilterExpression\" and \"sparse\" options"));
    }
    let has = |kind: PartKind| index.parts.iter().any(|part| part.kind == kind);
    if has(PartKind::Hashed) && index.unique {
        let message = "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.";
        return Err(Error::location(16764, message));
    }
    if has(PartKind::Wildcard) && (index.unique || index.sparse) {
        let option = if index.unique { "unique" } else { "sparse" };
        return Err(cannot_create(format!("Index type 'wildcard' does not support the '{option}' option")));
    }
    if has(PartKind::Text) && !index.collation.is_simple() {
        let collation = show(index.collation.to_document().view());
        return Err(cannot_create(format!("Index type 'text' does not support collation: {collation}")));
    }
    if index.is_collection_ttl() && (index.unique || index.partial.is_some()) {
        let option = if index.unique { "unique" } else { "partialFilterExpression" };
        return Err(cannot_create(format!(
            "The index on '_ts' that sets the time to live of the collection does not support the '{option}' option"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bson::parse_extended_json;

    use super::*;
    use crate::index::{Relation, TtlRule, compare_specs};

    fn read(json: &str) -> Result<IndexSpec> {
        let value = parse_extended_json(json).expect(json);
        IndexSpec::parse(value.as_document().expect("a document").view())
    }

    fn listed(json: &str) -> String {
        let index = read(json).expect(json);
        let listed = index.to_document();
        let again = IndexSpec::parse(listed.view()).expect("what is listed can be read");
        assert_eq!(again.to_document(), listed, "{json}");
        assert_eq!(compare_specs(&index, &again), Relation::Identical, "{json}");
        bson::to_extended_json(Value::Document(listed).view(), true)
    }

    #[test]
    fn what_is_accepted_is_listed() {
        for (given, expected) in [
            (r#"{"key":{"a":1},"name":"a_1"}"#, r#"{"v":2,"key":{"a":1},"name":"a_1"}"#),
            (
                r#"{"v":2,"key":{"a":1,"b.c":-1},"name":"x","unique":true,"sparse":1,"background":true,"hidden":false}"#,
                r#"{"v":2,"key":{"a":1,"b.c":-1},"name":"x","unique":true,"sparse":true,"background":true}"#,
            ),
            (r#"{"key":{"_id":1},"name":"any"}"#, r#"{"v":2,"key":{"_id":1},"name":"_id_"}"#),
            (r#"{"key":{"_id":"hashed"},"name":"h"}"#, r#"{"v":2,"key":{"_id":"hashed"},"name":"h"}"#),
            (
                r#"{"key":{"a":1},"name":"p","partialFilterExpression":{"b":{"$gt":5},"c":{"$exists":true}}}"#,
                r#"{"v":2,"key":{"a":1},"name":"p","partialFilterExpression":{"b":{"$gt":5},"c":{"$exists":true}}}"#,
            ),
            (
                r#"{"key":{"t":"text","u":"text","a":1},"name":"t","weights":{"t":10}}"#,
                r#"{"v":2,"key":{"_fts":"text","_ftsx":1,"a":1},"name":"t","weights":{"t":10,"u":1},"default_language":"english","language_override":"language","textIndexVersion":3}"#,
            ),
            (
                r#"{"key":{"$**":1},"name":"w","wildcardProjection":{"a":1,"_id":1}}"#,
                r#"{"v":2,"key":{"$**":1},"name":"w","wildcardProjection":{"a":1,"_id":1}}"#,
            ),
            (
                r#"{"key":{"g":"2dsphere"},"name":"g"}"#,
                r#"{"v":2,"key":{"g":"2dsphere"},"name":"g","2dsphereIndexVersion":3}"#,
            ),
            (
                r#"{"key":{"a":1},"name":"c","collation":{"locale":"en","strength":2}}"#,
                r#"{"v":2,"key":{"a":1},"name":"c","collation":{"locale":"en","caseLevel":false,"caseFirst":"off","strength":2,"numericOrdering":false,"alternate":"non-ignorable","maxVariable":"punct","normalization":false,"backwards":false,"version":"57.1"}}"#,
            ),
        ] {
            assert_eq!(listed(given), expected);
        }
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_code() {
        for (given, code, part) in [
            (r#"{"name":"x"}"#, 9, "The 'key' field is a required property"),
            (r#"{"key":{"a":1}}"#, 9, "The 'name' field is a required property"),
            (r#"{"key":5,"name":"x"}"#, 14, "The field 'key' must be an object, but got int"),
            (r#"{"key":{"a":1},"name":5}"#, 14, "The field 'name' must be a string"),
            (
                r#"{"key":{"a":1},"name":"x","foo":1}"#,
                197,
                "The field 'foo' is not valid for an index specification. Specification: { key: { a: 1 }, name: \"x\", foo: 1 }",
            ),
            (r#"{"key":{"a":1},"name":"x","prepareUnique":true}"#, 197, "'prepareUnique'"),
            (
                r#"{"key":{"_id":1},"name":"_id_","unique":true}"#,
                197,
                "is not valid for an _id index specification",
            ),
            (r#"{"key":{"_id":-1},"name":"x"}"#, 2, "must be {_id: 1}, but got { _id: -1 }"),
            (r#"{"key":{"a":1},"name":"_id_"}"#, 2, "reserved"),
            (r#"{"key":{"a":1},"name":"*"}"#, 2, "The index name '*' is not valid."),
            (r#"{"key":{},"name":"x"}"#, 67, "Index keys cannot be empty."),
            (r#"{"key":{"a":0},"name":"x"}"#, 67, "cannot be 0."),
            (r#"{"key":{"a":{"$numberDouble":"NaN"}},"name":"x"}"#, 67, "cannot be NaN."),
            (r#"{"key":{"a":true},"name":"x"}"#, 67, "cannot be of type bool"),
            (r#"{"key":{"a":"foo"},"name":"x"}"#, 67, "Unknown index plugin 'foo'"),
            (r#"{"key":{"a":"2d"},"name":"x"}"#, 67, "'2d' is not supported"),
            (r#"{"key":{"":1},"name":"x"}"#, 67, "empty field"),
            (r#"{"key":{"a..b":1},"name":"x"}"#, 67, "empty field"),
            (r#"{"key":{"a.$b":1},"name":"x"}"#, 67, "starts with '$'"),
            (r#"{"key":{"a":1,"a":-1},"name":"x"}"#, 2, "appears multiple times"),
            (r#"{"key":{"a":"hashed","b":"hashed"},"name":"x"}"#, 31303, "maximum of one"),
            (r#"{"key":{"a":"hashed"},"name":"x","unique":true}"#, 16764, "cannot guarantee uniqueness"),
            (r#"{"key":{"a":1},"name":"x","unique":"yes"}"#, 14, "not convertible to bool"),
            (
                r#"{"key":{"a":1},"name":"x","sparse":true,"partialFilterExpression":{"b":1}}"#,
                67,
                "cannot mix",
            ),
            (r#"{"key":{"a":1},"name":"x","partialFilterExpression":{"b":{"$ne":1}}}"#, 67, "$ne"),
            (r#"{"key":{"a":1},"name":"x","partialFilterExpression":5}"#, 14, "must be an object"),
            (r#"{"key":{"a":1},"name":"x","collation":{"locale":"xx"}}"#, 2, "locale"),
            (r#"{"key":{"$**":1},"name":"x","unique":true}"#, 67, "'wildcard' does not support"),
            (r#"{"key":{"$**":1,"a":1},"name":"x"}"#, 67, "compounding"),
            (
                r#"{"key":{"a":1},"name":"x","wildcardProjection":{"a":1}}"#,
                2,
                "only allowed in an 'wildcard'",
            ),
            (r#"{"key":{"t":"text"},"name":"x","default_language":"klingon"}"#, 67, "default_language"),
            (r#"{"key":{"t":"text"},"name":"x","weights":{"t":0}}"#, 67, "exclusive interval"),
            (r#"{"key":{"a":1},"name":"x","v":7}"#, 67, "v=7"),
        ] {
            let error = read(given).expect_err(given);
            assert_eq!(error.code, Code(code), "{given}: {error}");
            assert!(error.message.contains(part), "{given}: {error}");
        }
        let error = read(r#"{"key":{"a":0},"name":"x"}"#).expect_err("zero");
        assert_eq!(
            error.message,
            "Error in specification { key: { a: 0 }, name: \"x\" } :: caused by :: Values in the index key pattern cannot be 0."
        );
        let ignored = parse_extended_json(r#"{"key":{"a":1},"name":"x","foo":1}"#).expect("json");
        let ignored = ignored.as_document().expect("a document").view();
        assert!(IndexSpec::parse_in(ignored, UnknownOptions::Ignored, &Collation::simple()).is_ok());
    }

    fn with_expiry(key: &str, seconds: &str) -> Result<IndexSpec> {
        read(&format!(r#"{{"key":{key},"name":"x","expireAfterSeconds":{seconds}}}"#))
    }

    #[test]
    fn t27_seconds_of_a_ttl_index_are_checked() {
        for (seconds, result) in [
            ("0", Ok(0)),
            ("3600", Ok(3600)),
            ("2147483647", Ok(i32::MAX)),
            ("1.9", Ok(1)),
            ("-0.5", Ok(0)),
            (r#"{"$numberLong":"5"}"#, Ok(5)),
            (r#"{"$numberDecimal":"7.9"}"#, Ok(7)),
            ("\"5\"", Err("must be numeric, but received a type of 'string")),
            ("true", Err("must be numeric, but received a type of 'bool")),
            ("null", Err("must be numeric, but received a type of 'null")),
            (r#"{"$numberDouble":"NaN"}"#, Err("must not be NaN")),
            (r#"{"$numberDecimal":"NaN"}"#, Err("must not be NaN")),
            ("2147483648", Err("must be within the range of a 32-bit integer")),
            ("1e15", Err("must be within the range of a 32-bit integer")),
            (r#"{"$numberDouble":"Infinity"}"#, Err("must be within the range of a 32-bit integer")),
            (r#"{"$numberDecimal":"1E+6000"}"#, Err("must be within the range of a 32-bit integer")),
            ("-1", Err("cannot be less than 0")),
        ] {
            match (with_expiry(r#"{"a":1}"#, seconds), result) {
                (Ok(index), Ok(expected)) => {
                    assert_eq!(index.expire_after_seconds(), Some(expected), "{seconds}");
                    assert_eq!(index.to_document().get("expireAfterSeconds"), Some(&Value::Int32(expected)));
                    assert_eq!(index.ttl_rule(), Some(TtlRule::Field { seconds: expected }));
                }
                (Err(error), Err(text)) => {
                    assert_eq!(error.code, Code::CANNOT_CREATE_INDEX, "{seconds}");
                    assert!(error.message.ends_with(text), "{seconds}: {error}");
                    assert!(error.message.starts_with(". Index spec: { key: { a: 1 }"), "{error}");
                }
                (index, _) => panic!("{seconds}: {index:?}"),
            }
        }
        let refused = |key: &str| with_expiry(key, "5").expect_err(key);
        assert_eq!(refused(r#"{"_id":1}"#).code, Code::INVALID_INDEX_SPECIFICATION_OPTION);
        let compound = refused(r#"{"a":1,"b":1}"#);
        assert_eq!(compound.code, Code::CANNOT_CREATE_INDEX);
        assert!(compound.message.starts_with("TTL indexes are single-field indexes"), "{compound}");
        assert!(refused(r#"{"$**":1}"#).message.contains("cannot make a TTL index"));
        let hashed = with_expiry(r#"{"a":"hashed"}"#, "5").expect("created");
        assert_eq!(hashed.ttl_rule(), Some(TtlRule::Ineffective));
    }

    #[test]
    fn t26_the_index_on_the_last_write_sets_the_default() {
        for key in [r#"{"_ts":1}"#, r#"{"_ts":-1}"#, r#"{"_ts":1.0}"#] {
            for (seconds, expected) in [("10", 10), ("-1", -1), ("10.0", 10), ("2147483647", i32::MAX)] {
                let index = with_expiry(key, seconds).expect(seconds);
                assert_eq!(index.ttl_rule(), Some(TtlRule::Collection { seconds: expected }));
            }
            for seconds in
                ["0", "-2", "1.5", "-1.5", "2147483648", "\"5\"", "null", r#"{"$numberDouble":"NaN"}"#]
            {
                let error = with_expiry(key, seconds).expect_err(seconds);
                assert_eq!(error.code, Code::CANNOT_CREATE_INDEX, "{seconds}");
                assert!(error.message.contains("from 1 to 2147483647, or -1"), "{error}");
            }
        }
        let plain = read(r#"{"key":{"_ts":1},"name":"x"}"#).expect("an index on a user's field");
        assert_eq!(plain.ttl_rule(), None);
        let compound = with_expiry(r#"{"_ts":1,"a":1}"#, "5").expect_err("compound");
        assert!(compound.message.starts_with("TTL indexes are single-field"), "{compound}");
        assert!(read(r#"{"key":{"_ts":1},"name":"x","expireAfterSeconds":5,"unique":true}"#).is_err());
    }

    #[test]
    fn t26_t27_the_seconds_can_be_changed() {
        let index = with_expiry(r#"{"a":1}"#, "5").expect("an index");
        let changed = |index: &IndexSpec, value: Value| {
            index.with_expire_after_seconds(value.view()).map(|index| index.expire_after_seconds())
        };
        assert_eq!(changed(&index, 7.into()), Ok(Some(7)));
        let code = |index: &IndexSpec, value: Value| changed(index, value).expect_err("refused").code;
        assert_eq!(code(&index, "7".into()), Code::TYPE_MISMATCH);
        assert_eq!(code(&index, Value::Int32(-1)), Code::INVALID_OPTIONS);
        assert_eq!(code(&index, Value::Double(f64::NAN)), Code::INVALID_OPTIONS);
        assert_eq!(code(&index, Value::Int64(1 << 40)), Code::INVALID_OPTIONS);
        assert_eq!(code(&IndexSpec::id(Collation::simple()), 7.into()), Code::INVALID_OPTIONS);
        let plain = read(r#"{"key":{"a":1},"name":"x"}"#).expect("an index");
        assert_eq!(changed(&plain, 7.into()), Ok(Some(7)));
        let compound = read(r#"{"key":{"a":1,"b":1},"name":"x"}"#).expect("an index");
        assert_eq!(code(&compound, 7.into()), Code::INVALID_OPTIONS);
        let collection = with_expiry(r#"{"_ts":1}"#, "5").expect("an index");
        assert_eq!(changed(&collection, Value::Int32(-1)), Ok(Some(-1)));
        assert_eq!(code(&collection, Value::Int32(0)), Code::INVALID_OPTIONS);
    }

    #[test]
    fn indexes_side_by_side() {
        let a = r#"{"key":{"a":1},"name":"a_1"}"#;
        let text = r#"{"key":{"t":"text"},"name":"t"}"#;
        let ttl = r#"{"key":{"_ts":1},"name":"_ts_1","expireAfterSeconds":5}"#;
        let relation = |existing: &str, requested: &str| match compare_specs(
            &read(existing).expect(existing),
            &read(requested).expect(requested),
        ) {
            Relation::Different => "different".to_owned(),
            Relation::Identical => "identical".to_owned(),
            Relation::Conflict(error) => format!("{} {}", error.code.0, error.message),
        };
        for (existing, requested, expected) in [
            (a, a, "identical"),
            (a, r#"{"key":{"a":1.0},"name":"a_1","unique":false,"background":true}"#, "identical"),
            (a, r#"{"key":{"b":1},"name":"b_1"}"#, "different"),
            (a, r#"{"key":{"a":1},"name":"other"}"#, "85 Index already exists with a different name: a_1"),
            (
                a,
                r#"{"key":{"a":1},"name":"a_1","expireAfterSeconds":5}"#,
                "85 An equivalent index already exists with the same name",
            ),
            (
                a,
                r#"{"key":{"a":1},"name":"x","expireAfterSeconds":5}"#,
                "85 An equivalent index already exists with a different name and",
            ),
            (a, r#"{"key":{"b":1},"name":"a_1"}"#, "86 An existing index has the same name"),
            (a, r#"{"key":{"a":1},"name":"a_1","unique":true}"#, "86 "),
            (a, r#"{"key":{"a":1},"name":"x","unique":true}"#, "different"),
            (a, r#"{"key":{"a":1},"name":"x","partialFilterExpression":{"b":1}}"#, "different"),
            (a, r#"{"key":{"a":1},"name":"x","collation":{"locale":"en"}}"#, "different"),
            (text, r#"{"key":{"u":"text"},"name":"u"}"#, "67 only one text index per collection"),
            (ttl, r#"{"key":{"_ts":1},"name":"_ts_1","expireAfterSeconds":6}"#, "85 An equivalent"),
            (ttl, r#"{"key":{"_ts":-1},"name":"other","expireAfterSeconds":5}"#, "85 Only one index"),
        ] {
            let found = relation(existing, requested);
            assert!(found.starts_with(expected), "{requested}: {found}");
        }
    }
}
