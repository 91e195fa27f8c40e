//! What an owner may wish for a container, as members of a JSON object: one row each.

use document::{Object, Path, Value};
use engine::limits::{HOLD_REASON_BYTES_MAX, WATCH_MINUTES};
use engine::{ArchiveDirectory, Lifecycle};

use crate::error::Error;
use crate::json::{member, object, text};

/// One wish.
struct Wish {
    name: &'static str,
    /// What it accepts beside null, which switches it off.
    accepts: &'static str,
    /// Reads a value that is not null; false if it is not acceptable.
    set: fn(&mut Lifecycle, &Value) -> bool,
    clear: fn(&mut Lifecycle),
    /// Null if it is off.
    show: fn(&Lifecycle) -> Value,
}

const WISHES: &[Wish] = &[
    Wish {
        name: "archive",
        accepts: "{\"directory\": name}, a name of up to 100 letters, digits, '-', '_' and '.', not beginning with '.'",
        set: |wishes, value| keep(&mut wishes.archive, directory(value)),
        clear: |wishes| wishes.archive = None,
        show: |wishes| {
            wishes
                .archive
                .as_ref()
                .map_or(Value::Null, |name| object([member("directory", text(name.as_str()))]))
        },
    },
    Wish {
        name: "deletionRecord",
        accepts: "true",
        set: |wishes, value| {
            wishes.deletion_record = *value == Value::Bool(true);
            wishes.deletion_record
        },
        clear: |wishes| wishes.deletion_record = false,
        show: |wishes| if wishes.deletion_record { Value::Bool(true) } else { Value::Null },
    },
    Wish {
        name: "expireAtPath",
        accepts: PATH,
        set: |wishes, value| keep(&mut wishes.expire_at_path, path(value)),
        clear: |wishes| wishes.expire_at_path = None,
        show: |wishes| show_path(wishes.expire_at_path.as_ref()),
    },
    Wish {
        name: HISTORY,
        accepts: "a number of minutes from 1 to 1440",
        set: |wishes, value| {
            keep(&mut wishes.history_minutes, span(value).filter(|minutes| *minutes <= WATCH_MINUTES))
        },
        clear: |wishes| wishes.history_minutes = None,
        show: |wishes| wishes.history_minutes.map_or(Value::Null, |minutes| Value::Int(minutes.into())),
    },
    Wish {
        name: "hold",
        accepts: "{\"reason\": text}, the text not empty and of 1024 bytes at most",
        set: |wishes, value| keep(&mut wishes.hold, reason(value)),
        clear: |wishes| wishes.hold = None,
        show: |wishes| {
            wishes
                .hold
                .as_ref()
                .map_or(Value::Null, |reason| object([member("reason", text(reason.as_str()))]))
        },
    },
    Wish {
        name: "maxInstantExpiry",
        accepts: "a share of the living from 0 to 1",
        set: |wishes, value| keep(&mut wishes.max_instant_expiry, share(value)),
        clear: |wishes| wishes.max_instant_expiry = None,
        show: |wishes| {
            let share = |millionths| Value::Double(f64::from(millionths) / MILLION);
            wishes.max_instant_expiry.map_or(Value::Null, share)
        },
    },
    Wish {
        name: "maxPurgeDelay",
        accepts: "a number of seconds from 1 on",
        set: |wishes, value| keep(&mut wishes.max_purge_delay, span(value)),
        clear: |wishes| wishes.max_purge_delay = None,
        show: |wishes| wishes.max_purge_delay.map_or(Value::Null, |seconds| Value::Int(seconds.into())),
    },
    Wish {
        name: PREVIOUS_IMAGES,
        accepts: "true",
        set: |wishes, value| {
            wishes.previous_images = *value == Value::Bool(true);
            wishes.previous_images
        },
        clear: |wishes| wishes.previous_images = false,
        show: |wishes| if wishes.previous_images { Value::Bool(true) } else { Value::Null },
    },
    Wish {
        name: "sliding",
        accepts: "true",
        set: |wishes, value| {
            wishes.sliding = *value == Value::Bool(true);
            wishes.sliding
        },
        clear: |wishes| wishes.sliding = false,
        show: |wishes| if wishes.sliding { Value::Bool(true) } else { Value::Null },
    },
    Wish {
        name: "ttlPropertyPath",
        accepts: PATH,
        set: |wishes, value| keep(&mut wishes.ttl_property_path, path(value)),
        clear: |wishes| wishes.ttl_property_path = None,
        show: |wishes| show_path(wishes.ttl_property_path.as_ref()),
    },
];

const PATH: &str = "the path of a property, as /createdAt or /meta/createdAt";

/// How long the feed of all versions is kept; of a container its definition says that.
pub(super) const HISTORY: &str = "historyMinutes";

/// Whether the feed of all versions shows what a replaced item was; change streams ask for that themselves.
pub(super) const PREVIOUS_IMAGES: &str = "previousImages";

/// Shares are kept in millionths.
const MILLION: f64 = 1_000_000.0;

