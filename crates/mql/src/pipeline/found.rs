//! What a search finds out about a document: how well a text fits, how far a place is. Stages read it through `$meta`.

use bson::{Value, ValueRef};

use crate::error::Result;
use crate::filter::{Filter, Near, TextSearch};
use crate::pipeline::chain::{Blocking, BlockingStep, Each, EachRow, Step, World};
use crate::pipeline::memory::Memory;
use crate::pipeline::row::Row;
use crate::pipeline::source::Order;
use crate::pipeline::text::as_double;
use crate::sort::Sort;

/// What is done to the rows of a scan before all stages. If the nearest are wanted first and do not come so, and no other order
/// is wanted, they are put in that order.
pub(crate) fn steps(filter: &Filter, sort: Option<&Sort>, order: Order) -> Vec<Box<dyn Step>> {
    let mut steps = Vec::new();
    if let Some(search) = filter.text() {
        steps.push(EachRow::step(Scoring(search.clone())));
    }
    if let Some(near) = filter.near() {
        steps.push(EachRow::step(Measuring(near.clone())));
        if sort.is_none() && order == Order::Any {
            let memory = Memory::of("$near");
            steps.push(BlockingStep::step(NearestFirst { rows: Vec::new(), given: None, all: 0, memory }));
        }
    }
    steps
}

/// Keeps something beside a row.
pub(crate) fn tell(row: &mut Row, name: &str, value: impl Into<Value>) {
    row.meta.get_or_insert_default().insert(name, value);
}

/// Tells how well each row fits the search.
struct Scoring(TextSearch);

impl Each for Scoring {
    fn apply(&mut self, mut row: Row, world: &mut World<'_>) -> Result<Option<Row>> {
        let known = row.meta.as_ref().is_some_and(|meta| meta.contains("textScore"));
        if !known && let Some(score) = self.0.score(row.view(), world.context)? {
            tell(&mut row, "textScore", score);
        }
        Ok(Some(row))
    }
}

/// Tells how far each row is.
struct Measuring(Near);

impl Each for Measuring {
    fn apply(&mut self, mut row: Row, world: &mut World<'_>) -> Result<Option<Row>> {
        let Some(distance) = self.0.distance(row.view(), world.context)? else { return Ok(None) };
        let place = self.0.path().get(row.view()).map_or(Value::Null, ValueRef::to_value);
        tell(&mut row, "geoNearDistance", distance);
        tell(&mut row, "geoNearPoint", place);
        Ok(Some(row))
    }
}

/// Rows by the distance in their meta.
struct NearestFirst {
    rows: Vec<(f64, Row)>,
    given: Option<std::vec::IntoIter<(f64, Row)>>,
    /// How many rows there were when the first was given.
    all: usize,
    memory: Memory,
}

impl Blocking for NearestFirst {
    fn take(&mut self, row: Row, world: &mut World<'_>) -> Result<()> {
        self.memory.take(row.bytes(), world.context)?;
        let told = row.meta.as_ref().and_then(|meta| meta.get("geoNearDistance"));
        let distance = told.and_then(|value| as_double(value.view())).unwrap_or(f64::INFINITY);
        self.rows.push((distance, row));
        Ok(())
    }

    fn give(&mut self, world: &mut World<'_>) -> Result<Option<Row>> {
        if self.given.is_none() {
            let mut rows = std::mem::take(&mut self.rows);
            world.context.spend(rows.len() as u64 * 8)?;
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
