//! `$project`, `$addFields` (also called `$set`) and `$unset`: the fields that stay, and those that are computed.
//!
//! All three are one tree of fields. Every expression sees the original document.

use std::sync::Arc;

use bson::{DocumentRef, ValueRef};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::expression::Expression;
use crate::path::FieldPath;
use crate::pipeline::row::Row;
use crate::pipeline::settings::{Formula, PipelineContext, Settings, scope_of};
use crate::pipeline::values::{as_double, type_name};
use crate::projection::{Policy, Tree, unknown_expression};

/// The fields that stay, go, or are computed.
#[derive(Debug)]
pub(crate) struct Project {
    tree: Tree,
    settings: Arc<Settings>,
    /// The outermost names of the fields that are named.
    named: Vec<String>,
    computed: Vec<String>,
    /// The fields that are named as a whole.
    whole: Vec<String>,
}

impl Project {
    pub(crate) fn apply(&self, row: Row, context: &Context) -> Result<Row> {
        let document = self.tree.apply(row.view(), &scope_of(&self.settings, &row), context)?;
        Ok(row.with_body(document))
    }

    /// Returns `true` if the field with that outermost name, and everything below it, stays unchanged.
    pub(crate) fn leaves(&self, name: &str) -> bool {
        let is = |known: &String| known == name;
        match self.tree.policy() {
            Policy::Exclude => !self.named.iter().any(is) && !self.computed.iter().any(is),
            Policy::Include => self.whole.iter().any(is),
        }
    }

    fn new(policy: Policy, around: &PipelineContext) -> Project {
        let settings = Arc::clone(&around.settings);
        Project {
            tree: Tree::new(policy),
            settings,
            named: Vec::new(),
            computed: Vec::new(),
            whole: Vec::new(),
        }
    }

    fn name(&mut self, path: &FieldPath) -> Result<()> {
        self.named.push(path.first().to_owned());
        if path.len() == 1 {
            self.whole.push(path.first().to_owned());
        }
        self.tree.name(path)
    }

    fn compute(&mut self, path: &FieldPath, formula: Formula) -> Result<()> {
        self.computed.push(path.first().to_owned());
        self.tree.compute(path, formula.expression)
    }

    /// Reads `$addFields` or `$set`.
    pub(crate) fn parse_add_fields(
        stage: &str,
        argument: ValueRef<'_>,
        around: &PipelineContext,
    ) -> Result<Project> {
        let ValueRef::Document(document) = argument else {
            let kind = type_name(argument);
            let message = format!("{stage} specification stage must be an object, got {kind}");
            return Err(Error::location(40272, message));
        };
        let read = || {
            let mut specs = SpecReader { around, numbers: Numbers::Values, all: Vec::new() };
            specs.fields(&FieldPath::default(), document)?;
            let mut project = Project::new(Policy::Exclude, around);
            for (path, spec) in specs.all {
                let FieldSpec::Compute(formula) = spec else { continue };
                project.compute(&path, formula).map_err(|_| {
                    let message = format!("specification contains two conflicting paths: '{path}'");
                    Error::location(40176, message)
                })?;
            }
            Ok(project)
        };
        read().map_err(|error| caused(stage, &error))
    }

    /// Reads `$project`.
    pub(crate) fn parse_project(argument: ValueRef<'_>, around: &PipelineContext) -> Result<Project> {
        let ValueRef::Document(document) = argument else {
            return Err(Error::location(15969, "$project specification must be an object"));
        };
        let read = || {
            if document.is_empty() {
                let message = "projection specification must have at least one field";
                return Err(Error::location(51272, message));
            }
            let mut specs = SpecReader { around, numbers: Numbers::Decide, all: Vec::new() };
            specs.fields(&FieldPath::default(), document)?;
            specs.project()
        };
        read().map_err(|error| caused("$project", &error))
    }

    /// Reads `$unset`.
    pub(crate) fn parse_unset(argument: ValueRef<'_>, around: &PipelineContext) -> Result<Project> {
        let fields: Vec<ValueRef<'_>> = match argument {
            ValueRef::String(_) => vec![argument],
            ValueRef::Array(items) => items.iter().collect(),
            _ => {
                let message = "$unset specification must be a string or an array";
                return Err(Error::location(31002, message));
            }
        };
        if fields.is_empty() {
            let message = "$unset specification must be a string or an array with at least one field";
            return Err(Error::location(31119, message));
        }
        let mut project = Project::new(Policy::Exclude, around);
        for field in fields {
            let field = field.as_str().ok_or_else(|| {
                let message =
                    "$unset specification must be a string or an array containing only string values";
                Error::location(31120, message)
            })?;
            let named = FieldPath::parse_aggregation(field).and_then(|path| project.name(&path));
            named.map_err(|error| caused("$unset", &error))?;
        }
        Ok(project)
    }
}

