//! The two settings by which items expire: a container's `defaultTtl` (T4) and an item's own `ttl` (T5).
//!
//! Both take -1 or a whole number of seconds from 1 to 2147483647; `20.0` is a whole number. They differ in how they
//! read null: for a container it means off, for an item it is an error.

use document::{ObjectRef, Value};

use crate::types::definition_error::{Result, invalid, quote};

/// The largest number of seconds.
const SECONDS_MAX: u32 = i32::MAX as u32;

/// A container's default time to live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DefaultTtl {
    /// Absent: nothing expires, whatever the items' own `ttl`.
    #[default]
    Off,
    /// -1: items expire only by their own `ttl`.
    Never,
    /// Items without own `ttl` expire this many seconds after their last write; 1 to 2147483647.
    Seconds(u32),
}

impl DefaultTtl {
    /// Reads the member `defaultTtl`; absent and null are off.
    pub fn from_member(member: Option<&Value>) -> Result<Self> {
        match member {
            None | Some(Value::Null) => Ok(Self::Off),
            Some(value) => match value.as_i64() {
                Some(-1) => Ok(Self::Never),
                number => number.and_then(in_range).map(Self::Seconds).ok_or_else(|| {
                    invalid(format!(
                        "The input defaultTtl '{}' is invalid. Ensure to provide a nonzero positive integer less than \
                         or equal to '{SECONDS_MAX}', '-1' which means that items expire only by their own ttl, or \
                         null which means that nothing expires.",
                        quote(value)
                    ))
                }),
            },
        }
    }

    /// Returns the member `defaultTtl`, if there is one.
    pub fn to_member(self) -> Option<Value> {
        match self {
            Self::Off => None,
            Self::Never => Some(Value::Int(-1)),
            Self::Seconds(seconds) => Some(Value::Int(seconds.into())),
        }
    }
}

/// An item's own time to live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OwnTtl {
    /// The container's default applies.
    #[default]
    Absent,
    /// -1: never expires.
    Never,
    /// Expires this many seconds after its last write; 1 to 2147483647.
    Seconds(u32),
}

/// An item's `ttl` that is neither -1 nor a number of seconds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "The input ttl '{text}' is invalid. Ensure to provide a nonzero positive integer less than or equal to \
     '2147483647', or '-1' which means never expire."
)]
pub struct InvalidTtl {
    /// The offending JSON text, or its start if it is very long.
    pub text: String,
}

impl OwnTtl {
    /// Reads the root-level `ttl` of an item, whether or not the container has TTL on.
    pub fn of(root: ObjectRef<'_>) -> std::result::Result<Self, InvalidTtl> {
        let Some(value) = root.get("ttl") else { return Ok(Self::Absent) };
        match value.as_i64() {
            Some(-1) => Ok(Self::Never),
            number => number
                .and_then(in_range)
                .map(Self::Seconds)
                .ok_or_else(|| InvalidTtl { text: quote(&value.to_value()) }),
        }
    }
}

impl OwnTtl {
    /// Reads the root-level `ttl` of an item of the MongoDB API (T6). A value that is neither -1 nor whole seconds is
    /// ordinary user data.
    pub fn of_bson(root: bson::DocumentRef<'_>) -> Self {
        let number = match root.get("ttl") {
            Some(bson::ValueRef::Int32(number)) => i64::from(number),
            Some(bson::ValueRef::Int64(number)) => number,
            // A cast saturates, and a saturated value is out of range.
            Some(bson::ValueRef::Double(number)) if number.fract() == 0.0 => number as i64,
            _ => return Self::Absent,
        };
        match number {
            -1 => Self::Never,
            number => in_range(number).map_or(Self::Absent, Self::Seconds),
        }
    }
}

/// Returns the number of seconds if it is positive and in range.
fn in_range(number: i64) -> Option<u32> {
    u32::try_from(number).ok().filter(|seconds| (1..=SECONDS_MAX).contains(seconds))
}

