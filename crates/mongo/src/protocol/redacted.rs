//! A command as it may be shown, to others or in an error: without passwords, and without what is long.

use bson::{Document, DocumentRef, Value, ValueRef};

/// Fields that hold a secret, wherever they stand.
const SECRET: [&str; 3] = ["pwd", "payload", "speculativeAuthenticate"];

/// Fields that every command has and that tell nothing about it.
const SAME: [&str; 1] = ["$clusterTime"];

/// How many items of a list are shown.
const ITEMS_MAX: usize = 10;

/// How deep documents are shown.
const DEPTH_MAX: usize = 10;

/// How many bytes of a text are shown.
pub(crate) const TEXT_BYTES_MAX: usize = 1024;

/// How many bytes of a command are shown: thousands of commands may be shown at once.
const COMMAND_BYTES_MAX: usize = 16 * 1024;

/// What every shown value counts for, beside its name and its text.
const VALUE_BYTES: usize = 16;

/// Returns the command without its secrets.
pub(crate) fn redacted(body: DocumentRef<'_>) -> Document {
    let mut left = COMMAND_BYTES_MAX;
    fields(body, |name| !SAME.contains(&name), 0, &mut left)
}

/// Returns the fields that are wanted, as long as bytes are left.
fn fields(
    document: DocumentRef<'_>,
    is_wanted: fn(&str) -> bool,
    depth: usize,
    left: &mut usize,
) -> Document {
    let mut shown_fields = Document::new();
    for (name, value) in document.iter().filter(|(name, _)| is_wanted(name)) {
        let shown_name = beginning(name, TEXT_BYTES_MAX);
        if !take(left, shown_name.len()) {
            shown_fields.push("...", "...");
            break;
        }
        let is_secret = SECRET.contains(&name);
        let shown_value = if is_secret { Value::from("xxx") } else { shown(value, depth, left) };
        shown_fields.push(shown_name, shown_value);
    }
    shown_fields
}

fn shown(value: ValueRef<'_>, depth: usize, left: &mut usize) -> Value {
    match value {
        ValueRef::Document(_) | ValueRef::Array(_) if depth >= DEPTH_MAX => Value::from("..."),
        ValueRef::Document(inner) => fields(inner, |_| true, depth + 1, left).into(),
        ValueRef::Array(items) => {
            let few: Vec<_> = items.iter().take(ITEMS_MAX + 1).collect();
            if few.len() > ITEMS_MAX {
                return Value::String(format!("[{} items]", items.len()));
            }
            let shown_item = |item| if take(left, 0) { shown(item, depth + 1, left) } else { "...".into() };
            Value::Array(few.into_iter().map(shown_item).collect())
        }
        ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::JavaScript(text) => {
            let begins = beginning(text, TEXT_BYTES_MAX);
            if !take(left, begins.len()) || begins.len() < text.len() {
                return Value::String(format!("{begins}..."));
            }
            value.to_value()
        }
        ValueRef::Binary(binary) if binary.bytes.len() > TEXT_BYTES_MAX => {
            Value::String(format!("[{} bytes]", binary.bytes.len()))
        }
        ValueRef::Regex(regex) if regex.pattern.len() > TEXT_BYTES_MAX => {
            Value::String(format!("/{}...", beginning(regex.pattern, TEXT_BYTES_MAX)))
        }
        ValueRef::DbPointer { .. } | ValueRef::JavaScriptWithScope { .. } => Value::from("..."),
        value => value.to_value(),
    }
}

/// Counts a value of so many bytes; false if as many are not left.
fn take(left: &mut usize, bytes: usize) -> bool {
    let rest = left.checked_sub(bytes + VALUE_BYTES);
    *left = rest.unwrap_or(0);
    rest.is_some()
}

/// Returns the beginning of a text, of so many bytes at most.
pub(crate) fn beginning(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_wherever_they_stand() {
        let user = Document::new().with("createUser", "ann").with("pwd", "secret");
        let start = Document::new().with("saslStart", 1).with("payload", "secret");
        let numbers: Vec<Value> = (0..11).map(Value::Int32).collect();
        let command = Document::new()
            .with("explain", user.clone())
            .with("pwd", "secret")
            .with("list", vec![Value::Document(user)])
            .with("speculativeAuthenticate", start)
            .with("$clusterTime", Document::new().with("clusterTime", 1))
            .with("long", numbers)
            .with("plain", 1);
        let shown_command = redacted(command.view());
        let text = bson::shell_text(ValueRef::Document(shown_command.view()));
        assert!(!text.contains("secret") && !text.contains("clusterTime"), "{text}");
        assert_eq!(shown_command.get("plain"), Some(&Value::Int32(1)));
        assert_eq!(shown_command.get("long"), Some(&Value::from("[11 items]")));
        assert!(text.contains("createUser: \"ann\", pwd: \"xxx\""), "{text}");
    }

    #[test]
    fn what_is_deep_is_cut() {
        let deep = (0..50).fold(Document::new(), |inner, _| Document::new().with("a", inner));
        let text = bson::shell_text(ValueRef::Document(redacted(deep.view()).view()));
        assert!(text.ends_with("\"...\" } } } } } } } } } } }"), "{text}");
    }

    /// A user shows its own commands to itself: a few large ones, or thousands that wait, must not take much memory.
    #[test]
    fn what_is_long_is_cut() {
        let many: Document = (0..100_000).map(|at| (format!("f{at}"), Value::Int32(at))).collect();
        let items: Vec<Value> = (0..1_000_000).map(Value::Int32).collect();
        let long = "\u{00e4}".repeat(1_000_000);
        let nested: Vec<Value> = (0..10).map(|_| Value::from(long.as_str())).collect();
        let command = Document::new()
            .with("find", "c")
            .with("filter", Document::new().with(long.as_str(), long.as_str()))
            .with("blob", bson::Binary { subtype: 0, bytes: vec![0; 1_000_000] })
            .with("items", items)
            .with("nested", nested.clone())
            .with("more", vec![Value::Array(nested.clone()), Value::Array(nested)])
            .with("many", many)
            .with("last", 1);
        let command_shown = redacted(command.view());
        assert_eq!(command_shown.get("find"), Some(&Value::from("c")));
        assert_eq!(command_shown.get("blob"), Some(&Value::from("[1000000 bytes]")));
        assert_eq!(command_shown.get("items"), Some(&Value::from("[1000000 items]")));
        let bytes = bson::RawDocument::from_document(&command_shown).as_bytes().len();
        assert!((10_000..3 * COMMAND_BYTES_MAX).contains(&bytes), "{bytes}");
        let text =
            bson::shell_text(ValueRef::Document(redacted(Document::new().with("a", "x").view()).view()));
        assert_eq!(text, "{ a: \"x\" }");
    }
}