fn caused(stage: &str, error: &Error) -> Error {
    Error::new(error.code, format!("Invalid {stage} :: caused by :: {}", error.message))
}

/// The meaning of one field of the specification.
enum FieldSpec {
    Include,
    Exclude,
    Compute(Formula),
}

/// The meaning of numbers and booleans.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// Whether a field stays.
    Decide,
    /// Themselves.
    Values,
}

struct SpecReader<'a> {
    around: &'a PipelineContext,
    numbers: Numbers,
    all: Vec<(FieldPath, FieldSpec)>,
}

impl SpecReader<'_> {
    fn fields(&mut self, above: &FieldPath, document: DocumentRef<'_>) -> Result<()> {
        for (name, value) in document.iter() {
            let path = FieldPath::parse_aggregation(name)?;
            if !above.is_empty() && path.len() > 1 && self.numbers == Numbers::Values {
                let message = format!("cannot use dotted field name '{name}' in a sub object");
                return Err(Error::location(40183, message));
            }
            let path = FieldPath::of(above.names().chain(path.names()));
            if path.len() > bson::limits::DEPTH_MAX {
                return Err(Error::new(Code::OVERFLOW, "FieldPath is too long"));
            }
            self.value(path, value)?;
        }
        Ok(())
    }

    fn value(&mut self, path: FieldPath, value: ValueRef<'_>) -> Result<()> {
        let decides = self.numbers == Numbers::Decide;
        let spec = match value {
            ValueRef::Bool(true) if decides => FieldSpec::Include,
            ValueRef::Bool(false) if decides => FieldSpec::Exclude,
            number if decides && number.is_number() => {
                if as_double(number) == Some(0.0) {
                    FieldSpec::Exclude
                } else {
                    FieldSpec::Include
                }
            }
            ValueRef::Document(inner) => match inner.iter().next() {
                None if decides => {
                    let message = format!(
                        "An empty sub-projection is not a valid value. Found empty object at path {path}"
                    );
                    return Err(Error::location(51270, message));
                }
                None => FieldSpec::Compute(self.around.formula(value)?),
                Some((operator, _))
                    if decides && operator.starts_with('$') && !Expression::is_operator(operator) =>
                {
                    return Err(unknown_expression(operator));
                }
                Some((operator, _)) if operator.starts_with('$') => {
                    FieldSpec::Compute(self.around.formula(value)?)
                }
                Some(_) => return self.fields(&path, inner),
            },
            other => FieldSpec::Compute(self.around.formula(other)?),
        };
        self.all.push((path, spec));
        Ok(())
    }

    /// Decides between inclusion and exclusion, then builds the tree. Only `_id` may differ from the other fields.
    fn project(self) -> Result<Project> {
        let is_id = |path: &FieldPath| path.len() == 1 && path.first() == "_id";
        let mut policy = None;
        for (path, spec) in &self.all {
            policy = match (spec, policy) {
                (FieldSpec::Include | FieldSpec::Exclude, known) if is_id(path) => known,
                (FieldSpec::Include, Some(Policy::Exclude)) => {
                    let message = format!("Cannot do inclusion on field {path} in exclusion projection");
                    return Err(Error::location(31253, message));
                }
                (FieldSpec::Exclude, Some(Policy::Include)) => {
                    let message = format!("Cannot do exclusion on field {path} in inclusion projection");
                    return Err(Error::location(31254, message));
                }
                (FieldSpec::Compute(_), Some(Policy::Exclude)) => {
                    let message = "Cannot use expression other than $meta in exclusion projection";
                    return Err(Error::location(31252, message));
                }
                (FieldSpec::Include | FieldSpec::Compute(_), _) => Some(Policy::Include),
                (FieldSpec::Exclude, _) => Some(Policy::Exclude),
            };
        }
        let policy = policy.unwrap_or_else(|| {
            let excludes = self.all.iter().any(|(_, spec)| matches!(spec, FieldSpec::Exclude));
            if excludes { Policy::Exclude } else { Policy::Include }
        });
        let mut project = Project::new(policy, self.around);
        let mentions_id = self.all.iter().any(|(path, _)| path.first() == "_id");
        if policy == Policy::Include && !mentions_id {
            project.name(&FieldPath::of(["_id"]))?;
        }
        for (path, spec) in self.all {
            match (spec, policy) {
                (FieldSpec::Include, Policy::Include) | (FieldSpec::Exclude, Policy::Exclude) => {
                    project.name(&path)?;
                }
                (FieldSpec::Compute(formula), _) => project.compute(&path, formula)?,
                (FieldSpec::Include | FieldSpec::Exclude, _) => {
                    debug_assert!(is_id(&path), "only _id is an exception");
                }
            }
        }
        Ok(project)
    }
}
