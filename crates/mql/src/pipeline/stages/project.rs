//! `$project`, `$addFields` (also called `$set`) and `$unset`: which fields stay, and which are computed.
//!
//! All three are one tree of fields. Every expression sees the document as it came in.

use std::sync::Arc;

use bson::{DocumentRef, ValueRef};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::expression::Expression;
use crate::path::FieldPath;
use crate::pipeline::path::Path;
use crate::pipeline::row::Row;
use crate::pipeline::settings::{Formula, Settings, Surroundings, scope_of};
use crate::pipeline::text::{as_double, type_name};
use crate::projection::{Policy, Tree, unknown_expression};

/// The fields that stay, go, or are computed.
#[derive(Debug)]
pub(crate) struct Project {
    tree: Tree,
    settings: Arc<Settings>,
    /// The outermost names of what is named and computed.
    named: Vec<String>,
    computed: Vec<String>,
    /// Those of the named that are named as a whole.
    whole: Vec<String>,
}

impl Project {
    pub(crate) fn apply(&self, row: Row, context: &Context) -> Result<Row> {
        let document = self.tree.apply(row.view(), &scope_of(&self.settings, &row), context)?;
        Ok(row.with_body(document))
    }

    /// Whether a field with that outermost name comes out as it went in, and all that is below it.
    pub(crate) fn leaves(&self, name: &str) -> bool {
        let is = |known: &String| known == name;
        match self.tree.policy() {
            Policy::Exclude => !self.named.iter().any(is) && !self.computed.iter().any(is),
            Policy::Include => self.whole.iter().any(is),
        }
    }

    fn new(policy: Policy, around: &Surroundings) -> Project {
        let settings = Arc::clone(&around.settings);
        Project {
            tree: Tree::new(policy),
            settings,
            named: Vec::new(),
            computed: Vec::new(),
            whole: Vec::new(),
        }
    }

    fn name(&mut self, path: &[String]) -> Result<()> {
        self.named.extend(path.first().cloned());
        if let [name] = path {
            self.whole.push(name.clone());
        }
        self.tree.name(&FieldPath::of(path.iter().map(String::as_str)))
    }

    fn compute(&mut self, path: &[String], formula: Formula) -> Result<()> {
        self.computed.extend(path.first().cloned());
        self.tree.compute(&FieldPath::of(path.iter().map(String::as_str)), formula.expression)
    }

    /// Reads `$addFields` or `$set`.
    pub(crate) fn parse_add_fields(
        stage: &str,
        argument: ValueRef<'_>,
        around: &Surroundings,
    ) -> Result<Project> {
        let ValueRef::Document(document) = argument else {
            let kind = type_name(argument);
            let message = format!("{stage} specification stage must be an object, got {kind}");
            return Err(Error::location(40272, message));
        };
        let read = || {
            let mut wishes = Wishes { around, numbers: Numbers::Values, all: Vec::new() };
            wishes.fields(&[], document)?;
            let mut project = Project::new(Policy::Exclude, around);
            for (path, wish) in wishes.all {
                let Wish::Compute(formula) = wish else { continue };
                project.compute(&path, formula).map_err(|_| {
                    let path = path.join(".");
                    let message = format!("specification contains two conflicting paths: '{path}'");
                    Error::location(40176, message)
                })?;
            }
            Ok(project)
        };
        read().map_err(|error| caused(stage, &error))
    }

    /// Reads `$project`.
    pub(crate) fn parse_project(argument: ValueRef<'_>, around: &Surroundings) -> Result<Project> {
        let ValueRef::Document(document) = argument else {
            return Err(Error::location(15969, "$project specification must be an object"));
        };
        let read = || {
            if document.is_empty() {
                let message = "projection specification must have at least one field";
                return Err(Error::location(51272, message));
            }
            let mut wishes = Wishes { around, numbers: Numbers::Decide, all: Vec::new() };
            wishes.fields(&[], document)?;
            wishes.project()
        };
        read().map_err(|error| caused("$project", &error))
    }

    /// Reads `$unset`.
    pub(crate) fn parse_unset(argument: ValueRef<'_>, around: &Surroundings) -> Result<Project> {
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
            let named = Path::parse(field).and_then(|path| project.name(path.names()));
            named.map_err(|error| caused("$unset", &error))?;
        }
        Ok(project)
    }
}

fn caused(stage: &str, error: &Error) -> Error {
    Error::new(error.code, format!("Invalid {stage} :: caused by :: {}", error.message))
}

