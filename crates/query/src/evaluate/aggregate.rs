//! Aggregates: one value from the rows of a group.
//!
//! All aggregates ignore undefined values. The others:
//!
//! | | of nothing | of other types |
//! |---|---|---|
//! | `COUNT` | 0 | counts every defined value |
//! | `COUNTIF` | 0 | counts values that are exactly `true` |
//! | `SUM` | 0 | a value that is not a number makes the result undefined |
//! | `AVG` | undefined | the same |
//! | `MIN`, `MAX` | undefined | null < false < true < numbers < strings; an array or object makes the result undefined |
//! | `MAKELIST` | `[]` | keeps every defined value, in the order of the rows |
//! | `MAKESET` | `[]` | keeps every defined value once, where it came first |
//!
//! Sums are sums of doubles, in the order of the rows.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use document::{Value, ValueRef, encode_key, total_order};

use crate::evaluate::MemoryBudget;
use crate::functions::context::Context;
use crate::functions::list::weight;
use crate::functions::number;
use crate::logical::AggregateKind;

/// Most bytes that one `MAKELIST` or `MAKESET` collects.
const COLLECTION_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The state of an aggregate over the rows so far.
#[derive(Debug)]
pub(crate) struct Accumulator(State);

#[derive(Debug)]
enum State {
    Count(u64),
    CountIf(u64),
    Sum(Option<f64>),
    Average { sum: Option<f64>, count: u64 },
    Extreme { wanted: Ordering, so_far: Extreme },
    List { values: Vec<Value>, memory: MemoryBudget },
    Set { values: Vec<Value>, seen: BTreeSet<Vec<u8>>, memory: MemoryBudget },
}

#[derive(Debug)]
enum Extreme {
    Nothing,
    Value(Value),
    /// An array or object was among the values.
    Invalid,
}

impl Accumulator {
    /// Creates the state before the first row.
    pub(crate) fn new(kind: AggregateKind) -> Accumulator {
        let memory = |what| MemoryBudget::new(what, COLLECTION_BYTES_MAX);
        let extreme = |wanted| State::Extreme { wanted, so_far: Extreme::Nothing };
        Accumulator(match kind {
            AggregateKind::Count => State::Count(0),
            AggregateKind::CountIf => State::CountIf(0),
            AggregateKind::Sum => State::Sum(Some(0.0)),
            AggregateKind::Average => State::Average { sum: Some(0.0), count: 0 },
            AggregateKind::Min => extreme(Ordering::Less),
            AggregateKind::Max => extreme(Ordering::Greater),
            AggregateKind::MakeList => State::List { values: Vec::new(), memory: memory("a MAKELIST") },
            AggregateKind::MakeSet => {
                State::Set { values: Vec::new(), seen: BTreeSet::new(), memory: memory("a MAKESET") }
            }
        })
    }

    /// Adds the value of a row and returns by how many bytes the accumulator has grown. A collection that grows too
    /// large is recorded as a fault.
    pub(crate) fn add(&mut self, value: Option<ValueRef<'_>>, context: &Context) -> usize {
        let Some(value) = value else { return 0 };
        match &mut self.0 {
            State::Count(count) => *count += 1,
            State::CountIf(count) => *count += u64::from(value.as_bool() == Some(true)),
            State::Sum(sum) => *sum = plus(*sum, value),
            State::Average { sum, count } => {
                *sum = plus(*sum, value);
                *count += 1;
            }
            State::Extreme { wanted, so_far } => return so_far.meet(value, *wanted),
            State::List { values, memory } => {
                if memory.add_value(value, context) {
                    values.push(value.to_value());
                    return weight(value);
                }
            }
            State::Set { values, seen, memory } => {
                let mut key = Vec::new();
                encode_key(Some(value), &mut key);
                if !seen.contains(&key) && memory.add(key.len(), context) && memory.add_value(value, context)
                {
                    let grown = key.len() + weight(value);
                    seen.insert(key);
                    values.push(value.to_value());
                    return grown;
                }
            }
        }
        0
    }

    /// Adds `rows` rows at once, each with a defined value that is only counted.
    pub(crate) fn add_many(&mut self, rows: u64) {
        if let State::Count(count) = &mut self.0 {
            *count += rows;
        }
    }

    /// Returns the result, `None` if undefined.
    pub(crate) fn finish(self) -> Option<Value> {
        match self.0 {
            State::Count(count) | State::CountIf(count) => i64::try_from(count).ok().map(Value::Int),
            State::Sum(sum) => number(sum?),
            State::Average { count: 0, .. } => None,
            State::Average { sum, count } => number(sum? / count as f64),
            State::Extreme { so_far: Extreme::Value(value), .. } => Some(value),
            State::Extreme { .. } => None,
            State::List { values, .. } | State::Set { values, .. } => Some(Value::Array(values)),
        }
    }
}