/// What a request wishes, read whole before anything is changed.
pub(super) fn read(body: &Value, wishes: &mut Lifecycle) -> Result<(), Error> {
    let members = body.as_object().into_iter().flat_map(Object::iter);
    for (name, value) in members {
        let Some(wish) = WISHES.iter().find(|wish| wish.name == name) else {
            let known = WISHES.iter().map(|wish| wish.name).collect::<Vec<_>>().join(", ");
            let name: String = name.chars().take(100).collect();
            return Err(Error::BadRequest(format!(
                "'{name}' is not something that can be wished for; known are: {known}."
            )));
        };
        if *value == Value::Null {
            (wish.clear)(wishes);
        } else if !(wish.set)(wishes, value) {
            return Err(Error::BadRequest(format!(
                "'{}' must be {}, or null to switch it off.",
                wish.name, wish.accepts
            )));
        }
    }
    Ok(())
}

/// All wishes as they are; those that are off are null.
pub(super) fn show(wishes: &Lifecycle) -> Value {
    object(WISHES.iter().map(|wish| member(wish.name, (wish.show)(wishes))))
}

/// Keeps what could be read; false if nothing could.
fn keep<T>(slot: &mut Option<T>, read: Option<T>) -> bool {
    *slot = read;
    slot.is_some()
}

fn path(value: &Value) -> Option<Path> {
    Path::parse(value.as_str()?).ok()
}

fn show_path(path: Option<&Path>) -> Value {
    path.map_or(Value::Null, |path| text(path.as_str()))
}

fn span(value: &Value) -> Option<u32> {
    value.as_i64().and_then(|span| u32::try_from(span).ok()).filter(|span| *span > 0)
}

fn directory(value: &Value) -> Option<ArchiveDirectory> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    ArchiveDirectory::parse(members.get("directory")?.as_str()?)
}

fn reason(value: &Value) -> Option<String> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    let reason = members.get("reason")?.as_str()?;
    (1..=HOLD_REASON_BYTES_MAX).contains(&reason.len()).then(|| reason.to_owned())
}

fn share(value: &Value) -> Option<u32> {
    let share = value.as_f64().filter(|share| (0.0..=1.0).contains(share))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
    Some((share * MILLION).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_shown_and_null_switches_it_off() {
        let wish = |text: &str, wishes: &mut Lifecycle| {
            read(&document::parse_json(text.as_bytes()).unwrap(), wishes).map_err(|error| error.to_string())
        };
        let mut wishes = Lifecycle::default();
        for (name, good, bad) in [
            ("maxInstantExpiry", &["0", "0.5", "1"][..], &["-0.1", "1.1", "true", "\"0.5\"", "{}"][..]),
            ("previousImages", &["true"][..], &["false", "1", "\"true\""][..]),
            ("sliding", &["true"][..], &["false", "1", "\"true\""][..]),
            ("expireAtPath", &["\"/a\"", "\"/a/b\""][..], &["\"a\"", "\"\"", "1", "true"][..]),
            ("ttlPropertyPath", &["\"/created\""][..], &["\"created\"", "5"][..]),
            ("historyMinutes", &["1", "1440"][..], &["0", "-1", "1441", "true"][..]),
            ("maxPurgeDelay", &["1", "60"][..], &["0", "-1", "1.5", "5000000000", "\"60\""][..]),
            (
                "archive",
                &[r#"{"directory":"cold"}"#, r#"{"directory":"2026-11.v2"}"#][..],
                &["true", "\"cold\"", "{}", r#"{"directory":""}"#, r#"{"directory":"../x"}"#][..],
            ),
            ("deletionRecord", &["true"][..], &["false", "1", "\"true\"", "{}"][..]),
            (
                "hold",
                &[r#"{"reason":"case 7"}"#][..],
                &["true", "{}", r#"{"reason":""}"#, r#"{"reason":1}"#, r#"{"reason":"x","y":1}"#][..],
            ),
        ] {
            let off = wishes.clone();
            for value in good {
                let text = format!("{{\"{name}\":{value}}}");
                wish(&text, &mut wishes).unwrap();
                let same = |shown: &Value| match shown.as_f64() {
                    Some(number) => Some(number) == value.parse().ok(),
                    None => shown.to_json() == *value,
                };
                assert!(show(&wishes).get(name).is_some_and(same), "{text}");
            }
            for value in bad {
                let refused = wish(&format!("{{\"{name}\":{value}}}"), &mut wishes.clone()).unwrap_err();
                assert!(refused.contains(name), "{refused}");
            }
            wish(&format!("{{\"{name}\":null}}"), &mut wishes).unwrap();
            assert_eq!(wishes, off);
        }
        assert!(wish(r#"{"immortality":true}"#, &mut wishes).unwrap_err().contains("immortality"));
    }
    #[test]
    fn the_documents_list_every_wish() {
        let page = include_str!("../../../../docs/holds-and-forecasts.md");
        for Wish { name, .. } in WISHES {
            assert!(page.contains(&format!("\n| `{name}` | ")), "{name}");
        }
    }
}
