//! The container of a world: its partition key and ranges, indexing policies and computed properties.

use document::{EffectiveRange, PartitionKey, parse_json};

use super::json::Json;
use super::tree::{Expr, Form, Projection, Rows, Select, Source, Step};
use super::world::World;
use crate::ContainerDefinition;

/// The container's default, in seconds.
pub(super) const DEFAULT_TTL: u64 = 30;

/// The paths of a partition key of three levels.
pub(super) const LEVELS: [&str; 3] = ["pk", "pk2", "pk3"];

/// The parts of partition keys, by level, as clients send them; `{}` is the part of items without one.
const KEYS: [&[&str]; 3] = [
    &[r#""k0""#, r#""k1""#, r#""k2""#, "7", "null", "{}"],
    &[r#""a""#, "7", "null", "{}"],
    &[r#""z""#, "true", "{}"],
];

pub(super) const POLICIES: &[&str] = &[
    "{}",
    r#"{"excludedPaths":[{"path":"/*"}]}"#,
    r#"{"includedPaths":[{"path":"/a/?"},{"path":"/t/*"}],"excludedPaths":[{"path":"/*"}]}"#,
    r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/*"},{"path":"/pk/?"}]}"#,
    r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/n"}],[{"path":"/s"},{"path":"/n","order":"descending"},{"path":"/a"}],
        [{"path":"/n","order":"descending"},{"path":"/_ts"}]]}"#,
    r#"{"compositeIndexes":[[{"path":"/pk"},{"path":"/n","order":"descending"}],[{"path":"/pk","order":"descending"},{"path":"/a"},
        {"path":"/s","order":"descending"}],[{"path":"/s"},{"path":"/a"}]]}"#,
];

impl World {
    /// Returns one to four ranges of equal size, some of them cut at a key: items that share a prefix may then lie in two.
    pub(super) fn ranges(&mut self, definition: &ContainerDefinition) -> Vec<EffectiveRange> {
        let equal = EffectiveRange::split(self.random.u32(1..=4), &definition.partition_key);
        if self.random.bool() {
            return equal;
        }
        let key = partition_key(&self.key()).effective(&definition.partition_key);
        let parts = equal.into_iter().flat_map(|range| {
            if range.contains(&key) && range.min != key {
                let below = EffectiveRange::new(range.min, key.clone());
                vec![below, EffectiveRange::new(key.clone(), range.max)]
            } else {
                vec![range]
            }
        });
        parts.collect()
    }

    /// Returns a partition key with all its levels.
    pub(super) fn key(&mut self) -> Vec<&'static str> {
        (0..self.levels.len()).map(|level| self.pick(KEYS[level])).collect()
    }

    pub(super) fn definition(&self) -> ContainerDefinition {
        let paths: Vec<String> = self.levels.iter().map(|level| format!(r#""/{level}""#)).collect();
        let computed = self.computed.iter().map(|(name, meaning)| {
            let query = Json::from(format!("SELECT VALUE {meaning} FROM c"));
            format!(r#"{{"name":"{name}","query":{query}}}"#)
        });
        let text = format!(
            r#"{{"id":"c","partitionKey":{{"paths":[{}],"kind":"{}","version":2}},"computedProperties":[{}],
                "defaultTtl":{DEFAULT_TTL},"indexingPolicy":{}}}"#,
            paths.join(","),
            self.kind,
            computed.collect::<Vec<_>>().join(","),
            self.policy,
        );
        ContainerDefinition::from_value(&parse_json(text.as_bytes()).expect("valid JSON")).expect("valid")
    }
}

pub(super) fn partition_key(key: &[&str]) -> PartitionKey {
    PartitionKey::from_header(&format!("[{}]", key.join(","))).expect("a key")
}

/// Returns the expressions of computed properties.
pub(super) fn computed() -> Vec<(&'static str, Expr)> {
    let c = |name| Expr::Path("c", vec![Step::Name(name)]);
    let boxed = |expr: Expr| Box::new(expr);
    let x = Source { name: "v", rows: Rows::Elements(c("t")) };
    let mut numbers = Select::new(Projection::Value(Expr::Path("v", Vec::new())), vec![x]);
    numbers.filter = Some(Expr::Call("IS_NUMBER", vec![Expr::Path("v", Vec::new())]));
    vec![
        ("either", Expr::Coalesce(boxed(c("a")), boxed(c("n")))),
        ("next", Expr::Plus(boxed(c("n")), boxed(Expr::Constant(Json::from(1))))),
        ("head", Expr::Path("c", vec![Step::Name("t"), Step::Index(0)])),
        ("numbers", Expr::Subquery(Form::Array, Box::new(numbers))),
    ]
}
