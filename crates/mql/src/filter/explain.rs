//! Why a document does not match a filter: the contents of `errInfo.details` of a write that a validator refused.
//!
//! The explainer evaluates the filter as it was written, clause by clause. So the explanation has no rules of its own about
//! operators and cannot disagree with the filter. Within a negation it reports the clauses that matched.

use std::collections::BTreeSet;

use bson::{Document, DocumentRef, Kind, Value, ValueRef};

use super::explain_limits::{push_shown, spend_on};
use super::schema::explain_schema;
use super::{Filter, Settings, is_truthy};
use crate::context::Context;
use crate::error::{Code, Result};
use crate::expression::{Expression, Scope, Variables};
use crate::path::{Arrays, FieldPath};

/// The depth to which clauses are explained.
const DEPTH_MAX: usize = 32;
/// How many values of an array are shown.
const VALUES_MAX: usize = 10;
/// The reason if no other is known.
const NO_MATCH: &str = "the document does not match";

/// Explains which clauses of a filter a document does not meet. The work counts in the context, and ends with it: that
/// is the only error.
pub fn explain_filter(
    filter: DocumentRef<'_>,
    document: DocumentRef<'_>,
    context: &Context,
) -> Result<Document> {
    let explainer = Explainer { document, context, depth: DEPTH_MAX };
    let told = unless_stopped(explainer.all(&clauses(filter), Sense::Failed))?;
    Ok(told.unwrap_or_else(|| {
        let mut rules = Document::new();
        push_shown(&mut rules, "specifiedAs", Value::Document(filter.to_document()));
        rules.with("reason", NO_MATCH)
    }))
}

/// Returns the result of an evaluation; none if it failed, an error if the request was stopped. A filter stops at the
/// first clause that decides, so a later clause may fail for the document.
fn unless_stopped<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(stopped) if stopped.code == Code::MAX_TIME_MS_EXPIRED => Err(stopped),
        Err(_) => Ok(None),
    }
}

/// Whether a clause is explained because it failed, or, within a negation, because it held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sense {
    Failed,
    Held,
}

impl Sense {
    fn turned(self) -> Sense {
        match self {
            Sense::Failed => Sense::Held,
            Sense::Held => Sense::Failed,
        }
    }

    fn clauses(self) -> &'static str {
        match self {
            Sense::Failed => "clausesNotSatisfied",
            Sense::Held => "clausesSatisfied",
        }
    }
}

/// One condition of a filter: a field with one operator, or an operator of its own.
struct Clause {
    /// The condition as a filter.
    written: Document,
    /// The path; none for operators without one.
    path: Option<String>,
    operator: String,
    operand: Value,
}

/// Returns the conditions of a filter, one by one.
fn clauses(filter: DocumentRef<'_>) -> Vec<Clause> {
    let mut found = Vec::new();
    for (name, value) in filter.iter().filter(|(name, _)| *name != "$comment") {
        if name.starts_with('$') {
            let written = Document::new().with(name, value.to_value());
            let (operator, operand) = (name.to_owned(), value.to_value());
            found.push(Clause { written, path: None, operator, operand });
        } else {
            found.extend(field_clauses(name, value));
        }
    }
    found
}

/// Returns the conditions on one field. A `$regex` goes with its `$options`.
fn field_clauses(path: &str, value: ValueRef<'_>) -> Vec<Clause> {
    let clause = |operator: &str, operand: ValueRef<'_>, asked: Value| Clause {
        written: Document::new().with(path, asked),
        path: Some(path.to_owned()),
        operator: operator.to_owned(),
        operand: operand.to_value(),
    };
    let operators = match value {
        ValueRef::Document(asked) if asked.iter().next().is_some_and(|(name, _)| name.starts_with('$')) => {
            asked
        }
        ValueRef::Regex(_) => return vec![clause("$regex", value, value.to_value())],
        _ => return vec![clause("$eq", value, value.to_value())],
    };
    let one = |(name, operand): (&str, ValueRef<'_>)| {
        let mut asked = Document::new().with(name, operand.to_value());
        if let ("$regex", Some(options)) = (name, operators.get("$options")) {
            asked.push("$options", options.to_value());
        }
        clause(name, operand, Value::Document(asked))
    };
    operators.iter().filter(|(name, _)| *name != "$options").map(one).collect()
}

#[derive(Clone, Copy)]
struct Explainer<'a> {
    document: DocumentRef<'a>,
    context: &'a Context,
    depth: usize,
}

