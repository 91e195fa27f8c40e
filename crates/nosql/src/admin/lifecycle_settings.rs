//! The lifecycle settings of a container as members of a JSON object: one row each.

use document::{Object, Path, Value};
use engine::limits::{HOLD_REASON_BYTES_MAX, WATCH_MINUTES};
use engine::{ArchiveDirectory, Lifecycle};

use crate::protocol::error::Error;
use crate::protocol::json::{member, object, text};

/// A lifecycle setting.
struct LifecycleSetting {
    name: &'static str,
    /// The values it accepts beside null, which clears it.
    accepts: &'static str,
    /// Reads a value that is not null; false if it is not acceptable.
    set: fn(&mut Lifecycle, &Value) -> bool,
    clear: fn(&mut Lifecycle),
    /// Null if it is off.
    show: fn(&Lifecycle) -> Value,
}

const LIFECYCLE_SETTINGS: &[LifecycleSetting] = &[
    LifecycleSetting {
        name: "archive",
        accepts: "{\"directory\": name}, a name of up to 100 letters, digits, '-', '_' and '.', not beginning with '.'",
        set: |lifecycle, value| keep(&mut lifecycle.archive, directory(value)),
        clear: |lifecycle| lifecycle.archive = None,
        show: |lifecycle| {
            lifecycle
                .archive
                .as_ref()
                .map_or(Value::Null, |name| object([member("directory", text(name.as_str()))]))
        },
    },
    LifecycleSetting {
        name: "deletionRecord",
        accepts: "true",
        set: |lifecycle, value| {
            lifecycle.deletion_record = *value == Value::Bool(true);
            lifecycle.deletion_record
        },
        clear: |lifecycle| lifecycle.deletion_record = false,
        show: |lifecycle| if lifecycle.deletion_record { Value::Bool(true) } else { Value::Null },
    },
    LifecycleSetting {
        name: "expireAtPath",
        accepts: PATH,
        set: |lifecycle, value| keep(&mut lifecycle.expire_at_path, path(value)),
        clear: |lifecycle| lifecycle.expire_at_path = None,
        show: |lifecycle| show_path(lifecycle.expire_at_path.as_ref()),
    },
    LifecycleSetting {
        name: HISTORY,
        accepts: "a number of minutes from 1 to 1440",
        set: |lifecycle, value| {
            keep(&mut lifecycle.history_minutes, span(value).filter(|minutes| *minutes <= WATCH_MINUTES))
        },
        clear: |lifecycle| lifecycle.history_minutes = None,
        show: |lifecycle| lifecycle.history_minutes.map_or(Value::Null, |minutes| Value::Int(minutes.into())),
    },
    LifecycleSetting {
        name: "hold",
        accepts: "{\"reason\": text}, the text not empty and of 1024 bytes at most",
        set: |lifecycle, value| keep(&mut lifecycle.hold, reason(value)),
        clear: |lifecycle| lifecycle.hold = None,
        show: |lifecycle| {
            lifecycle
                .hold
                .as_ref()
                .map_or(Value::Null, |reason| object([member("reason", text(reason.as_str()))]))
        },
    },
    LifecycleSetting {
        name: "maxInstantExpiry",
        accepts: "a share of the living from 0 to 1",
        set: |lifecycle, value| keep(&mut lifecycle.max_instant_expiry, share(value)),
        clear: |lifecycle| lifecycle.max_instant_expiry = None,
        show: |lifecycle| {
            let share = |millionths| Value::Double(f64::from(millionths) / MILLION);
            lifecycle.max_instant_expiry.map_or(Value::Null, share)
        },
    },
    LifecycleSetting {
        name: "maxPurgeDelay",
        accepts: "a number of seconds from 1 on",
        set: |lifecycle, value| keep(&mut lifecycle.max_purge_delay, span(value)),
        clear: |lifecycle| lifecycle.max_purge_delay = None,
        show: |lifecycle| lifecycle.max_purge_delay.map_or(Value::Null, |seconds| Value::Int(seconds.into())),
    },
    LifecycleSetting {
        name: PREVIOUS_IMAGES,
        accepts: "true",
        set: |lifecycle, value| {
            lifecycle.previous_images = *value == Value::Bool(true);
            lifecycle.previous_images
        },
        clear: |lifecycle| lifecycle.previous_images = false,
        show: |lifecycle| if lifecycle.previous_images { Value::Bool(true) } else { Value::Null },
    },
    LifecycleSetting {
        name: "sliding",
        accepts: "true",
        set: |lifecycle, value| {
            lifecycle.sliding = *value == Value::Bool(true);
            lifecycle.sliding
        },
        clear: |lifecycle| lifecycle.sliding = false,
        show: |lifecycle| if lifecycle.sliding { Value::Bool(true) } else { Value::Null },
    },
    LifecycleSetting {
        name: "ttlPropertyPath",
        accepts: PATH,
        set: |lifecycle, value| keep(&mut lifecycle.ttl_property_path, path(value)),
        clear: |lifecycle| lifecycle.ttl_property_path = None,
        show: |lifecycle| show_path(lifecycle.ttl_property_path.as_ref()),
    },
];

