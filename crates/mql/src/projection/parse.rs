//! Reading a projection of `find`.

use bson::{DocumentRef, ValueRef};

use super::{Policy, Projection, Slice, Tree};
use crate::error::{Error, Result};
use crate::expression::{Expression, Variables};
use crate::filter::{ElementFilter, Settings, is_truthy};
use crate::numbers;
use crate::path::FieldPath;

/// The meaning of one field of the specification.
enum FieldSpec {
    Include,
    Exclude,
    Compute(Expression),
    /// Computed without deciding between inclusion and exclusion: `$meta`.
    Describe(Expression),
    Slice(Slice),
    Element(ElementFilter),
    Positional,
}

struct Parser<'s> {
    settings: &'s Settings,
    variables: Variables,
    specs: Vec<(FieldPath, FieldSpec)>,
    policy: Option<Policy>,
    positional: bool,
}

/// Parses a whole projection: first all fields, which decide between inclusion and exclusion, then the tree.
pub(super) fn projection(specification: DocumentRef<'_>, settings: &Settings) -> Result<Projection> {
    let variables = Variables::of(&settings.variables, &settings.patterns);
    let mut parser = Parser { settings, variables, specs: Vec::new(), policy: None, positional: false };
    for (name, value) in specification.iter() {
        parser.field(name, value)?;
    }
    let policy = parser.policy();
    let mut projection = Projection {
        tree: Tree::new(policy),
        slices: Vec::new(),
        elements: Vec::new(),
        positional: None,
        variables: settings.variables.clone(),
        collation: settings.collation.clone(),
    };
    let shows_id = policy == Policy::Include && !parser.specs.iter().any(|(path, _)| path.first() == "_id");
    if shows_id {
        projection.tree.name(&FieldPath::of(["_id"]))?;
    }
    for (path, spec) in parser.specs {
        projection.add_spec(path, spec)?;
    }
    Ok(projection)
}

impl Projection {
    fn add_spec(&mut self, path: FieldPath, spec: FieldSpec) -> Result<()> {
        let includes = self.tree.policy() == Policy::Include;
        match spec {
            FieldSpec::Include if includes => self.tree.name(&path),
            FieldSpec::Exclude if !includes => self.tree.name(&path),
            // Only `_id` may differ from the rest, and then there is nothing to do.
            FieldSpec::Include | FieldSpec::Exclude => Ok(()),
            FieldSpec::Compute(expression) | FieldSpec::Describe(expression) => {
                self.tree.compute(&path, expression)
            }
            FieldSpec::Slice(slice) => {
                if includes {
                    self.tree.name(&path)?;
                }
                self.slices.push((path, slice));
                Ok(())
            }
            FieldSpec::Element(filter) => {
                self.elements.push((path.first().to_owned(), filter));
                Ok(())
            }
            FieldSpec::Positional => {
                self.tree.name(&path)?;
                self.positional = Some(path);
                Ok(())
            }
        }
    }
}

