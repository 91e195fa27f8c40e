//! The rows of a page: their text, and the keys that sort them.

use document::{ValueRef, encode_key, encode_key_descending, write_json};

use super::window::{RowAction, Window};
use super::{Origin, Resume};
use crate::evaluate::{Environment, evaluate};
use crate::functions::context::{Context, Fault};
use crate::logical::{Expression, Order, Projection, Query};
use crate::row::{Operand, Row};

/// Most bytes of one row's text. Each member is bounded, but a row can have many.
const ROW_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The page so far.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) rows: Vec<Vec<u8>>,
}

impl Output {
    /// Passes rows through the window in order; returns where to resume if there is more. A key without a row, such as a
    /// group whose value is undefined, only counts as passed.
    pub(super) fn show(
        &mut self,
        window: &mut Window,
        rows: impl Iterator<Item = (Vec<u8>, Option<Vec<u8>>)>,
        more: bool,
    ) -> Option<Resume> {
        let mut last = None;
        for (key, json) in rows {
            let Some(json) = json else {
                last = Some(key);
                continue;
            };
            match window.next() {
                RowAction::WindowIsFull => return None,
                RowAction::PageIsFull => {
                    return Some(Resume { passed: window.passed(), within: None, after: last });
                }
                RowAction::Skipped => window.pass(0),
                RowAction::Returned => {
                    window.pass(json.len());
                    self.rows.push(json);
                }
            }
            last = Some(key);
        }
        let go_on = more && !window.is_full() && last.is_some();
        go_on.then(|| Resume { passed: window.passed(), within: None, after: last })
    }
}

/// A row that fulfils the filter, with all that it takes to show it.
pub(super) struct OutputRow<'a> {
    pub(super) query: &'a Query,
    /// The item it comes from; `None` for groups.
    pub(super) item: Option<&'a dyn Row>,
    pub(super) environment: &'a Environment<'a>,
    pub(super) context: &'a Context,
}

/// A row among those that are sorted.
pub(super) enum SortedRow {
    /// Its text.
    Json(Vec<u8>),
    /// The item that it shows.
    Item(Box<dyn Row>),
}

impl SortedRow {
    pub(super) fn into_json(self) -> Vec<u8> {
        match self {
            SortedRow::Json(json) => json,
            SortedRow::Item(item) => {
                let mut out = Vec::new();
                item.write_json(&mut out);
                out
            }
        }
    }
}

impl std::fmt::Debug for SortedRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SortedRow::Json(json) => write!(f, "SortedRow::Json({} bytes)", json.len()),
            SortedRow::Item(_) => f.write_str("SortedRow::Item"),
        }
    }
}

impl OutputRow<'_> {
    fn value<'b>(&'b self, expression: &'b Expression) -> Option<Operand<'b>> {
        evaluate(expression, self.environment, self.context)
    }

    /// Returns the row's text; `None` if the row's value is undefined.
    pub(super) fn json(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        match (&self.query.select, self.item) {
            (_, Some(item)) if self.is_item() => item.write_json(&mut out),
            (Projection::Value(value), _) => write_json(self.value(value)?.view(), &mut out),
            (Projection::Members(members), _) => {
                out.push(b'{');
                for (name, member) in members {
                    let Some(value) = self.value(member) else { continue };
                    if out.len() > 1 {
                        out.push(b',');
                    }
                    write_json(ValueRef::String(name), &mut out);
                    out.push(b':');
                    write_json(value.view(), &mut out);
                    if out.len() > ROW_BYTES_MAX {
                        self.context.fail(Fault::OutOfMemory { what: "one row", limit: ROW_BYTES_MAX });
                        return None;
                    }
                }
                out.push(b'}');
            }
        }
        Some(out)
    }

    /// Returns the row to be sorted, with the bytes that it holds: a whole item is written only once it is sure to be
    /// returned, because smaller rows replace most of the others.
    pub(super) fn sorted(&self) -> Option<(SortedRow, usize)> {
        if let (true, Some(item)) = (self.is_item(), self.item)
            && let Some((copy, bytes)) = item.keep()
        {
            return Some((SortedRow::Item(copy), bytes));
        }
        let json = self.json()?;
        let bytes = json.len();
        Some((SortedRow::Json(json), bytes))
    }

    /// Returns whether the row is the whole item.
    fn is_item(&self) -> bool {
        matches!(&self.query.select, Projection::Value(Expression::Path { slot: 0, segments }) if segments.is_empty())
    }

    /// Returns bytes that are equal for equal rows; `None` if the row's value is undefined.
    pub(super) fn key(&self) -> Option<Vec<u8>> {
        let mut key = Vec::new();
        match &self.query.select {
            Projection::Value(value) => encode_key(Some(self.value(value)?.view()), &mut key),
            Projection::Members(members) => {
                for (_, member) in members {
                    encode_key(self.value(member).as_ref().map(Operand::view), &mut key);
                }
            }
        }
        Some(key)
    }

    /// Returns the values of the `ORDER BY` keys as bytes that sort as the query asks.
    pub(super) fn order_values(&self) -> Vec<u8> {
        let Order::Keys(keys) = &self.query.order else { return Vec::new() };
        // Room for a number or a short text each, and for what breaks ties.
        let mut out = Vec::with_capacity(32 * keys.len() + 16);
        for key in keys {
            encode_sort_key(self.value(&key.value).as_ref().map(Operand::view), key.descending, &mut out);
        }
        out
    }
}

/// Appends one value of a sort key.
pub(super) fn encode_sort_key(value: Option<ValueRef<'_>>, descending: bool, out: &mut Vec<u8>) {
    if descending {
        encode_key_descending(value, out);
    } else {
        encode_key(value, out);
    }
}

/// Returns the whole sort key of a row: values, where it comes from, its place among the rows from there.
pub(super) fn order_key(row: &OutputRow<'_>, origin: Origin<'_>, index: u32) -> Vec<u8> {
    let mut out = row.order_values();
    match origin.value {
        Some(value) => out.extend_from_slice(value),
        None => out.extend_from_slice(&tie(row.query, origin.number)),
    }
    out.extend_from_slice(&index.to_be_bytes());
    out
}

/// Returns how an item's number breaks ties: in the direction of the first key.
pub(super) fn tie(query: &Query, number: u64) -> [u8; 8] {
    let descends =
        matches!(&query.order, Order::Keys(keys) if keys.first().is_some_and(|key| key.descending));
    (if descends { !number } else { number }).to_be_bytes()
}
