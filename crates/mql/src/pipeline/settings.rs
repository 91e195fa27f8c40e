//! The settings with which a pipeline is parsed: its collection, the collation, the values of `let`.

use std::sync::Arc;

use bson::{Collation, Document, DocumentRef, RawDocument, Value, ValueRef};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::expression::{Expression, Scope, Variables};
use crate::filter::{self, Filter, PatternBudget};
use crate::pipeline::memory::DiskUse;
use crate::pipeline::requested_meta::RequestedMeta;
use crate::pipeline::row::Row;
use crate::pipeline::source::Namespace;
use crate::text::TextRules;

/// How deep pipelines stand within pipelines at most.
const DEPTH_MAX: usize = 20;

/// The settings of a pipeline.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The database that the pipeline runs in.
    pub database: String,
    /// The collection that it runs on; none for `aggregate: 1`.
    pub collection: Option<String>,
    /// How strings compare.
    pub collation: Collation,
    /// The values of the request's `let`.
    pub variables: Arc<Document>,
    /// The views among the collections that the pipeline reads: see [`Pipeline::collections`](super::Pipeline::collections).
    pub views: Vec<View>,
    /// The rules of the collection's text index, if there is one, for `$text`.
    pub text: Option<Arc<TextRules>>,
    /// The budget for the regular expressions of the request.
    pub patterns: PatternBudget,
    /// Whether stages may use the disk beyond their memory.
    pub disk_use: DiskUse,
}

/// A collection that is a pipeline over another one.
#[derive(Debug, Clone)]
pub struct View {
    /// Its name.
    pub name: Namespace,
    /// The collection behind it, which is no view.
    pub on: Namespace,
    /// The stages that make the view from that collection.
    pub pipeline: Vec<RawDocument>,
}

/// The settings in force at one place of a pipeline.
#[derive(Debug, Clone)]
pub(crate) struct PipelineContext {
    pub(crate) settings: Arc<Settings>,
    /// Variables that are known and have no value.
    missing: Vec<String>,
    /// Those of them whose values come with each row: the pipeline is parsed once to check it, and again with the values.
    awaited: Vec<String>,
    /// How many pipelines stand around this one.
    depth: usize,
    /// The metadata that `$meta` requests.
    pub(crate) requested_meta: RequestedMeta,
}

/// A variable and its value.
pub(crate) type Binding = (String, Bound);

/// The meaning of a variable while a pipeline is parsed.
#[derive(Debug, Clone)]
pub(crate) enum Bound {
    /// A value; none if the variable has none for this row.
    To(Option<Value>),
    /// A value that is known only for each row.
    Awaited,
}

/// A value that must be the same for all rows of a pipeline.
pub(crate) enum Given {
    Value(Value),
    /// It depends on variables whose values are awaited.
    Awaited,
    /// It depends on the rows.
    No,
}

impl PipelineContext {
    pub(crate) fn new(settings: &Settings) -> PipelineContext {
        let settings = Arc::new(settings.clone());
        PipelineContext {
            settings,
            missing: Vec::new(),
            awaited: Vec::new(),
            depth: 0,
            requested_meta: RequestedMeta::default(),
        }
    }

