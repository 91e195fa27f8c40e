//! The model's items as the documents that the engine stores, and back.
//!
//! Written by hand as JSON text, not through the engine's own value types, so that both directions are checked.

use document::{Document, PartitionKey, ValueRef};

use crate::calendar;
use crate::model::{BadTtl, Body, DefaultTtl, Indexing, Instant, Ttl};
use crate::operation::CONTAINERS;

const TREE: &str = CONTAINERS[1];
/// The levels of the hierarchical keys; keys 0 and 1 share the first.
const LEVELS: [(&str, &str); 3] = [("x", "1"), ("x", "2"), ("y", "1")];
const FLAT: [Option<&str>; 3] = [Some("k0"), Some("k1"), None];

/// Returns the partition key that key number `key` stands for; the third of the flat container is "undefined".
pub(crate) fn partition_key(container: &str, key: usize) -> PartitionKey {
    let text = if container == TREE {
        let (first, second) = LEVELS[key];
        format!("[\"{first}\",\"{second}\"]")
    } else {
        match FLAT[key] {
            Some(value) => format!("[\"{value}\"]"),
            None => "[{}]".to_owned(),
        }
    };
    PartitionKey::from_header(&text).expect("the text is a partition key")
}

/// Returns how many properties of a document make up its partition key.
pub(crate) fn key_parts(container: &str, key: usize) -> usize {
    if container == TREE { 2 } else { usize::from(FLAT[key].is_some()) }
}

/// Returns the first level that the hierarchical keys 0 and 1 share.
pub(crate) fn key_prefix() -> PartitionKey {
    PartitionKey::from_header("[\"x\"]").expect("the text is a partition key")
}

