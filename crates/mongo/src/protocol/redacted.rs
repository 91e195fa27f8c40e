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

/// Returns the command without its secrets.
pub(crate) fn redacted(body: DocumentRef<'_>) -> Document {
    let shown = body.iter().filter(|(name, _)| !SAME.contains(name));
    shown.map(|(name, value)| (name, field(name, value, 0))).collect()
}

fn field(name: &str, value: ValueRef<'_>, depth: usize) -> Value {
    if SECRET.contains(&name) {
        return Value::from("xxx");
    }
    shown(value, depth)
}

fn shown(value: ValueRef<'_>, depth: usize) -> Value {
    match value {
        ValueRef::Document(_) | ValueRef::Array(_) if depth >= DEPTH_MAX => Value::from("..."),
        ValueRef::Document(inner) => inner
            .iter()
            .map(|(name, value)| (name, field(name, value, depth + 1)))
            .collect::<Document>()
            .into(),
        ValueRef::Array(items) if items.len() > ITEMS_MAX => {
            Value::String(format!("[{} items]", items.len()))
        }
        ValueRef::Array(items) => Value::Array(items.iter().map(|item| shown(item, depth + 1)).collect()),
        value => value.to_value(),
    }
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
}
