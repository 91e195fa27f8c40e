//! Golden scripts: what each query gives on a few rows, or why it is refused.
//!
//! A script is a transcript. Lines that start with `row`, `key`, `access`, `#`, `>`, `?` or `@` are input; the line after a
//! query is its outcome, and the test is that running the input writes exactly the transcript again.
//!
//! ```text
//! row {"id":"1","n":5}             an item
//! key /tenant /user                the partition key, which also turns on printing of the access
//! > SELECT * FROM c WHERE c.n = @n a query
//! @n 5                             its parameters
//! 1                                the ids of the rows that match, or the error
//! ? FROM c WHERE c.n = 5           a bare filter
//! ```

use document::{PartitionKeyDefinition, Value, parse_json};
use query::{Access, Query, Row};

#[test]
fn scripts_hold() {
    for (name, script) in [
        ("access", include_str!("../scripts/access.txt")),
        ("conditions", include_str!("../scripts/conditions.txt")),
        ("paths", include_str!("../scripts/paths.txt")),
        ("refusals", include_str!("../scripts/refusals.txt")),
        ("statements", include_str!("../scripts/statements.txt")),
        ("undefined", include_str!("../scripts/undefined.txt")),
    ] {
        let written = Transcript::default().run(script);
        for (number, (expected, found)) in script.lines().zip(written.lines()).enumerate() {
            assert_eq!(found, expected, "{name}.txt line {}; the whole:\n{written}", number + 1);
        }
        assert_eq!(written.lines().count(), script.lines().count(), "{name}.txt; the whole:\n{written}");
    }
}

#[derive(Default)]
struct Transcript {
    rows: Vec<Value>,
    key: Option<PartitionKeyDefinition>,
    text: String,
}

impl Transcript {
    fn run(mut self, script: &str) -> String {
        let mut lines = script.lines().peekable();
        while let Some(line) = lines.next() {
            self.write(line);
            if let Some(json) = line.strip_prefix("row ") {
                self.rows.push(value(json));
            } else if let Some(paths) = line.strip_prefix("key ") {
                self.key = Some(key(paths));
            } else if let Some(text) = line.strip_prefix("> ").or(line.strip_prefix("? ")) {
                let mut parameters = Vec::new();
                while let Some(parameter) = lines.next_if(|line| line.starts_with('@')) {
                    self.write(parameter);
                    let (name, json) = parameter.split_once(' ').expect("a name and a value");
                    parameters.push((name.to_owned(), value(json)));
                }
                while lines.next_if(|line| !line.is_empty()).is_some() {}
                let parse = if line.starts_with('>') { query::parse } else { query::parse_filter };
                match parse(text, &parameters) {
                    Ok(query) => self.outcome(&query),
                    Err(error) => self.write(&format!("error: {error}")),
                }
            }
        }
        self.text
    }

    fn outcome(&mut self, query: &Query) {
        let ids = self.rows.iter().filter(|row| query.matches(*row as &dyn Row)).map(id).collect::<Vec<_>>();
        self.write(&format!("rows: {}", if ids.is_empty() { "none".to_owned() } else { ids.join(" ") }));
        if let Some(key) = &self.key {
            self.write(&format!("access: {}", describe(&query::access(query, key))));
        }
    }

    fn write(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

fn describe(access: &Access) -> String {
    if access.is_nothing() {
        return "nothing".to_owned();
    }
    let ids = access.ids.as_ref().map(|ids| format!("ids {}", ids.join(",")));
    let keys = access.keys.as_ref().map(|keys| {
        format!("keys {}", keys.iter().map(document::PartitionKey::to_json).collect::<Vec<_>>().join(","))
    });
    let bound = |bound: Option<u64>| bound.map(|bound| bound.to_string()).unwrap_or_default();
    let stamps = (access.stamps != query::Stamps::default())
        .then(|| format!("_ts {}..={}", bound(access.stamps.from), bound(access.stamps.to)));
    let parts = [ids, keys, stamps].into_iter().flatten().collect::<Vec<_>>();
    if parts.is_empty() { "everything".to_owned() } else { parts.join(" ") }
}

fn value(json: &str) -> Value {
    parse_json(json.as_bytes()).expect("a script holds valid JSON")
}

fn id(row: &Value) -> String {
    row.get("id").and_then(Value::as_str).expect("a row has an id").to_owned()
}

fn key(paths: &str) -> PartitionKeyDefinition {
    let kind = if paths.contains(' ') { "MultiHash" } else { "Hash" };
    let paths = paths.split(' ').map(|path| format!("{path:?}")).collect::<Vec<_>>().join(",");
    let json = format!(r#"{{"paths":[{paths}],"kind":"{kind}","version":2}}"#);
    PartitionKeyDefinition::from_value(&value(&json)).expect("a script defines a valid key")
}
