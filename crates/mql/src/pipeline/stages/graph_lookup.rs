//! `$graphLookup`: the documents of another collection that can be reached from a row, step by step.

use std::collections::HashSet;
use std::sync::Arc;

use bson::{Document, RawDocument, Value, ValueRef};

use crate::error::{Code, Error, Result};
use crate::path::FieldPath;
use crate::pipeline::chain::{Each, EachRow, ExecutionContext, Step};
use crate::pipeline::memory::Memory;
use crate::pipeline::parse_inner;
use crate::pipeline::row::{Row, document_bytes, value_bytes};
use crate::pipeline::rules::PipelineKind;
use crate::pipeline::settings::{Formula, PipelineContext};
use crate::pipeline::source::Namespace;
use crate::pipeline::stages::lookup::{among, views};
use crate::pipeline::values::{as_double, key_of, text, type_name, whole_number};

/// A `$graphLookup` as parsed.
#[derive(Debug)]
pub(crate) struct GraphLookup {
    /// The collections it reads: the named one, the one behind it if it is a view, and those that the view reads.
    collections: Vec<Namespace>,
    start: Formula,
    connect_from: FieldPath,
    connect_to: String,
    output: FieldPath,
    depth_max: Option<u64>,
    depth_field: Option<FieldPath>,
    restriction: Option<Document>,
    /// The stages that make the collection a view, if it is one.
    view: Vec<RawDocument>,
    around: PipelineContext,
}

impl GraphLookup {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<GraphLookup> {
        let ValueRef::Document(document) = argument else {
            let kind = type_name(argument);
            let message = format!("the $graphLookup stage specification must be an object, but found {kind}");
            return Err(Error::location(40327, message));
        };
        for (name, value) in document.iter() {
            match name {
                "startWith" | "maxDepth" | "restrictSearchWithMatch" => {}
                "from" | "as" | "connectFromField" | "connectToField" | "depthField" => {
                    if value.as_str().is_none() {
                        let (shown, kind) = (text(value), type_name(value));
                        let message =
                            format!("$graphLookup argument '{name}: {shown}' must be string, is type {kind}");
                        return Err(Error::location(40103, message));
                    }
                }
                _ => return Err(Error::location(40104, format!("Unknown argument to $graphLookup: {name}"))),
            }
        }
        let string = |name: &str| document.get(name).and_then(ValueRef::as_str);
        let (Some(start), Some(from), Some(output), Some(connect_from), Some(connect_to)) = (
            document.get("startWith"),
            string("from"),
            string("as"),
            string("connectFromField"),
            string("connectToField"),
        ) else {
            let message = "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and \
                           'connectToField' to be specified.";
            return Err(Error::location(40105, message));
        };
        FieldPath::parse_aggregation(connect_to)?;
        let restriction = match document.get("restrictSearchWithMatch") {
            None => None,
            Some(ValueRef::Document(filter)) => {
                around.filter(filter)?;
                Some(filter.to_document())
            }
            Some(other) => {
                let kind = type_name(other);
                let message = format!(
                    "$graphLookup argument 'restrictSearchWithMatch' must be an object, is type {kind}"
                );
                return Err(Error::location(40185, message));
            }
        };
        let from = around.namespace(from);
        let (on, view) = around.behind(Some(&from));
        let inner = around.inner(on.as_ref(), &[])?;
        let looked_into = parse_inner(&views(&view), &inner, PipelineKind::Lookup)?.collections();
        Ok(GraphLookup {
            collections: [from].into_iter().chain(on).chain(looked_into).collect(),
            start: around.formula(start)?,
            connect_from: FieldPath::parse_aggregation(connect_from)?,
            connect_to: connect_to.to_owned(),
            output: FieldPath::parse_aggregation(output)?,
            depth_max: document.get("maxDepth").map(read_depth).transpose()?,
            depth_field: string("depthField").map(FieldPath::parse_aggregation).transpose()?,
            restriction,
            view,
            around: inner,
        })
    }

    pub(crate) fn start(self: &Arc<Self>) -> Box<dyn Step> {
        EachRow::step(GraphLookupStep(Arc::clone(self)))
    }

    pub(crate) fn written(&self) -> &str {
        self.output.first()
    }

    pub(crate) fn collections(&self, found: &mut Vec<Namespace>) {
        found.extend(self.collections.iter().cloned());
    }
}

