//! Why a document does not match a filter: what clients read in `errInfo.details` of a write that a validator refused.
//!
//! The filter is gone through as it was written, clause by clause, and each clause is asked by itself. So the explanation knows
//! nothing of its own about operators and cannot disagree with the filter. Within a negation it tells what did match.

use std::collections::BTreeSet;

use bson::{Document, DocumentRef, Kind, Value, ValueRef};

use super::schema::explain_schema;
use super::shown::{push_shown, spend_on};
use super::{Filter, Settings};
use crate::context::Context;
use crate::error::Result;
use crate::expression::{Expression, Scope, Variables};
use crate::path::{Arrays, FieldPath};

/// How deep clauses are gone into.
const DEPTH_MAX: usize = 32;
/// How many values of an array are shown.
const VALUES_MAX: usize = 10;

/// What of a filter a document does not meet. The work counts in the context, and ends with it.
pub fn explain_filter(
    filter: DocumentRef<'_>,
    document: DocumentRef<'_>,
    context: &Context,
) -> Result<Document> {
    let explainer = Explainer { document, context, depth: DEPTH_MAX };
    explainer.all(&clauses(filter), Sense::Failed)
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

/// The conditions of a filter, one by one.
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

/// The conditions on one field. A `$regex` goes with its `$options`.
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
    /// One clause by itself, several as an `$and`.
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
            _ if self.depth == 0 => Ok(told(clause).with("reason", "the document does not match")),
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
            _ => {
                match &clause.path {
                    Some(path) => self.field(clause, path, sense),
                    None => Ok(told(clause)
                        .with("reason", reason(name, sense).unwrap_or("the document does not match"))),
                }
            }
        }
    }

    /// A logical operator: those of its branches that make it fail, or hold.
    fn list<'c>(
        self,
        name: &str,
        branches: impl Iterator<Item = &'c [Clause]>,
        within: Sense,
    ) -> Result<Document> {
        let mut shown = Vec::new();
        for (index, branch) in branches.enumerate() {
            if self.matches(branch)? == (within == Sense::Held) {
                let details = self.all(branch, within)?;
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

    /// A condition on a field: what is there, and why that is not enough.
    fn field(self, clause: &Clause, path: &str, sense: Sense) -> Result<Document> {
        let name = clause.operator.as_str();
        let sense = if is_negative(clause) { sense.turned() } else { sense };
        let found = self.values(path, name)?;
        let mut shown = told(clause);
        let types = expected_types(name);
        match &found {
            None if name != "$exists" => shown.push("reason", "field was missing"),
            Some(found)
                if !types.is_empty() && !found.iter().any(|value| types.contains(&value.view().kind())) =>
            {
                shown.push("reason", "type did not match");
                push_types(&mut shown, "considered", found.iter().map(|value| value.view().kind()));
                push_types(&mut shown, "expected", types.iter().copied());
            }
            _ => shown.push("reason", reason(name, sense).unwrap_or("the value does not match")),
        }
        if let Some(mut found) = found.filter(|_| name != "$exists") {
            let kinds: Vec<Kind> = found.iter().map(|value| value.view().kind()).collect();
            let is_cut = found.len() > VALUES_MAX;
            found.truncate(VALUES_MAX);
            match found.len() {
                1 => push_shown(&mut shown, "consideredValue", found.remove(0)),
                _ => push_shown(&mut shown, "consideredValues", Value::Array(found)),
            }
            if is_cut {
                shown.push("consideredValuesTruncated", true);
            }
            if name == "$type" {
                push_types(&mut shown, "considered", kinds.into_iter());
            }
        }
        Ok(shown)
    }

    /// The values that an operator looks at; none if there is no such field.
    fn values(self, path: &str, operator: &str) -> Result<Option<Vec<Value>>> {
        let mut found: Option<Vec<Value>> = None;
        let whole = matches!(operator, "$size" | "$elemMatch" | "$all");
        FieldPath::parse(path)?.any(self.document, Arrays::Whole, self.context, &mut |leaf| {
            match leaf.value {
                Some(ValueRef::Array(items)) if !whole => {
                    found.get_or_insert_default().extend(items.iter().map(ValueRef::to_value));
                }
                Some(value) => found.get_or_insert_default().push(value.to_value()),
                None => {}
            }
            Ok(found.as_ref().is_some_and(|found| found.len() > VALUES_MAX))
        })?;
        Ok(found)
    }
}

fn told(clause: &Clause) -> Document {
    let mut told = Document::new().with("operatorName", clause.operator.as_str());
    push_shown(&mut told, "specifiedAs", Value::Document(clause.written.clone()));
    told
}

/// Whether the operator asks for the opposite of what it looks for.
fn is_negative(clause: &Clause) -> bool {
    match clause.operator.as_str() {
        "$ne" | "$nin" => true,
        "$exists" => matches!(clause.operand, Value::Bool(false) | Value::Int32(0) | Value::Int64(0)),
        _ => false,
    }
}

/// Types as a client reads them: `consideredType`, or a list where there are several.
fn push_types(shown: &mut Document, prefix: &str, kinds: impl Iterator<Item = Kind>) {
    let names: BTreeSet<&str> = kinds.map(Kind::alias).collect();
    let mut names: Vec<Value> = names.into_iter().map(Value::from).collect();
    match names.len() {
        0 => {}
        1 => shown.push(format!("{prefix}Type"), names.remove(0)),
        _ => shown.push(format!("{prefix}Types"), names),
    }
}

/// The types of values that an operator can hold for at all; empty if any.
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

/// Why an operator failed, or, within a negation, why it held.
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
