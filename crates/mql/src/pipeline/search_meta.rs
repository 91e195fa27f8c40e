//! The metadata that a search adds to a row: text score and distance. Stages read it through `$meta`.

use bson::{Value, ValueRef};

use crate::error::Result;
use crate::filter::{Filter, Near, TextSearch};
use crate::pipeline::chain::{Blocking, BlockingStep, Each, EachRow, ExecutionContext, Step};
use crate::pipeline::memory::Memory;
use crate::pipeline::row::Row;
use crate::pipeline::source::Order;
use crate::pipeline::values::as_double;
use crate::sort::Sort;

/// Returns the steps for the rows of a scan before all stages. If the request requires the nearest first and no other
/// order, and the scan does not return them so, a step sorts them.
pub(crate) fn steps(filter: &Filter, sort: Option<&Sort>, order: Order) -> Vec<Box<dyn Step>> {
    let mut steps = Vec::new();
    if let Some(search) = filter.text() {
        steps.push(EachRow::step(TextScoreStep(search.clone())));
    }
    if let Some(near) = filter.near() {
        steps.push(EachRow::step(DistanceStep(near.clone())));
        if sort.is_none() && order == Order::Any {
            let memory = Memory::of("$near");
            steps.push(BlockingStep::step(NearestFirstStep {
                rows: Vec::new(),
                given: None,
                all: 0,
                memory,
            }));
        }
    }
    steps
}

/// Adds a field to the metadata of a row.
pub(crate) fn tell(row: &mut Row, name: &str, value: impl Into<Value>) {
    row.meta.get_or_insert_default().insert(name, value);
}

/// Adds the text score to each row.
struct TextScoreStep(TextSearch);

impl Each for TextScoreStep {
    fn apply(&mut self, mut row: Row, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        let known = row.meta.as_ref().is_some_and(|meta| meta.contains("textScore"));
        if !known && let Some(score) = self.0.score(row.view(), execution.context)? {
            tell(&mut row, "textScore", score);
        }
        Ok(Some(row))
    }
}

/// Adds the distance to each row.
struct DistanceStep(Near);

impl Each for DistanceStep {
    fn apply(&mut self, mut row: Row, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        let Some(distance) = self.0.distance(row.view(), execution.context)? else { return Ok(None) };
        let place = self.0.path().get(row.view()).map_or(Value::Null, ValueRef::to_value);
        tell(&mut row, "geoNearDistance", distance);
        tell(&mut row, "geoNearPoint", place);
        Ok(Some(row))
    }
}

/// Sorts rows by the distance in their metadata.
struct NearestFirstStep {
    rows: Vec<(f64, Row)>,
    given: Option<std::vec::IntoIter<(f64, Row)>>,
    /// The number of rows when the first was returned.
    all: usize,
    memory: Memory,
}

impl Blocking for NearestFirstStep {
    fn take(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        self.memory.take(row.bytes(), execution.context)?;
        let told = row.meta.as_ref().and_then(|meta| meta.get("geoNearDistance"));
        let distance = told.and_then(|value| as_double(value.view())).unwrap_or(f64::INFINITY);
        self.rows.push((distance, row));
        Ok(())
    }

    fn give(&mut self, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        if self.given.is_none() {
            let mut rows = std::mem::take(&mut self.rows);
            execution.context.spend(rows.len() as u64 * 8)?;
            rows.sort_by(|(left, _), (right, _)| left.total_cmp(right));
            self.all = rows.len();
            self.given = Some(rows.into_iter());
        }
        Ok(self.given.as_mut().and_then(Iterator::next).map(|(_, row)| row))
    }

    fn bytes(&self) -> usize {
        match &self.given {
            None => self.memory.used(),
            Some(rows) => self.memory.left(rows.len(), self.all),
        }
    }
}