/// Returns the JSON of a container definition.
pub(crate) fn definition(
    container: &str,
    default_ttl: DefaultTtl,
    indexing: Indexing,
    unique: bool,
    feed: Option<u32>,
    base: bool,
) -> String {
    let paths =
        if container == TREE { r#"["/a","/b"],"kind":"MultiHash""# } else { r#"["/pk"],"kind":"Hash""# };
    let default_ttl = match default_ttl {
        DefaultTtl::Off => None,
        DefaultTtl::Never => Some("-1".to_owned()),
        DefaultTtl::After(seconds) => Some(seconds.to_string()),
        DefaultTtl::Bad(BadTtl::NullOrObject) => Some("{}".to_owned()),
        DefaultTtl::Bad(bad) => Some(bad_text(bad).to_owned()),
    };
    let members = [
        Some(format!(r#""id":"{container}""#)),
        Some(format!(r#""partitionKey":{{"paths":{paths},"version":2}}"#)),
        unique.then(|| r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]}]}"#.to_owned()),
        default_ttl.map(|text| format!(r#""defaultTtl":{text}"#)),
        indexing_text(indexing).map(|text| format!(r#""indexingPolicy":{text}"#)),
        base.then(|| r#""ttlPropertyPath":"/base""#.to_owned()),
        feed.map(|minutes| format!(r#""changeFeedPolicy":{{"retentionDuration":{minutes}}}"#)),
    ];
    object(members)
}

fn indexing_text(indexing: Indexing) -> Option<&'static str> {
    match indexing {
        Indexing::Everything => None,
        Indexing::OnlyNumber => {
            Some(r#"{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}"#)
        }
        Indexing::NoPadding => Some(r#"{"excludedPaths":[{"path":"/pad/?"}]}"#),
        Indexing::Composite => Some(
            r#"{"compositeIndexes":[[{"path":"/n"},{"path":"/u","order":"descending"}],
                [{"path":"/_ts","order":"descending"},{"path":"/ttl"}]]}"#,
        ),
        Indexing::None => Some(r#"{"indexingMode":"none","automatic":false}"#),
    }
}

fn object<const N: usize>(members: [Option<String>; N]) -> String {
    let members: Vec<String> = members.into_iter().flatten().collect();
    format!("{{{}}}", members.join(","))
}

fn bad_text(bad: BadTtl) -> &'static str {
    match bad {
        BadTtl::Zero => "0",
        BadTtl::Negative => "-10",
        BadTtl::Fraction => "1.5",
        BadTtl::Text => "\"10\"",
        BadTtl::True => "true",
        BadTtl::TooLarge => "2147483648",
        BadTtl::NullOrObject => "null",
    }
}

/// Returns the JSON text of a `ttl`.
pub(crate) fn ttl_text(ttl: Ttl) -> Option<String> {
    match ttl {
        Ttl::Absent => None,
        Ttl::Never => Some("-1".to_owned()),
        Ttl::After(seconds) => Some(seconds.to_string()),
        Ttl::AfterPoint(seconds) => Some(format!("{seconds}.0")),
        Ttl::Bad(bad) => Some(bad_text(bad).to_owned()),
    }
}

fn instant_text(instant: Instant) -> String {
    match instant {
        Instant::Seconds(seconds) => seconds.to_string(),
        Instant::Date(seconds) => format!("\"{}\"", calendar::date_text(seconds)),
        Instant::Nonsense => "\"soon\"".to_owned(),
    }
}

fn instant(value: ValueRef<'_>) -> Instant {
    match value {
        ValueRef::Int(seconds) => Instant::Seconds(seconds.unsigned_abs()),
        ValueRef::String(text) => {
            calendar::milliseconds(text).map_or(Instant::Nonsense, |ms| Instant::Date(ms / 1000))
        }
        _ => Instant::Nonsense,
    }
}

/// Returns the document that a client would send.
pub(crate) fn to_document(container: &str, body: &Body) -> Document {
    let key = if container == TREE {
        let (first, second) = LEVELS[body.key];
        Some(format!(r#""a":"{first}","b":"{second}""#))
    } else {
        FLAT[body.key].map(|value| format!(r#""pk":"{value}""#))
    };
    let text = object([
        Some(format!(r#""id":"{}""#, body.id)),
        key,
        ttl_text(body.ttl).map(|ttl| format!(r#""ttl":{ttl}"#)),
        body.unique.map(|unique| format!(r#""u":{unique}"#)),
        body.base.map(|base| format!(r#""base":{}"#, instant_text(base))),
        body.gone.map(|gone| format!(r#""gone":{}"#, instant_text(gone))),
        Some(format!(r#""n":{},"pad":"{}""#, body.number, "x".repeat(body.padding))),
    ]);
    Document::from_json(text.as_bytes()).expect("the text is a document")
}

/// Returns the model's form of one of its documents; an unexpected member is an error.
pub(crate) fn from_document(container: &str, document: &Document) -> Result<Body, String> {
    let ValueRef::Object(object) = document.root() else { return Err("not an object".to_owned()) };
    let mut body = Body {
        id: String::new(),
        key: usize::MAX,
        ttl: Ttl::Absent,
        unique: None,
        number: -1,
        padding: 0,
        base: None,
        gone: None,
    };
    let mut levels = (None, None);
    let mut flat = None;
    for (name, value) in object.iter() {
        match (name, value) {
            ("id", ValueRef::String(id)) => id.clone_into(&mut body.id),
            ("pk", ValueRef::String(key)) => flat = Some(key),
            ("a", ValueRef::String(level)) => levels.0 = Some(level),
            ("b", ValueRef::String(level)) => levels.1 = Some(level),
            ("ttl", ValueRef::Int(-1) | ValueRef::Double(-1.0)) => body.ttl = Ttl::Never,
            ("ttl", ValueRef::Int(seconds)) => body.ttl = Ttl::After(seconds),
            ("ttl", ValueRef::Double(seconds)) => body.ttl = Ttl::AfterPoint(seconds as i64),
            ("u", ValueRef::Int(unique)) => body.unique = Some(unique),
            ("n", ValueRef::Int(number)) => body.number = number,
            ("pad", ValueRef::String(text)) => body.padding = text.len(),
            ("base", value) => body.base = Some(instant(value)),
            ("gone", value) => body.gone = Some(instant(value)),
            (name, value) => return Err(format!("unforeseen {name}: {value:?}")),
        }
    }
    let key = if container == TREE {
        LEVELS.iter().position(|(a, b)| levels == (Some(*a), Some(*b)))
    } else {
        FLAT.iter().position(|key| *key == flat)
    };
    body.key = key.ok_or_else(|| format!("an unforeseen partition key in {body:?}"))?;
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_survives_the_way_there_and_back() {
        for container in CONTAINERS {
            for key in 0..3 {
                for ttl in [Ttl::Absent, Ttl::Never, Ttl::After(5), Ttl::AfterPoint(7)] {
                    let (base, gone) = (Some(Instant::Nonsense), Some(Instant::Date(1_709_164_800)));
                    let (id, unique) = ("a".into(), Some(3));
                    let body = Body { id, key, ttl, unique, number: 2, padding: 4, base, gone };
                    assert_eq!(from_document(container, &to_document(container, &body)), Ok(body));
                }
            }
        }
    }
}
