//! A chain of stages, executed without recursion and without a borrow of the source.
//!
//! ```text
//!              push row / end             push row / end
//!   feed  ---------------------->  step  ---------------------->  step  ----> pop: row, wanting, end
//! ```
//!
//! The last step is polled first. If it needs a row, the step before it is polled; a row that a step
//! returns is pushed into the step after it. A step keeps its state between two calls, so a cursor can keep a pipeline as it is.

use crate::context::Context;
use crate::error::Result;
use crate::pipeline::row::{Body, Row};
use crate::pipeline::source::Source;

/// The source and the context, lent to a running pipeline for one call.
pub(crate) struct ExecutionContext<'a> {
    pub(crate) source: &'a mut dyn Source,
    pub(crate) context: &'a Context,
}

/// The result of a request for a row.
#[derive(Debug)]
pub(crate) enum Flow {
    Row(Row),
    /// The step needs another row, or the end of its input.
    Wanting,
    /// The step is finished, whatever input is left.
    End,
}

/// A running stage. `push` and `end` are called only after [`Flow::Wanting`]; after `end` a step requests no more rows; after
/// [`Flow::End`] it returns the same again.
pub(crate) trait Step: Send {
    fn push(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()>;
    fn end(&mut self, execution: &mut ExecutionContext<'_>) -> Result<()>;
    fn pop(&mut self, execution: &mut ExecutionContext<'_>) -> Result<Flow>;
    /// Closes the scans that are open at the source.
    fn close(&mut self, _source: &mut dyn Source) {}
    /// Ends a request: releases what only that request could use.
    fn rest(&mut self) {}
    /// Returns how many bytes of rows it holds between two requests, roughly.
    fn bytes(&self) -> usize {
        0
    }
}

/// Steps that follow each other; itself a step.
pub(crate) struct Chain {
    steps: Vec<Box<dyn Step>>,
}

impl Chain {
    pub(crate) fn new(mut steps: Vec<Box<dyn Step>>) -> Chain {
        if steps.is_empty() {
            steps.push(EachRow::step(Pass));
        }
        Chain { steps }
    }
}

impl Step for Chain {
    fn push(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        self.steps[0].push(row, execution)
    }

    fn end(&mut self, execution: &mut ExecutionContext<'_>) -> Result<()> {
        self.steps[0].end(execution)
    }

    fn pop(&mut self, execution: &mut ExecutionContext<'_>) -> Result<Flow> {
        let last = self.steps.len() - 1;
        let mut at = last;
        loop {
            match self.steps[at].pop(execution)? {
                Flow::Wanting if at > 0 => at -= 1,
                Flow::Row(row) if at < last => {
                    at += 1;
                    self.steps[at].push(row, execution)?;
                }
                Flow::End if at < last => {
                    at += 1;
                    self.steps[at].end(execution)?;
                }
                flow => return Ok(flow),
            }
        }
    }

    fn close(&mut self, source: &mut dyn Source) {
        self.steps.iter_mut().for_each(|step| step.close(source));
    }

    fn rest(&mut self) {
        self.steps.iter_mut().for_each(|step| step.rest());
    }

    fn bytes(&self) -> usize {
        self.steps.iter().map(|step| step.bytes()).sum()
    }
}

/// Rows that wait to be requested, and whether more can come.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    ready: Option<Row>,
    ended: bool,
}

impl Outbox {
    pub(crate) fn put(&mut self, row: Row) {
        self.ready = Some(row);
    }

    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.ready.as_ref().map_or(0, Row::bytes)
    }

    pub(crate) fn pop(&mut self) -> Flow {
        match self.ready.take() {
            Some(row) => Flow::Row(row),
            None if self.ended => Flow::End,
            None => Flow::Wanting,
        }
    }
}

/// A stage that maps a row to another one or drops it, independently of other rows.
pub(crate) trait Each: Send {
    fn apply(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>>;
    /// Ends a request: releases what only that request could use.
    fn rest(&mut self) {}
}

/// The step of an [`Each`].
pub(crate) struct EachRow<E> {
    each: E,
    outbox: Outbox,
}

impl<E: Each + 'static> EachRow<E> {
    pub(crate) fn step(each: E) -> Box<dyn Step> {
        Box::new(EachRow { each, outbox: Outbox::default() })
    }
}

impl<E: Each> Step for EachRow<E> {
    fn push(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        execution.context.spend(1)?;
        if let Some(row) = self.each.apply(row, execution)? {
            self.outbox.put(row);
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

    fn rest(&mut self) {
        self.each.rest();
    }

    fn bytes(&self) -> usize {
        self.outbox.bytes()
    }
}

/// A stage that reads all rows before it returns the first.
pub(crate) trait Blocking: Send {
    fn take(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()>;
    /// Returns the rows of everything that was taken, one after the other: `None` ends them.
    fn give(&mut self, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>>;
    /// Returns how many bytes it holds, as its bound counts them: the rows taken and not returned yet.
    fn bytes(&self) -> usize;
    /// Returns `true` if it keeps trees, whatever rows it takes.
    fn keeps_trees(&self) -> bool {
        false
    }
}

/// How much more memory a tree takes than the bounds of stages count: every name, text and list is an allocation of its
/// own, and lists have spare capacity. Measured with groups of small documents: 565 bytes for 200 counted ones.
pub(crate) const TREE_FACTOR: usize = 3;

/// The step of a [`Blocking`].
pub(crate) struct BlockingStep<B> {
    blocking: B,
    state: Phase,
    /// Whether it has taken rows that are trees.
    takes_trees: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Taking,
    Giving,
    Ended,
}

impl<B: Blocking + 'static> BlockingStep<B> {
    pub(crate) fn step(blocking: B) -> Box<dyn Step> {
        Box::new(BlockingStep { blocking, state: Phase::Taking, takes_trees: false })
    }
}

impl<B: Blocking> Step for BlockingStep<B> {
    fn push(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        execution.context.spend(1)?;
        self.takes_trees |= matches!(row.body, Body::Tree(_));
        self.blocking.take(row, execution)
    }

    fn end(&mut self, _world: &mut ExecutionContext<'_>) -> Result<()> {
        self.state = Phase::Giving;
        Ok(())
    }

    fn pop(&mut self, execution: &mut ExecutionContext<'_>) -> Result<Flow> {
        match self.state {
            Phase::Taking => return Ok(Flow::Wanting),
            Phase::Giving => {
                if let Some(row) = self.blocking.give(execution)? {
                    return Ok(Flow::Row(row));
                }
                self.state = Phase::Ended;
            }
            Phase::Ended => {}
        }
        Ok(Flow::End)
    }

    fn bytes(&self) -> usize {
        match self.state {
            Phase::Taking | Phase::Giving if self.takes_trees || self.blocking.keeps_trees() => {
                self.blocking.bytes().saturating_mul(TREE_FACTOR)
            }
            Phase::Taking | Phase::Giving => self.blocking.bytes(),
            Phase::Ended => 0,
        }
    }
}

/// Lets every row pass: the chain of no stages.
struct Pass;

impl Each for Pass {
    fn apply(&mut self, row: Row, _world: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        Ok(Some(row))
    }
}