/// What one field of the specification asks for.
enum Wish {
    Include,
    Exclude,
    Compute(Formula),
}

/// What numbers and booleans mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// Whether a field stays.
    Decide,
    /// Themselves.
    Values,
}

struct Wishes<'a> {
    around: &'a Surroundings,
    numbers: Numbers,
    all: Vec<(Vec<String>, Wish)>,
}

impl Wishes<'_> {
    fn fields(&mut self, above: &[String], document: DocumentRef<'_>) -> Result<()> {
        for (name, value) in document.iter() {
            let path = Path::parse(name)?;
            if !above.is_empty() && path.names().len() > 1 && self.numbers == Numbers::Values {
                let message = format!("cannot use dotted field name '{name}' in a sub object");
                return Err(Error::location(40183, message));
            }
            let path: Vec<String> = above.iter().chain(path.names()).cloned().collect();
            if path.len() > bson::limits::DEPTH_MAX {
                return Err(Error::new(Code::OVERFLOW, "FieldPath is too long"));
            }
            self.value(path, value)?;
        }
        Ok(())
    }

    fn value(&mut self, path: Vec<String>, value: ValueRef<'_>) -> Result<()> {
        let decides = self.numbers == Numbers::Decide;
        let wish = match value {
            ValueRef::Bool(true) if decides => Wish::Include,
            ValueRef::Bool(false) if decides => Wish::Exclude,
            number if decides && number.is_number() => {
                if as_double(number) == Some(0.0) {
                    Wish::Exclude
                } else {
                    Wish::Include
                }
            }
            ValueRef::Document(inner) => match inner.iter().next() {
                None if decides => {
                    let message = format!(
                        "An empty sub-projection is not a valid value. Found empty object at path {}",
                        path.join(".")
                    );
                    return Err(Error::location(51270, message));
                }
                None => Wish::Compute(self.around.formula(value)?),
                Some((operator, _))
                    if decides && operator.starts_with('$') && !Expression::is_operator(operator) =>
                {
                    return Err(unknown_expression(operator));
                }
                Some((operator, _)) if operator.starts_with('$') => {
                    Wish::Compute(self.around.formula(value)?)
                }
                Some(_) => return self.fields(&path, inner),
            },
            other => Wish::Compute(self.around.formula(other)?),
        };
        self.all.push((path, wish));
        Ok(())
    }

    /// First what all wishes amount to, then the tree. Only `_id` may be otherwise than the rest.
    fn project(self) -> Result<Project> {
        let is_id = |path: &[String]| matches!(path, [name] if name == "_id");
        let mut policy = None;
        for (path, wish) in &self.all {
            let path = path.join(".");
            policy = match (wish, policy) {
                (Wish::Include | Wish::Exclude, known) if path == "_id" => known,
                (Wish::Include, Some(Policy::Exclude)) => {
                    let message = format!("Cannot do inclusion on field {path} in exclusion projection");
                    return Err(Error::location(31253, message));
                }
                (Wish::Exclude, Some(Policy::Include)) => {
                    let message = format!("Cannot do exclusion on field {path} in inclusion projection");
                    return Err(Error::location(31254, message));
                }
                (Wish::Compute(_), Some(Policy::Exclude)) => {
                    let message = "Cannot use expression other than $meta in exclusion projection";
                    return Err(Error::location(31252, message));
                }
                (Wish::Include | Wish::Compute(_), _) => Some(Policy::Include),
                (Wish::Exclude, _) => Some(Policy::Exclude),
            };
        }
        let policy = policy.unwrap_or_else(|| {
            let excludes = self.all.iter().any(|(_, wish)| matches!(wish, Wish::Exclude));
            if excludes { Policy::Exclude } else { Policy::Include }
        });
        let mut project = Project::new(policy, self.around);
        let mentions_id = self.all.iter().any(|(path, _)| path.first().is_some_and(|name| name == "_id"));
        if policy == Policy::Include && !mentions_id {
            project.name(&["_id".to_owned()])?;
        }
        for (path, wish) in self.all {
            match (wish, policy) {
                (Wish::Include, Policy::Include) | (Wish::Exclude, Policy::Exclude) => project.name(&path)?,
                (Wish::Compute(formula), _) => project.compute(&path, formula)?,
                (Wish::Include | Wish::Exclude, _) => debug_assert!(is_id(&path), "only _id is an exception"),
            }
        }
        Ok(project)
    }
}