impl Parser<'_> {
    /// Returns the policy. By default `$elemMatch` and `_id: 1` mean an inclusion.
    fn policy(&self) -> Policy {
        let including = |(path, spec): &(FieldPath, FieldSpec)| match spec {
            FieldSpec::Element(_) => true,
            FieldSpec::Include => path.first() == "_id",
            _ => false,
        };
        let excluding = |(_, spec): &(FieldPath, FieldSpec)| matches!(spec, FieldSpec::Exclude);
        self.policy.unwrap_or_else(|| {
            let elements = self.specs.iter().any(|(_, spec)| matches!(spec, FieldSpec::Element(_)));
            if self.specs.iter().any(including) && (elements || !self.specs.iter().any(excluding)) {
                Policy::Include
            } else {
                Policy::Exclude
            }
        })
    }

    fn field(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        if let Some(path) = positional_path(name)? {
            return self.positional(&path, name, value);
        }
        let path = FieldPath::parse_strict(name)?;
        self.value(path, value)
    }

    fn value(&mut self, path: FieldPath, value: ValueRef<'_>) -> Result<()> {
        match value {
            ValueRef::Bool(_) => self.include_or_exclude(path, value),
            number if number.is_number() => self.include_or_exclude(path, value),
            ValueRef::Document(inner) => self.document(path, inner),
            other => self.compute(path, other),
        }
    }

    fn document(&mut self, path: FieldPath, inner: DocumentRef<'_>) -> Result<()> {
        let Some((operator, operand)) = inner.iter().next() else {
            let message =
                format!("An empty sub-projection is not a valid value. Found empty object at path {path}");
            return Err(Error::location(51270, message));
        };
        if !operator.starts_with('$') {
            for (name, value) in inner.iter() {
                if name.starts_with('$') {
                    let message =
                        format!("Expected field names within an object not to begin with '$': {name}");
                    return Err(Error::location(16410, message));
                }
                let below = FieldPath::parse_strict(name)?;
                let path = FieldPath::of(path.names().chain(below.names()));
                self.value(path, value)?;
            }
            return Ok(());
        }
        match operator {
            "$slice" if slice_of_find(operand) => {
                let slice = Slice::parse(operand)?;
                self.specs.push((path, FieldSpec::Slice(slice)));
                Ok(())
            }
            "$elemMatch" => self.element(path, operand),
            "$meta" => {
                let expression = Expression::parse(ValueRef::Document(inner), &self.variables)?;
                self.specs.push((path, FieldSpec::Describe(expression)));
                Ok(())
            }
            unknown if !Expression::is_operator(unknown) => Err(unknown_expression(unknown)),
            _ => self.compute(path, ValueRef::Document(inner)),
        }
    }

    fn include_or_exclude(&mut self, path: FieldPath, value: ValueRef<'_>) -> Result<()> {
        let includes = is_truthy(value);
        let (policy, spec) = if includes {
            (Policy::Include, FieldSpec::Include)
        } else {
            (Policy::Exclude, FieldSpec::Exclude)
        };
        if path.len() > 1 || path.first() != "_id" {
            match (self.policy, policy) {
                (Some(Policy::Include), Policy::Exclude) => {
                    let message = format!("Cannot do exclusion on field {path} in inclusion projection");
                    return Err(Error::location(31254, message));
                }
                (Some(Policy::Exclude), Policy::Include) => {
                    let message = format!("Cannot do inclusion on field {path} in exclusion projection");
                    return Err(Error::location(31253, message));
                }
                _ => self.policy = Some(policy),
            }
        }
        self.specs.push((path, spec));
        Ok(())
    }

    fn compute(&mut self, path: FieldPath, value: ValueRef<'_>) -> Result<()> {
        if self.policy == Some(Policy::Exclude) {
            let message = "Cannot use expression other than $meta in exclusion projection";
            return Err(Error::location(31252, message));
        }
        let expression = Expression::parse(value, &self.variables)?;
        self.policy = Some(Policy::Include);
        self.specs.push((path, FieldSpec::Compute(expression)));
        Ok(())
    }

    fn element(&mut self, path: FieldPath, operand: ValueRef<'_>) -> Result<()> {
        if self.positional {
            return Err(Error::location(31255, "Cannot specify positional operator and $elemMatch."));
        }
        if !matches!(operand, ValueRef::Document(_)) {
            let message =
                format!("elemMatch: Invalid argument, object required, but got {}", operand.kind().alias());
            return Err(Error::location(31274, message));
        }
        if path.len() > 1 {
            return Err(Error::location(31275, "Cannot use $elemMatch projection on a nested field."));
        }
        let filter = ElementFilter::parse(operand, self.settings)?;
        self.specs.push((path, FieldSpec::Element(filter)));
        Ok(())
    }

    fn positional(&mut self, path: &str, name: &str, value: ValueRef<'_>) -> Result<()> {
        if self.positional {
            let message = "Cannot specify more than one positional projection per query.";
            return Err(Error::location(31276, message));
        }
        if self.specs.iter().any(|(_, spec)| matches!(spec, FieldSpec::Element(_))) {
            return Err(Error::location(31256, "Cannot specify positional operator and $elemMatch."));
        }
        let includes = matches!(value, ValueRef::Bool(_)) || value.is_number();
        if !includes {
            let message = format!("positional projection '{name}' must be included, not computed");
            return Err(Error::location(31271, message));
        }
        if !is_truthy(value) || self.policy == Some(Policy::Exclude) {
            let message = format!("positional projection cannot be used with exclusion: {name}");
            return Err(Error::location(31395, message));
        }
        self.positional = true;
        self.policy = Some(Policy::Include);
        self.specs.push((FieldPath::parse_strict(path)?, FieldSpec::Positional));
        Ok(())
    }
}