/// Reads `analyticalStorageTtl`, which is stored for the client and has no effect here. 0 is an old way to say off.
pub(crate) fn analytical(value: &Value) -> Result<Option<Value>> {
    match value.as_i64() {
        Some(0) => Ok(None),
        Some(number) if number == -1 || in_range(number).is_some() => Ok(Some(Value::Int(number))),
        _ => Err(invalid(format!(
            "The input analyticalStorageTtl '{}' is invalid. Ensure to provide a positive integer less than or equal \
             to '{SECONDS_MAX}', '-1' which means never expire, or null which means off.",
            quote(value)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use document::parse_json;

    use super::*;

    const REFUSED: [&str; 12] =
        ["0", "-2", "-10", "1.5", "2147483648", "-1.5", "\"10\"", "true", "false", "{}", "[1]", "1e300"];

    fn json(text: &str) -> Value {
        parse_json(text.as_bytes()).unwrap()
    }

    #[test]
    fn t4_default_ttl_is_off_minus_one_or_whole_seconds() {
        for (text, expected) in [
            ("null", DefaultTtl::Off),
            ("-1", DefaultTtl::Never),
            ("-1.0", DefaultTtl::Never),
            ("1", DefaultTtl::Seconds(1)),
            ("20.0", DefaultTtl::Seconds(20)),
            ("2147483647", DefaultTtl::Seconds(2_147_483_647)),
        ] {
            assert_eq!(DefaultTtl::from_member(Some(&json(text))), Ok(expected), "{text}");
            assert_eq!(DefaultTtl::from_member(expected.to_member().as_ref()), Ok(expected), "{text}");
        }
        assert_eq!(DefaultTtl::from_member(None), Ok(DefaultTtl::Off));
        assert_eq!(DefaultTtl::Off.to_member(), None);
        assert_eq!(DefaultTtl::Seconds(20).to_member(), Some(Value::Int(20)));
    }

    #[test]
    fn t4_any_other_default_ttl_is_refused_and_named() {
        for text in REFUSED {
            let error = DefaultTtl::from_member(Some(&json(text))).unwrap_err().to_string();
            let value = json(text).to_json();
            assert!(error.starts_with(&format!("The input defaultTtl '{value}' is invalid. ")), "{error}");
            assert!(
                error.contains("'2147483647'") && error.contains("'-1'") && error.contains("null"),
                "{error}"
            );
        }
    }

    #[test]
    fn t5_own_ttl_is_absent_minus_one_or_whole_seconds() {
        for (text, expected) in [
            (r#"{"TTL":0,"x":{"ttl":0}}"#, OwnTtl::Absent),
            (r#"{"ttl":-1}"#, OwnTtl::Never),
            (r#"{"ttl":1}"#, OwnTtl::Seconds(1)),
            (r#"{"ttl":20.0}"#, OwnTtl::Seconds(20)),
            (r#"{"ttl":2147483647}"#, OwnTtl::Seconds(2_147_483_647)),
        ] {
            assert_eq!(OwnTtl::of(json(text).view().as_object().unwrap()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn t5_any_other_own_ttl_is_refused_in_the_words_of_the_service() {
        for text in REFUSED.into_iter().chain(["null"]) {
            let item = json(&format!(r#"{{"ttl":{text}}}"#));
            let error = OwnTtl::of(item.view().as_object().unwrap()).unwrap_err();
            assert_eq!(error.text, json(text).to_json());
            assert_eq!(
                error.to_string(),
                format!(
                    "The input ttl '{}' is invalid. Ensure to provide a nonzero positive integer less than or equal \
                     to '2147483647', or '-1' which means never expire.",
                    error.text
                )
            );
        }
        let long = json(&format!(r#"{{"ttl":"{}"}}"#, "é".repeat(5000)));
        assert!(OwnTtl::of(long.view().as_object().unwrap()).unwrap_err().text.len() < 500);
    }

    #[test]
    fn t6_own_ttl_in_bson_counts_if_it_is_a_whole_number_in_range() {
        use bson::{Decimal128, Document, Value};
        let own = |name: &str, value: Value| OwnTtl::of_bson(Document::new().with(name, value).view());
        for (value, expected) in [
            (Value::Int32(1), OwnTtl::Seconds(1)),
            (Value::Int32(-1), OwnTtl::Never),
            (Value::Int64(2_147_483_647), OwnTtl::Seconds(2_147_483_647)),
            (Value::Int64(-1), OwnTtl::Never),
            (Value::Double(20.0), OwnTtl::Seconds(20)),
            (Value::Double(-1.0), OwnTtl::Never),
        ] {
            assert_eq!(own("ttl", value.clone()), expected, "{value:?}");
        }
        for value in [
            Value::Int32(0),
            Value::Int32(-5),
            Value::Int64(2_147_483_648),
            Value::Double(20.5),
            Value::Double(f64::NAN),
            Value::Double(f64::INFINITY),
            Value::Double(1e300),
            Value::String("20".into()),
            Value::Null,
            Value::Bool(true),
            Value::Decimal128(Decimal128([0; 16])),
            Value::Array(vec![Value::Int32(5)]),
            Value::Document(Document::new().with("ttl", 5)),
        ] {
            assert_eq!(own("ttl", value.clone()), OwnTtl::Absent, "{value:?}");
        }
        assert_eq!(own("TTL", Value::Int32(5)), OwnTtl::Absent);
    }

    #[test]
    fn analytical_ttl_is_kept_when_it_is_one() {
        for (text, expected) in [("-1", Some(-1)), ("30.0", Some(30)), ("0", None)] {
            assert_eq!(analytical(&json(text)), Ok(expected.map(Value::Int)));
        }
        for text in ["-2", "1.5", "\"1\"", "true", "2147483648"] {
            assert!(analytical(&json(text)).is_err(), "{text}");
        }
    }
}