impl Explainer<'_> {
    /// Explains one clause by itself, several as an `$and`.
    fn all(self, clauses: &[Clause], sense: Sense) -> Result<Document> {
        match clauses {
            [only] => self.clause(only, sense),
            several => self.list("$and", several.iter().map(std::slice::from_ref), sense),
        }
    }

    fn clause(self, clause: &Clause, sense: Sense) -> Result<Document> {
        spend_on(&clause.written, self.context)?;
        let name = clause.operator.as_str();
        let inner = Explainer { depth: self.depth.saturating_sub(1), ..self };
        match (name, &clause.operand) {
            _ if self.depth == 0 => Ok(told(clause).with("reason", NO_MATCH)),
            ("$and" | "$or" | "$nor", Value::Array(branches)) => {
                let branches: Vec<Vec<Clause>> = branches
                    .iter()
                    .map(|branch| {
                        branch.as_document().map(|branch| self::clauses(branch.view())).unwrap_or_default()
                    })
                    .collect();
                let within = if name == "$nor" { sense.turned() } else { sense };
                inner.list(name, branches.iter().map(Vec::as_slice), within)
            }
            ("$not", operand) => {
                let path = clause.path.as_deref().unwrap_or_default();
                let details = inner.all(&field_clauses(path, operand.view()), sense.turned())?;
                Ok(Document::new().with("operatorName", name).with("details", details))
            }
            ("$jsonSchema", Value::Document(schema)) => self.schema(schema, sense),
            ("$expr", expression) => self.expression(clause, expression, sense),
            _ => match &clause.path {
                Some(path) => self.field(clause, path, sense),
                None => Ok(told(clause).with("reason", reason(name, sense).unwrap_or(NO_MATCH))),
            },
        }
    }

    /// Explains a logical operator by the branches that make it fail, or hold, as far as they can be evaluated.
    fn list<'c>(
        self,
        name: &str,
        branches: impl Iterator<Item = &'c [Clause]>,
        within: Sense,
    ) -> Result<Document> {
        let mut shown = Vec::new();
        for (index, branch) in branches.enumerate() {
            let Some(matches) = unless_stopped(self.matches(branch))? else { continue };
            if matches == (within == Sense::Held)
                && let Some(details) = unless_stopped(self.all(branch, within))?
            {
                let index = i32::try_from(index).unwrap_or(i32::MAX);
                shown.push(Value::Document(Document::new().with("index", index).with("details", details)));
            }
        }
        Ok(Document::new().with("operatorName", name).with(within.clauses(), shown))
    }

    fn matches(self, clauses: &[Clause]) -> Result<bool> {
        let settings = Settings::default();
        for clause in clauses {
            spend_on(&clause.written, self.context)?;
            if !Filter::parse(clause.written.view(), &settings)?.matches(self.document, self.context)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn schema(self, schema: &Document, sense: Sense) -> Result<Document> {
        let shown = Document::new().with("operatorName", "$jsonSchema");
        if sense == Sense::Held {
            return Ok(shown.with("reason", "schema matched"));
        }
        let broken = explain_schema(schema.view(), self.document, self.context)?;
        let broken: Vec<Value> = broken.into_iter().map(Value::Document).collect();
        Ok(shown.with("schemaRulesNotSatisfied", broken))
    }

    fn expression(self, clause: &Clause, expression: &Value, sense: Sense) -> Result<Document> {
        let result = Expression::parse(expression.view(), &Variables::none())?
            .evaluate(&Scope::root(self.document), self.context)?;
        let reason = match sense {
            Sense::Failed => "expression did not match",
            Sense::Held => "expression did match",
        };
        let mut shown = told(clause).with("reason", reason);
        if let Some(result) = result {
            push_shown(&mut shown, "expressionResult", result);
        }
        Ok(shown)
    }

    /// Explains a condition on a field by the values there and the reason why they do not meet it.
    fn field(self, clause: &Clause, path: &str, sense: Sense) -> Result<Document> {
        let name = clause.operator.as_str();
        let sense = if is_negative(clause) { sense.turned() } else { sense };
        let found = self.considered(path, name)?;
        let mut shown = told(clause);
        let types = expected_types(name);
        match &found {
            None if name != "$exists" => shown.push("reason", "field was missing"),
            Some(found) if !types.is_empty() && !found.kinds.iter().any(|kind| types.contains(kind)) => {
                shown.push("reason", "type did not match");
                push_types(&mut shown, "considered", &found.kinds);
                push_types(&mut shown, "expected", types);
            }
            _ => shown.push("reason", reason(name, sense).unwrap_or("the value does not match")),
        }
        if let Some(mut found) = found.filter(|_| name != "$exists") {
            let is_cut = found.count > VALUES_MAX;
            match found.values.len() {
                1 => push_shown(&mut shown, "consideredValue", found.values.remove(0)),
                _ => push_shown(&mut shown, "consideredValues", Value::Array(found.values)),
            }
            if is_cut {
                shown.push("consideredValuesTruncated", true);
            }
            if name == "$type" {
                push_types(&mut shown, "considered", &found.kinds);
            }
        }
        Ok(shown)
    }

    /// Returns the values that an operator examines; none if there is no such field.
    fn considered(self, path: &str, operator: &str) -> Result<Option<ExaminedValues>> {
        let mut found: Option<ExaminedValues> = None;
        let whole = matches!(operator, "$size" | "$elemMatch" | "$all");
        FieldPath::parse(path)?.any(self.document, Arrays::Whole, self.context, &mut |leaf| {
            match leaf.value {
                Some(ValueRef::Array(items)) if !whole => {
                    let found = found.get_or_insert_default();
                    for item in items.iter() {
                        self.context.spend(1)?;
                        found.add(item);
                    }
                }
                Some(value) => found.get_or_insert_default().add(value),
                None => {}
            }
            Ok(false)
        })?;
        Ok(found)
    }
}

/// The values that an operator examines: all types, and as many values as are shown.
#[derive(Default)]
struct ExaminedValues {
    values: Vec<Value>,
    kinds: Vec<Kind>,
    count: usize,
}

impl ExaminedValues {
    fn add(&mut self, value: ValueRef<'_>) {
        self.count += 1;
        if self.values.len() < VALUES_MAX {
            self.values.push(value.to_value());
        }
        if !self.kinds.contains(&value.kind()) {
            self.kinds.push(value.kind());
        }
    }
}

fn told(clause: &Clause) -> Document {
    let mut told = Document::new().with("operatorName", clause.operator.as_str());
    push_shown(&mut told, "specifiedAs", Value::Document(clause.written.clone()));
    told
}

/// Returns `true` if the operator requires the opposite of what it searches for.
fn is_negative(clause: &Clause) -> bool {
    match clause.operator.as_str() {
        "$ne" | "$nin" => true,
        "$exists" => !is_truthy(clause.operand.view()),
        _ => false,
    }
}

/// Types as a client reads them: `consideredType`, or a list where there are several.
fn push_types(shown: &mut Document, prefix: &str, kinds: &[Kind]) {
    let names: BTreeSet<&str> = kinds.iter().copied().map(Kind::alias).collect();
    let mut names: Vec<Value> = names.into_iter().map(Value::from).collect();
    match names.len() {
        0 => {}
        1 => shown.push(format!("{prefix}Type"), names.remove(0)),
        _ => shown.push(format!("{prefix}Types"), names),
    }
}

/// Returns the types of values that an operator can hold for at all; empty if any.
fn expected_types(operator: &str) -> &'static [Kind] {
    const NUMBERS: &[Kind] = &[Kind::Int32, Kind::Int64, Kind::Double, Kind::Decimal128];
    match operator {
        "$mod" => NUMBERS,
        "$regex" => &[Kind::String, Kind::Symbol, Kind::Regex],
        "$size" | "$elemMatch" => &[Kind::Array],
        "$bitsAllSet" | "$bitsAllClear" | "$bitsAnySet" | "$bitsAnyClear" => {
            &[Kind::Int32, Kind::Int64, Kind::Double, Kind::Decimal128, Kind::Binary]
        }
        _ => &[],
    }
}

