//! The execution of a pipeline. It does not borrow its source, so a cursor keeps it between two requests.

use std::sync::Arc;

use bson::{Document, Value, ValueRef};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::pipeline::chain::{Chain, ExecutionContext, Flow, Step, TREE_FACTOR};
use crate::pipeline::row::{Row, document_bytes};
use crate::pipeline::source::{Order, Part, Scan, ScanId, Source};
use crate::pipeline::stage::{Stage, start_behind, start_stages};
use crate::pipeline::values::{text, type_name};
use crate::pipeline::{Pipeline, search_meta};

/// A pipeline that was started.
pub struct Running {
    state: State,
}

enum State {
    New(Box<Pipeline>),
    Open { feed: Feed, chain: Chain },
    Done,
}

/// The origin of rows.
enum Feed {
    Scan { id: ScanId, part: Part },
    Rows(std::vec::IntoIter<Document>),
}

impl Feed {
    /// Returns how many bytes it holds. Rows of its own are counted one by one: there are few of them, or they come from a
    /// request.
    fn bytes(&self) -> usize {
        match self {
            Feed::Scan { .. } => 0,
            Feed::Rows(rows) => {
                let counted = rows.as_slice().iter().map(|row| document_bytes(row.view())).sum::<usize>();
                counted.saturating_mul(TREE_FACTOR)
            }
        }
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            State::New(_) => "new",
            State::Open { .. } => "open",
            State::Done => "done",
        };
        out.debug_struct("Running").field("state", &state).finish()
    }
}

impl Running {
    pub(crate) fn new(pipeline: Pipeline) -> Running {
        Running { state: State::New(Box::new(pipeline)) }
    }

    /// Returns the next row; `None` at the end, and from then on. After an error there are no more rows either: close it.
    pub fn next(&mut self, source: &mut dyn Source, context: &Context) -> Result<Option<Row>> {
        let mut execution = ExecutionContext { source, context };
        self.state = match std::mem::replace(&mut self.state, State::Done) {
            State::New(pipeline) => open(*pipeline, &mut execution)?,
            state => state,
        };
        let State::Open { feed, chain } = &mut self.state else { return Ok(None) };
        loop {
            match chain.pop(&mut execution)? {
                Flow::Row(row) => return Ok(Some(row)),
                Flow::End => break,
                Flow::Wanting => match feed.next(execution.source)? {
                    Some(row) => chain.push(row, &mut execution)?,
                    None => chain.end(&mut execution)?,
                },
            }
        }
        self.close(source);
        Ok(None)
    }

    /// Returns `true` if all rows have been returned.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Ends a request of a cursor: releases everything that only that request could use.
    pub fn rest(&mut self) {
        if let State::Open { chain, .. } = &mut self.state {
            chain.rest();
        }
    }

    /// Returns how many bytes of rows it holds between two requests, roughly. Rows on disk do not count, nor do the stages
    /// themselves.
    pub fn bytes(&self) -> usize {
        match &self.state {
            State::Open { feed, chain } => feed.bytes() + chain.bytes(),
            State::New(_) | State::Done => 0,
        }
    }

    /// Closes all scans. Without this call they stay open at the source.
    pub fn close(&mut self, source: &mut dyn Source) {
        if let State::Open { feed, chain } = &mut self.state {
            chain.close(source);
            if let Feed::Scan { id, .. } = feed {
                source.close(*id);
            }
        }
        self.state = State::Done;
    }
}

impl Feed {
    fn next(&mut self, source: &mut dyn Source) -> Result<Option<Row>> {
        match self {
            Feed::Rows(rows) => Ok(rows.next().map(Row::from)),
            Feed::Scan { id, part } => {
                let row = source.next(*id)?;
                Ok(row.map(|row| match part {
                    Part::Leading => row,
                    Part::Foreign => Row { origin: None, ..row },
                }))
            }
        }
    }
}

fn open(pipeline: Pipeline, execution: &mut ExecutionContext<'_>) -> Result<State> {
    let Pipeline { leading, stages, around, part } = pipeline;
    let collection = around.own_namespace();
    let rows = match stages.first() {
        Some(Stage::Documents(formula)) => {
            documents(formula.of_document(Document::new().view(), execution.context)?)?
        }
        Some(Stage::Describe(what)) => execution.source.describe(&collection, what)?,
        Some(Stage::ChangeStream(_)) => {
            let message = "$changeStream can only be followed by a cursor of aggregate";
            return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
        }
        first => {
            let (mut filter, mut limit) = (leading.filter, leading.limit);
            if let Some(Stage::GeoNear(near)) = first {
                let key = match near.key() {
                    Some(key) => key.to_owned(),
                    None => execution.source.geospatial_field(&collection)?,
                };
                filter = Arc::new(around.filter(near.filter(&key).view())?);
            }
            if filter.text().is_some_and(|search| !search.is_prepared()) {
                let rules = execution.source.text_rules(&collection)?;
                filter = Arc::new(around.with_text(rules).filter(leading.conditions.view())?);
            }
            if filter.near().is_some() {
                // A limit must apply to the nearest, not to any.
                limit = None;
            }
            let tells_index_key = around.requested_meta.index_key;
            let scan = Scan { collection, part, filter, sort: leading.sort, limit, tells_index_key };
            return open_scan(&scan, stages, execution);
        }
    };
    Ok(State::Open { feed: Feed::Rows(rows.into_iter()), chain: start_stages(&stages) })
}

fn open_scan(scan: &Scan, mut stages: Vec<Stage>, execution: &mut ExecutionContext<'_>) -> Result<State> {
    let (id, order) = execution.source.open(scan)?;
    let mut told = None;
    if let Some(Stage::Sort(sorted)) = stages.first()
        && (order == Order::Sorted || sorted.sort.natural().is_some())
    {
        told = sorted.telling();
        match sorted.limit {
            Some(limit) => stages[0] = Stage::Limit(limit),
            None => drop(stages.remove(0)),
        }
    }
    let mut steps = search_meta::steps(&scan.filter, scan.sort.as_deref(), order);
    steps.extend(told);
    let chain = start_behind(steps, &stages);
    Ok(State::Open { feed: Feed::Scan { id, part: scan.part }, chain })
}

/// Returns the documents of a `$documents` stage.
fn documents(value: Option<Value>) -> Result<Vec<Document>> {
    let Some(Value::Array(items)) = value else {
        let kind = value.as_ref().map_or("missing", |value| type_name(value.view()));
        let message = format!("error during $documents: an array is expected, but got {kind}");
        return Err(Error::location(5_858_203, message));
    };
    items
        .into_iter()
        .map(|item| match item {
            Value::Document(document) => Ok(document),
            other => {
                let shown: ValueRef<'_> = other.view();
                let message = format!("$documents array elements must be objects, found {}", text(shown));
                Err(Error::location(5_858_204, message))
            }
        })
        .collect()
}