fn read_depth(value: ValueRef<'_>) -> Result<u64> {
    let Some(number) = as_double(value) else {
        let message = format!("maxDepth must be numeric, found type: {}", type_name(value));
        return Err(Error::location(40100, message));
    };
    if number < 0.0 {
        let message = format!("maxDepth requires a nonnegative argument, found: {}", text(value));
        return Err(Error::location(40101, message));
    }
    whole_number(value).and_then(|whole| u64::try_from(whole).ok()).ok_or_else(|| {
        let message = format!("maxDepth could not be represented as a long long: {}", text(value));
        Error::location(40102, message)
    })
}

struct GraphLookupStep(Arc<GraphLookup>);

/// One search: the documents found, and the values still to look up.
struct Search<'a> {
    lookup: &'a GraphLookup,
    found: Vec<Value>,
    found_ids: HashSet<Vec<u8>>,
    seen_values: HashSet<Vec<u8>>,
    frontier: Vec<Value>,
    memory: Memory,
}

impl Each for GraphLookupStep {
    fn apply(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        let mut search = Search {
            lookup: &self.0,
            found: Vec::new(),
            found_ids: HashSet::new(),
            seen_values: HashSet::new(),
            frontier: Vec::new(),
            memory: Memory::with_code("$graphLookup", Code(40099)),
        };
        match self.0.start.of_row(&row, execution.context)? {
            Some(Value::Array(values)) => {
                values.into_iter().try_for_each(|value| search.look_for(value, execution))?;
            }
            Some(value) => search.look_for(value, execution)?,
            None => {}
        }
        let mut depth = 0;
        while !search.frontier.is_empty() && self.0.depth_max.is_none_or(|most| depth <= most) {
            search.step(depth, execution)?;
            depth += 1;
        }
        let mut document = row.body.clone().into_tree();
        self.0.output.set(&mut document, Value::Array(search.found));
        row.with_made(document).map(Some)
    }
}

impl Search<'_> {
    fn look_for(&mut self, value: Value, execution: &ExecutionContext<'_>) -> Result<()> {
        let key = key_of(value.view(), self.lookup.around.collation());
        self.memory.take(key.len() + value_bytes(value.view()), execution.context)?;
        if self.seen_values.insert(key) {
            self.frontier.push(value);
        }
        Ok(())
    }

    /// Finds everything one step farther.
    fn step(&mut self, depth: u64, execution: &mut ExecutionContext<'_>) -> Result<()> {
        execution.context.spend(self.frontier.len() as u64)?;
        let frontier = std::mem::take(&mut self.frontier);
        let mut conditions = self.only_what_is_there(&frontier);
        conditions.push(Value::Document(among(&self.lookup.connect_to, frontier)));
        conditions.extend(self.lookup.restriction.clone().map(Value::Document));
        let condition = Document::new().with("$and", conditions);
        let matching = RawDocument::from(&Document::new().with("$match", condition));
        let mut stages = views(&self.lookup.view);
        stages.push(matching.view());
        let mut running = parse_inner(&stages, &self.lookup.around, PipelineKind::Lookup)?.start();
        let result = self.drain(&mut running, depth, execution);
        running.close(execution.source);
        result
    }

    /// Returns the values to look up. To a filter null also matches missing and undefined values; here each only matches
    /// itself, and nothing matches a missing value.
    fn only_what_is_there(&self, frontier: &[Value]) -> Vec<Value> {
        let field = self.lookup.connect_to.as_str();
        let null = frontier.contains(&Value::Null);
        let undefined = frontier.contains(&Value::Undefined);
        let is_not = |kind: &str| Document::new().with("$not", Document::new().with("$type", kind));
        let conditions = [
            (null || undefined).then(|| Document::new().with("$exists", true)),
            (null && !undefined).then(|| is_not("undefined")),
            (undefined && !null).then(|| is_not("null")),
        ];
        let on_field = |condition| Value::Document(Document::new().with(field, condition));
        conditions.into_iter().flatten().map(on_field).collect()
    }

    fn drain(
        &mut self,
        running: &mut crate::pipeline::running::Running,
        depth: u64,
        execution: &mut ExecutionContext<'_>,
    ) -> Result<()> {
        while let Some(row) = running.next(execution.source, execution.context)? {
            let id = row.view().get("_id").unwrap_or(ValueRef::Undefined);
            if !self.found_ids.insert(key_of(id, &bson::Collation::simple())) {
                continue;
            }
            self.memory.take(document_bytes(row.view()), execution.context)?;
            let mut next = Vec::new();
            self.lookup.connect_from.values(row.view(), &mut next);
            for value in next {
                self.look_for(value.to_value(), execution)?;
            }
            let mut document = row.body.into_tree();
            if let Some(field) = &self.lookup.depth_field {
                field.set(&mut document, Value::Int64(depth as i64));
            }
            self.found.push(Value::Document(document));
        }
        Ok(())
    }
}