const PATH: &str = "the path of a property, as /createdAt or /meta/createdAt";

/// How long the feed of all versions is kept; for a container its definition sets that.
pub(super) const HISTORY: &str = "historyMinutes";

/// Whether the feed of all versions includes the previous version of a replaced item; change streams request that
/// themselves.
pub(super) const PREVIOUS_IMAGES: &str = "previousImages";

/// Shares are kept in millionths.
const MILLION: f64 = 1_000_000.0;

/// Returns the names of all settings.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    LIFECYCLE_SETTINGS.iter().map(|setting| setting.name)
}

/// Reads the settings of a request, completely before anything is changed.
pub(super) fn read(body: &Value, lifecycle: &mut Lifecycle) -> Result<(), Error> {
    let members = body.as_object().into_iter().flat_map(Object::iter);
    for (name, value) in members {
        let Some(setting) = LIFECYCLE_SETTINGS.iter().find(|setting| setting.name == name) else {
            let known = names().collect::<Vec<_>>().join(", ");
            let name: String = name.chars().take(100).collect();
            return Err(Error::BadRequest(format!(
                "'{name}' is not a lifecycle setting; known are: {known}."
            )));
        };
        if *value == Value::Null {
            (setting.clear)(lifecycle);
        } else if !(setting.set)(lifecycle, value) {
            return Err(Error::BadRequest(format!(
                "'{}' must be {}, or null to switch it off.",
                setting.name, setting.accepts
            )));
        }
    }
    Ok(())
}

/// Returns all settings; those that are off are null.
pub(super) fn show(lifecycle: &Lifecycle) -> Value {
    object(LIFECYCLE_SETTINGS.iter().map(|setting| member(setting.name, (setting.show)(lifecycle))))
}

/// Stores a value if it could be read; returns false otherwise.
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
        let setting = |text: &str, lifecycle: &mut Lifecycle| {
            read(&document::parse_json(text.as_bytes()).unwrap(), lifecycle)
                .map_err(|error| error.to_string())
        };
        let mut lifecycle = Lifecycle::default();
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
            let off = lifecycle.clone();
            for value in good {
                let text = format!("{{\"{name}\":{value}}}");
                setting(&text, &mut lifecycle).unwrap();
                let same = |shown: &Value| match shown.as_f64() {
                    Some(number) => Some(number) == value.parse().ok(),
                    None => shown.to_json() == *value,
                };
                assert!(show(&lifecycle).get(name).is_some_and(same), "{text}");
            }
            for value in bad {
                let refused =
                    setting(&format!("{{\"{name}\":{value}}}"), &mut lifecycle.clone()).unwrap_err();
                assert!(refused.contains(name), "{refused}");
            }
            setting(&format!("{{\"{name}\":null}}"), &mut lifecycle).unwrap();
            assert_eq!(lifecycle, off);
        }
        assert!(setting(r#"{"immortality":true}"#, &mut lifecycle).unwrap_err().contains("immortality"));
    }
    #[test]
    fn the_documents_list_every_setting() {
        let page = include_str!("../../../../docs/holds-and-forecasts.md");
        for LifecycleSetting { name, .. } in LIFECYCLE_SETTINGS {
            assert!(page.contains(&format!("\n| `{name}` | ")), "{name}");
        }
    }
}
