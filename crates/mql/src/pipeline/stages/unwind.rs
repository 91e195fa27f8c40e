//! `$unwind`: one row for each item of an array.

use std::sync::Arc;

use bson::{Document, Value, ValueRef};

use crate::error::{Error, Result};
use crate::path::FieldPath;
use crate::pipeline::chain::{ExecutionContext, Flow, Step, TREE_FACTOR};
use crate::pipeline::row::{Body, Row, document_bytes};
use crate::pipeline::values::type_name;

/// An `$unwind` as parsed.
#[derive(Debug)]
pub(crate) struct Unwind {
    pub(crate) path: FieldPath,
    pub(crate) index: Option<FieldPath>,
    /// Whether a row without items stays.
    preserve: bool,
}

impl Unwind {
    pub(crate) fn parse(argument: ValueRef<'_>) -> Result<Unwind> {
        let (path, index, preserve) = match argument {
            ValueRef::String(path) => (path, None, false),
            ValueRef::Document(document) => {
                let (mut path, mut index, mut preserve) = (None, None, false);
                for (name, value) in document.iter() {
                    match name {
                        "path" => path = Some(read_path(value)?),
                        "preserveNullAndEmptyArrays" => preserve = read_preserve(value)?,
                        "includeArrayIndex" => index = Some(read_index(value)?),
                        _ => {
                            let message = format!("unrecognized option to $unwind stage: {name}");
                            return Err(Error::location(28811, message));
                        }
                    }
                }
                let path =
                    path.ok_or_else(|| Error::location(28812, "no path specified to $unwind stage"))?;
                (path, index, preserve)
            }
            other => {
                let message = format!(
                    "expected either a string or an object as specification for $unwind stage, got {}",
                    type_name(other)
                );
                return Err(Error::location(15981, message));
            }
        };
        if path.is_empty() {
            return Err(Error::location(28812, "no path specified to $unwind stage"));
        }
        let path = FieldPath::parse_prefixed(path)?.ok_or_else(|| {
            let message = format!("path option to $unwind stage should be prefixed with a '$': {path}");
            Error::location(28818, message)
        })?;
        Ok(Unwind { path, index, preserve })
    }

    pub(crate) fn start(self: &Arc<Self>) -> Box<dyn Step> {
        Box::new(UnwindStep { unwind: Arc::clone(self), now: None, ended: false })
    }
}

fn read_path(value: ValueRef<'_>) -> Result<&str> {
    value.as_str().ok_or_else(|| {
        let message = format!("expected a string as the path for $unwind stage, got {}", type_name(value));
        Error::location(28808, message)
    })
}

fn read_preserve(value: ValueRef<'_>) -> Result<bool> {
    value.as_bool().ok_or_else(|| {
        let message = format!(
            "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got {}",
            type_name(value)
        );
        Error::location(28809, message)
    })
}

fn read_index(value: ValueRef<'_>) -> Result<FieldPath> {
    let Some(name) = value.as_str().filter(|name| !name.is_empty()) else {
        let message = format!(
            "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got {}",
            type_name(value)
        );
        return Err(Error::location(28810, message));
    };
    if name.starts_with('$') {
        let message =
            format!("includeArrayIndex option to $unwind stage should not be prefixed with a '$': {name}");
        return Err(Error::location(28822, message));
    }
    FieldPath::parse_aggregation(name)
}

struct UnwindStep {
    unwind: Arc<Unwind>,
    now: Option<Open>,
    ended: bool,
}

/// A row whose array is being unwound.
struct Open {
    /// The row and its document without the array.
    row: Row,
    rest: Document,
    items: Items,
    /// The cost of one copy of it.
    steps: u64,
    /// The bytes of all items, the number of all items, and the bytes of the rest of the document.
    bytes: (usize, usize, usize),
}

enum Items {
    /// The row stays as it is.
    AsItIs,
    /// The row stays without the field.
    Without,
    Of(std::iter::Enumerate<std::vec::IntoIter<Value>>),
}

impl Step for UnwindStep {
    fn push(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        execution.context.spend(1)?;
        let (all_bytes, mut all) = (document_bytes(row.view()), 0);
        let items = match self.unwind.path.get_nested(row.view()) {
            Some(ValueRef::Array(items)) if items.is_empty() => {
                if !self.unwind.preserve {
                    return Ok(());
                }
                Items::Without
            }
            Some(ValueRef::Array(items)) => {
                let items: Vec<Value> = items.iter().map(ValueRef::to_value).collect();
                execution.context.spend(items.len() as u64)?;
                all = items.len();
                Items::Of(items.into_iter().enumerate())
            }
            None | Some(ValueRef::Null | ValueRef::Undefined) if !self.unwind.preserve => return Ok(()),
            _ => Items::AsItIs,
        };
        let mut rest = row.view().to_document();
        match &items {
            Items::AsItIs => {}
            Items::Without => {
                self.unwind.path.remove(&mut rest);
            }
            // Keeps the field's position in the document, without a copy of the whole array for each item.
            Items::Of(_) => self.unwind.path.set(&mut rest, Value::Null),
        }
        let rest_bytes = document_bytes(rest.view());
        let steps = 1 + rest_bytes as u64 / 64;
        let row = Row { body: Body::Tree(Document::new()), ..row };
        let bytes = (all_bytes.saturating_sub(rest_bytes), all, rest_bytes);
        self.now = Some(Open { row, rest, items, steps, bytes });
        Ok(())
    }

    fn end(&mut self, _world: &mut ExecutionContext<'_>) -> Result<()> {
        self.ended = true;
        Ok(())
    }

    fn pop(&mut self, execution: &mut ExecutionContext<'_>) -> Result<Flow> {
        if let Some(open) = &mut self.now {
            execution.context.spend(open.steps)?;
            let next = match &mut open.items {
                Items::Of(items) => items.next().map(|(number, value)| (Some(value), Some(number))),
                Items::AsItIs | Items::Without => Some((None, None)),
            };
            let Some((value, number)) = next else {
                self.now = None;
                return self.pop(execution);
            };
            let last = number.is_none();
            let mut document = if last { std::mem::take(&mut open.rest) } else { open.rest.clone() };
            if let Some(value) = value {
                self.unwind.path.set(&mut document, value);
            }
            if let Some(index) = &self.unwind.index {
                index.set(&mut document, number.map_or(Value::Null, |number| Value::Int64(number as i64)));
            }
            let row = open.row.clone().with_made(document)?;
            if last {
                self.now = None;
            }
            return Ok(Flow::Row(row));
        }
        Ok(if self.ended { Flow::End } else { Flow::Wanting })
    }

    fn bytes(&self) -> usize {
        let Some(Open { items, bytes: (items_bytes, all, rest_bytes), .. }) = &self.now else { return 0 };
        let left = if let Items::Of(left) = items { left.len() } else { 0 };
        (rest_bytes + items_bytes / all.max(&1) * left).saturating_mul(TREE_FACTOR)
    }
}