    /// Returns the same for stages, some of which may request metadata by `$meta`.
    pub(crate) fn asking<'a>(self, stages: impl IntoIterator<Item = DocumentRef<'a>>) -> PipelineContext {
        let requested_meta = self.requested_meta.and(RequestedMeta::of(stages));
        PipelineContext { requested_meta, ..self }
    }

    /// Returns the settings of a pipeline over the same rows, within this one.
    pub(crate) fn within(&self) -> Result<PipelineContext> {
        if self.depth >= DEPTH_MAX {
            return Err(Error::new(
                Code::MAX_SUB_PIPELINE_DEPTH_EXCEEDED,
                format!("Maximum number of nested sub-pipelines exceeded. Limit is {DEPTH_MAX}"),
            ));
        }
        Ok(PipelineContext { depth: self.depth + 1, ..self.clone() })
    }

    /// Returns the settings of a pipeline over another collection, with these values as variables too.
    pub(crate) fn inner(
        &self,
        collection: Option<&Namespace>,
        values: &[Binding],
    ) -> Result<PipelineContext> {
        let mut inner = self.within()?.with_values(values);
        inner.requested_meta = RequestedMeta::default();
        let settings = Arc::make_mut(&mut inner.settings);
        settings.collection = collection.map(|name| name.collection.clone());
        settings.text = None;
        if let Some(name) = collection {
            settings.database.clone_from(&name.database);
        }
        Ok(inner)
    }

    /// Returns the same with these values as variables too.
    pub(crate) fn with_values(&self, values: &[Binding]) -> PipelineContext {
        let mut changed = self.clone();
        if values.is_empty() {
            return changed;
        }
        let variables = Arc::make_mut(&mut Arc::make_mut(&mut changed.settings).variables);
        for (name, bound) in values {
            changed.missing.retain(|missing| missing != name);
            changed.awaited.retain(|awaited| awaited != name);
            if let Bound::To(Some(value)) = bound {
                variables.insert(name.as_str(), value.clone());
                continue;
            }
            variables.remove(name);
            changed.missing.push(name.clone());
            if matches!(bound, Bound::Awaited) {
                changed.awaited.push(name.clone());
            }
        }
        changed
    }

    /// Returns the same over a collection with that text index.
    pub(crate) fn with_text(&self, rules: Option<Arc<TextRules>>) -> PipelineContext {
        let mut changed = self.clone();
        Arc::make_mut(&mut changed.settings).text = rules;
        changed
    }

    /// Returns the collection behind a name, and the stages that make a view of it, if it is one.
    pub(crate) fn behind(&self, name: Option<&Namespace>) -> (Option<Namespace>, Vec<RawDocument>) {
        match self.settings.views.iter().find(|view| Some(&view.name) == name) {
            Some(view) => (Some(view.on.clone()), view.pipeline.clone()),
            None => (name.cloned(), Vec::new()),
        }
    }

    pub(crate) fn collation(&self) -> &Collation {
        &self.settings.collation
    }

    pub(crate) fn namespace(&self, collection: &str) -> Namespace {
        Namespace { database: self.settings.database.clone(), collection: collection.to_owned() }
    }

    /// Returns the collection that the pipeline runs on; an empty name without one.
    pub(crate) fn own_namespace(&self) -> Namespace {
        self.namespace(self.settings.collection.as_deref().unwrap_or_default())
    }

    pub(crate) fn filter(&self, filter: DocumentRef<'_>) -> Result<Filter> {
        Filter::parse(filter, &self.filter_settings())
    }

    /// Returns the settings of filters. A filter has no variables without a value; undefined compares like a missing
    /// value.
    fn filter_settings(&self) -> filter::Settings {
        let mut variables = Arc::clone(&self.settings.variables);
        for name in &self.missing {
            Arc::make_mut(&mut variables).push(name.as_str(), Value::Undefined);
        }
        let collation = self.settings.collation.clone();
        let (text, patterns) = (self.settings.text.clone(), self.settings.patterns.clone());
        filter::Settings { collation, variables, text, patterns }
    }

    pub(crate) fn formula(&self, expression: ValueRef<'_>) -> Result<Formula> {
        self.formula_with(expression, &[])
    }

    /// Returns the value of an expression, if it depends on nothing but the values of `let`; null if it is missing.
    pub(crate) fn given(&self, expression: ValueRef<'_>) -> Result<Given> {
        let formula = self.formula(expression)?;
        let has_value = |name: &str| self.settings.variables.contains(name);
        if formula.expression.is_given(&has_value) {
            let value = formula.of_document(Document::new().view(), &Context::at(0))?;
            return Ok(Given::Value(value.unwrap_or(Value::Null)));
        }
        let will_have = |name: &str| has_value(name) || self.awaited.iter().any(|awaited| awaited == name);
        Ok(if formula.expression.is_given(&will_have) { Given::Awaited } else { Given::No })
    }

    /// Returns an expression that may use more names, whose values come when it is evaluated.
    pub(crate) fn formula_with(&self, expression: ValueRef<'_>, names: &[&str]) -> Result<Formula> {
        let mut variables = Variables::of(&self.settings.variables, &self.settings.patterns);
        for name in &self.missing {
            variables.insert(name.as_str());
        }
        for name in names {
            variables.insert(*name);
        }
        let expression = Expression::parse(expression, &variables)?;
        Ok(Formula { expression, settings: Arc::clone(&self.settings) })
    }

    pub(crate) fn constant(&self, value: impl Into<Value>) -> Formula {
        Formula { expression: Expression::constant(value), settings: Arc::clone(&self.settings) }
    }
}

/// An expression with the values that surround it.
#[derive(Debug, Clone)]
pub(crate) struct Formula {
    pub(crate) expression: Expression,
    settings: Arc<Settings>,
}

impl Formula {
    /// Returns the value for a row; none if it is missing.
    pub(crate) fn of_row(&self, row: &Row, context: &Context) -> Result<Option<Value>> {
        self.expression.evaluate(&self.scope_of_row(row), context)
    }

    /// Returns the value, if it is the same for all rows; null if it is missing.
    pub(crate) fn constant(&self) -> Option<Value> {
        self.expression.as_constant().map(|value| value.cloned().unwrap_or(Value::Null))
    }

    /// Returns the value for a document.
    pub(crate) fn of_document(&self, document: DocumentRef<'_>, context: &Context) -> Result<Option<Value>> {
        self.expression.evaluate(&self.scope(document), context)
    }

    pub(crate) fn scope<'a>(&'a self, document: DocumentRef<'a>) -> Scope<'a> {
        plain_scope(&self.settings, document)
    }

    pub(crate) fn scope_of_row<'a>(&'a self, row: &'a Row) -> Scope<'a> {
        scope_of(&self.settings, row)
    }
}

fn plain_scope<'a>(settings: &'a Settings, document: DocumentRef<'a>) -> Scope<'a> {
    Scope::root(document).with_variables(&settings.variables).with_collation(&settings.collation)
}

/// Returns the scope in which expressions see a row.
pub(crate) fn scope_of<'a>(settings: &'a Settings, row: &'a Row) -> Scope<'a> {
    let scope = plain_scope(settings, row.view());
    match &row.meta {
        Some(meta) => scope.with_meta(meta),
        None => scope,
    }
}