/// Returns the error for a field whose computation is not an expression.
pub(crate) fn unknown_expression(name: &str) -> Error {
    Error::location(31325, format!("Unknown expression {name}"))
}

/// Returns the path before a `$` at its end.
fn positional_path(name: &str) -> Result<Option<String>> {
    let mut parts = name.split('.');
    if name == "$" || !parts.any(|part| part == "$") {
        return Ok(None);
    }
    let path = name.strip_suffix(".$").filter(|path| !path.split('.').any(|part| part == "$"));
    path.map(|path| Some(path.to_owned())).ok_or_else(|| {
        let message = "As of 4.4, it's illegal to specify positional operator in the middle of a path.Positional \
                       projection may only be used at the end, for example: a.b.$. If the query previously used a form \
                       like a.b.$.d, remove the parts following the '$' and the results will be equivalent.";
        Error::location(31394, message)
    })
}

/// Returns `true` if the operand is a slice of `find`; a list with other things in it is the expression `$slice`.
fn slice_of_find(operand: ValueRef<'_>) -> bool {
    match operand {
        ValueRef::Array(items) => items.iter().all(ValueRef::is_number),
        _ => true,
    }
}

impl Slice {
    fn parse(operand: ValueRef<'_>) -> Result<Slice> {
        // Numbers beyond the range count as its ends; other values are no slice.
        let number = |value: ValueRef<'_>| match numbers::whole(value) {
            Some(number) => number.clamp(i32::MIN.into(), i32::MAX.into()),
            None if numbers::is_nan(value) => 0,
            None if bson::compare(value, ValueRef::Int32(0)).is_gt() => i32::MAX.into(),
            None => i32::MIN.into(),
        };
        match operand {
            ValueRef::Array(items) => {
                let (Some(skip), Some(limit), None) = (items.get(0), items.get(1), items.get(2)) else {
                    let message = "$slice array argument should be of form [skip, limit]";
                    return Err(Error::location(31272, message));
                };
                let (skip, limit) = (number(skip), number(limit));
                if limit <= 0 {
                    return Err(Error::location(
                        28724,
                        format!("$slice limit must be positive, got {limit}"),
                    ));
                }
                Ok(Slice { skip, limit })
            }
            value if value.is_number() => match number(value) {
                count @ 0.. => Ok(Slice { skip: 0, limit: count }),
                count => Ok(Slice { skip: count, limit: -count }),
            },
            _ => Err(Error::location(31273, "$slice only supports numbers and [skip, limit] arrays")),
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::Value;

    use super::*;

    #[test]
    fn slices_begin_at_either_end() {
        let cut = |operand: Value| {
            let mut items: Vec<Value> = (1..=5).map(Value::Int32).collect();
            Slice::parse(operand.view()).unwrap().cut(&mut items);
            items.iter().filter_map(|item| numbers::integer(item.view())).collect::<Vec<_>>()
        };
        let pair = |skip: i32, limit: i32| Value::Array(vec![skip.into(), limit.into()]);
        assert_eq!(cut(2.into()), [1, 2]);
        assert_eq!(cut((-2).into()), [4, 5]);
        assert_eq!(cut(0.into()), Vec::<i64>::new());
        assert_eq!(cut(1e300.into()), [1, 2, 3, 4, 5]);
        assert_eq!(cut((-9).into()), [1, 2, 3, 4, 5]);
        assert_eq!(cut(pair(1, 2)), [2, 3]);
        assert_eq!(cut(pair(-2, 1)), [4]);
        assert_eq!(cut(pair(-9, 2)), [1, 2]);
        assert_eq!(cut(pair(9, 2)), Vec::<i64>::new());
    }
}