impl Extreme {
    fn meet(&mut self, value: ValueRef<'_>, wanted: Ordering) -> usize {
        let better = match self {
            _ if matches!(value, ValueRef::Array(_) | ValueRef::Object(_)) => {
                *self = Extreme::Invalid;
                return 0;
            }
            Extreme::Nothing => true,
            Extreme::Value(best) => total_order(Some(value), Some(best.view())) == wanted,
            Extreme::Invalid => false,
        };
        if !better {
            return 0;
        }
        let before = if let Extreme::Value(best) = self { weight(best.view()) } else { 0 };
        *self = Extreme::Value(value.to_value());
        weight(value).saturating_sub(before)
    }
}

fn plus(sum: Option<f64>, value: ValueRef<'_>) -> Option<f64> {
    Some(sum? + value.as_f64()?)
}

#[cfg(test)]
mod tests {
    use AggregateKind as A;

    use super::*;
    use crate::functions::context::Fault;

    /// Returns the result over a JSON array, where the text `"undefined"` stands for a value that is not there.
    fn result(kind: AggregateKind, json: &str) -> String {
        let context = Context::new(0, 1);
        let values = document::parse_json(json.as_bytes()).unwrap();
        let mut accumulator = Accumulator::new(kind);
        for value in values.as_array().unwrap() {
            accumulator.add(Some(value.view()).filter(|value| value.as_str() != Some("undefined")), &context);
        }
        accumulator.finish().map_or("undefined".to_owned(), |value| value.to_json())
    }

    #[test]
    fn aggregates_follow_the_table() {
        let table = [
            (A::Count, "[]", "0"),
            (A::Count, r#"[1,null,"undefined",[],{}]"#, "4"),
            (A::CountIf, "[]", "0"),
            (A::CountIf, r#"[true,false,1,"true","undefined",true]"#, "2"),
            (A::Sum, "[]", "0"),
            (A::Sum, r#"["undefined"]"#, "0"),
            (A::Sum, "[1,2.5,-4]", "-0.5"),
            (A::Sum, "[9007199254740991,1]", "9007199254740992"),
            (A::Sum, "[1,null]", "undefined"),
            (A::Sum, r#"["a",1]"#, "undefined"),
            (A::Sum, "[1e308,1e308]", "undefined"),
            (A::Average, "[]", "undefined"),
            (A::Average, r#"["undefined"]"#, "undefined"),
            (A::Average, r#"[1,2,"undefined"]"#, "1.5"),
            (A::Average, "[1,true]", "undefined"),
            (A::Min, "[]", "undefined"),
            (A::Min, r#"["a",1,true,false,null]"#, "null"),
            (A::Min, r#"["a",1,true]"#, "true"),
            (A::Min, "[2,1.0,1]", "1.0"),
            (A::Max, r#"[null,1,"a","b",2]"#, r#""b""#),
            (A::Max, "[1,[2]]", "undefined"),
            (A::Max, "[{},1]", "undefined"),
            (A::Max, r#"["undefined",-1]"#, "-1"),
            (A::MakeList, "[]", "[]"),
            (A::MakeList, r#"[2,1,"undefined",2,[1]]"#, "[2,1,2,[1]]"),
            (A::MakeSet, "[]", "[]"),
            (A::MakeSet, r#"[2,1,2.0,"2",[1],[1.0],"undefined"]"#, r#"[2,1,"2",[1]]"#),
        ];
        for (kind, values, expected) in table {
            assert_eq!(result(kind, values), expected, "{kind:?} of {values}");
        }
    }

    #[test]
    fn collections_are_bounded() {
        let context = Context::new(0, 1);
        let large = "x".repeat(1024 * 1024);
        for (kind, repeats) in [(A::MakeList, true), (A::MakeSet, false)] {
            let mut accumulator = Accumulator::new(kind);
            for number in 0..20 {
                let text = if repeats { large.clone() } else { format!("{large}{number}") };
                accumulator.add(Some(ValueRef::String(&text)), &context);
            }
            assert!(matches!(context.fault(), Some(Fault::OutOfMemory { .. })), "{kind:?}");
        }
    }

    #[test]
    fn rows_can_be_counted_at_once() {
        let mut accumulator = Accumulator::new(A::Count);
        accumulator.add_many(40);
        accumulator.add(Some(ValueRef::Null), &Context::new(0, 1));
        assert_eq!(accumulator.finish(), Some(Value::Int(41)));
    }
}
