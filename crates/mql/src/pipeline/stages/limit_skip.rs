//! `$limit` and `$skip`.

use bson::ValueRef;

use crate::error::{Error, Result};
use crate::pipeline::chain::{ExecutionContext, Flow, Outbox, Step};
use crate::pipeline::row::Row;
use crate::pipeline::values::non_negative;

/// Reads `$limit`.
pub(crate) fn parse_limit(argument: ValueRef<'_>) -> Result<u64> {
    let limit = non_negative(argument, "$limit")
        .map_err(|why| Error::location(5_107_201, format!("invalid argument to $limit stage: {why}")))?;
    if limit == 0 {
        return Err(Error::location(15958, "the limit must be positive"));
    }
    Ok(limit)
}

/// Reads `$skip`.
pub(crate) fn parse_skip(argument: ValueRef<'_>) -> Result<u64> {
    non_negative(argument, "$skip")
        .map_err(|why| Error::location(5_107_200, format!("invalid argument to $skip stage: {why}")))
}

/// Passes so many rows and ends.
pub(crate) struct Limit {
    left: u64,
    outbox: Outbox,
}

impl Limit {
    pub(crate) fn step(limit: u64) -> Box<dyn Step> {
        Box::new(Limit { left: limit, outbox: Outbox::default() })
    }
}

impl Step for Limit {
    fn push(&mut self, row: Row, _world: &mut ExecutionContext<'_>) -> Result<()> {
        self.left = self.left.saturating_sub(1);
        self.outbox.put(row);
        if self.left == 0 {
            self.outbox.end();
        }
        Ok(())
    }

    fn end(&mut self, _world: &mut ExecutionContext<'_>) -> Result<()> {
        self.outbox.end();
        Ok(())
    }

    fn pop(&mut self, _world: &mut ExecutionContext<'_>) -> Result<Flow> {
        Ok(self.outbox.pop())
    }
}

/// Drops so many rows.
pub(crate) struct Skip {
    left: u64,
    outbox: Outbox,
}

impl Skip {
    pub(crate) fn step(skip: u64) -> Box<dyn Step> {
        Box::new(Skip { left: skip, outbox: Outbox::default() })
    }
}

impl Step for Skip {
    fn push(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        if self.left == 0 {
            self.outbox.put(row);
        } else {
            self.left -= 1;
            execution.context.spend(1)?;
        }
        Ok(())
    }

    fn end(&mut self, _world: &mut ExecutionContext<'_>) -> Result<()> {
        self.outbox.end();
        Ok(())
    }

    fn pop(&mut self, _world: &mut ExecutionContext<'_>) -> Result<Flow> {
        Ok(self.outbox.pop())
    }
}