/// Returns why an operator failed, or, within a negation, why it held.
fn reason(operator: &str, sense: Sense) -> Option<&'static str> {
    let (failed, held) = match operator {
        "$eq" | "$ne" | "$lt" | "$lte" | "$gt" | "$gte" => ("comparison failed", "comparison succeeded"),
        "$in" | "$nin" => ("no matching value found in array", "matching value found in array"),
        "$exists" => ("path does not exist", "path does exist"),
        "$type" => ("type did not match", "type did match"),
        "$regex" => ("regular expression did not match", "regular expression did match"),
        "$mod" => ("$mod did not evaluate to expected remainder", "$mod did evaluate to expected remainder"),
        "$size" => ("array length was not equal to given size", "array length was equal to given size"),
        "$all" => ("array did not contain all specified values", "array did contain all specified values"),
        "$elemMatch" => {
            ("array did not satisfy the child predicate", "array did satisfy the child predicate")
        }
        "$bitsAllSet" | "$bitsAllClear" | "$bitsAnySet" | "$bitsAnyClear" => {
            ("bitwise operator failed to match", "bitwise operator matched successfully")
        }
        "$geoWithin" => (
            "none of the considered geometries were contained within the expression’s geometry",
            "at least one of considered geometries was contained within the expression’s geometry",
        ),
        "$geoIntersects" => (
            "none of the considered geometries intersected the expression’s geometry",
            "at least one of considered geometries intersected the expression’s geometry",
        ),
        "$alwaysFalse" | "$alwaysTrue" => {
            ("expression always evaluates to false", "expression always evaluates to true")
        }
        _ => return None,
    };
    Some(if sense == Sense::Failed { failed } else { held })
}
