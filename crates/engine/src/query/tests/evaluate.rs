//! Evaluates the expected rows of a query from its tree and plain JSON items: slow, small, and without any of the code
//! under test.

use std::cmp::Ordering;
use std::rc::Rc;

use super::json::{Json, Spelling, compare, double, equal, order, spelled};
use super::tree::{Expr, Form, Negation, Projection, Rows, Select, Source, Step};

/// The values of the names that an expression sees; a later one hides an earlier one.
type Names = Vec<(&'static str, Rc<Json>)>;

/// The name of the container where no outer `FROM` reads it; no query can use it.
const CONTAINER: &str = "";

/// A value; `None` is undefined.
type MaybeValue = Option<Rc<Json>>;

/// All rows of a query before `TOP` and `OFFSET LIMIT`, in runs: the runs are in order, the rows within a run are in
/// any order.
#[derive(Debug)]
pub(super) struct Expected {
    runs: Vec<Vec<Rc<Json>>>,
    offset: usize,
    limit: Option<usize>,
    /// Rows before duplicates are dropped; groups, whether or not they show anything.
    sent: usize,
}

/// Returns the rows of a query over a container with these items.
pub(super) fn expected(select: &Select, items: &[Json]) -> Expected {
    let list: Vec<Rc<Json>> = items.iter().cloned().map(Rc::new).collect();
    if select.from.is_empty() {
        // A subquery reads the container.
        let container = Rc::new(Json::from(items.to_vec()));
        return rows(select, &vec![(CONTAINER, container)], None);
    }
    rows(select, &Names::new(), Some(&list))
}

/// Returns the most rows that a range with these items needs to send to a client that joins ranges.
pub(super) fn most_rows(select: &Select, items: &[Json]) -> usize {
    let inside = match select.from.first().map(|source| &source.rows) {
        // A client may count distinct rows itself.
        Some(Rows::Subquery(inside)) if select.is_grouped() => most_rows(inside, items),
        _ => 0,
    };
    expected(select, items).sent.max(inside)
}

impl Expected {
    /// Checks rows that should be these. The error says what is wrong.
    pub(super) fn check(&self, rows: &[Json], spelling: Spelling) -> Result<(), String> {
        let (from, to) = self.bounds();
        if rows.len() != to - from {
            return Err(format!("{} rows, must be {}", rows.len(), to - from));
        }
        let (mut at, mut rows) = (0, rows.iter());
        for run in &self.runs {
            let count = (at + run.len()).min(to).saturating_sub(at.max(from));
            at += run.len();
            let mut left: Vec<String> = run.iter().map(|row| spelled(row, spelling)).collect();
            for row in rows.by_ref().take(count) {
                let row = spelled(row, spelling);
                let place = left.iter().position(|other| *other == row);
                left.swap_remove(place.ok_or_else(|| format!("{row} is out of place or none of the rows"))?);
            }
        }
        Ok(())
    }

    /// Returns all of its rows, in an order that it admits.
    pub(super) fn into_rows(self) -> Vec<Rc<Json>> {
        let (from, to) = self.bounds();
        self.runs.into_iter().flatten().skip(from).take(to - from).collect()
    }

    fn bounds(&self) -> (usize, usize) {
        let total = self.runs.iter().map(Vec::len).sum();
        let from = self.offset.min(total);
        (from, self.limit.map_or(total, |limit| total.min(from + limit)))
    }
}

/// Returns the rows of a query. One that reads the container is given its items; a subquery sees the names around it.
fn rows(select: &Select, around: &Names, items: Option<&[Rc<Json>]>) -> Expected {
    let mut rows = expand(&select.from, around, items);
    if let Some(filter) = &select.filter {
        rows.retain(|names| truth(filter, names) == Some(true));
    }
    let groups = if select.is_grouped() {
        group(&select.group_by, rows)
    } else {
        rows.into_iter().map(|row| vec![row]).collect()
    };
    let mut keyed: Vec<(Vec<MaybeValue>, Rc<Json>)> = Vec::new();
    for group in &groups {
        let empty = Names::new();
        let first = group.first().unwrap_or(&empty);
        if let Some(row) = project(select, first, group) {
            keyed.push((select.order_by.iter().map(|(key, _)| value(key, first)).collect(), row));
        }
    }
    let is_single = select.is_grouped() || select.from.is_empty();
    let sent = if is_single { groups.len() } else { keyed.len() };
    let by_keys = |one: &[MaybeValue], other: &[MaybeValue]| {
        let pairs = select.order_by.iter().zip(one.iter().zip(other));
        let mut found = pairs.map(|((_, descends), (one, other))| {
            let found = order(one.as_deref(), other.as_deref());
            if *descends { found.reverse() } else { found }
        });
        found.find(|found| found.is_ne()).unwrap_or(Ordering::Equal)
    };
    keyed.sort_by(|(one, _), (other, _)| by_keys(one, other));
    let mut runs: Vec<(Vec<MaybeValue>, Vec<Rc<Json>>)> = Vec::new();
    let mut shown: Vec<Rc<Json>> = Vec::new();
    for (key, row) in keyed {
        if select.distinct {
            if shown.iter().any(|other| equal(other, &row)) {
                continue;
            }
            shown.push(row.clone());
        }
        match runs.last_mut() {
            Some((last, run)) if by_keys(last, &key).is_eq() => run.push(row),
            _ => runs.push((key, vec![row])),
        }
    }
    let (offset, limit) =
        select.window.map_or((0, None), |(offset, limit)| (offset.value, Some(limit.value)));
    let top = select.top.map(|top| top.value);
    let limit = [limit, top].into_iter().flatten().min();
    Expected { runs: runs.into_iter().map(|(_, run)| run).collect(), offset, limit, sent }
}

/// Returns the rows of `FROM`, each as the names that it gives.
fn expand(from: &[Source], around: &Names, items: Option<&[Rc<Json>]>) -> Vec<Names> {
    let with = |names: &Names, name, value| {
        let mut names = names.clone();
        names.push((name, value));
        names
    };
    let mut rows = vec![around.clone()];
    for (index, source) in from.iter().enumerate() {
        let items = items.filter(|_| index == 0);
        let mut next = Vec::new();
        for names in rows {
            let values: Vec<Rc<Json>> = match (&source.rows, items) {
                (Rows::Container, Some(items)) => items.to_vec(),
                (Rows::Value(inner), Some(items)) => {
                    items.iter().filter_map(|item| value(inner, &with(&names, "c", item.clone()))).collect()
                }
                (Rows::Elements(array), Some(items)) => {
                    let array = |item: &Rc<Json>| value(array, &with(&names, "c", item.clone()));
                    items.iter().filter_map(array).flat_map(|array| elements(&array)).collect()
                }
                (Rows::Container, None) => {
                    walk(&names, CONTAINER, &[]).iter().flat_map(|items| elements(items)).collect()
                }
                (Rows::Value(inner), None) => value(inner, &names).into_iter().collect(),
                (Rows::Elements(array), None) => {
                    value(array, &names).iter().flat_map(|array| elements(array)).collect()
                }
                (Rows::Subquery(select), items) => self::rows(select, &names, items).into_rows(),
                (Rows::ElementsOf(select), items) => self::rows(select, &names, items)
                    .into_rows()
                    .iter()
                    .flat_map(|row| elements(row))
                    .collect(),
            };
            next.extend(values.into_iter().map(|value| with(&names, source.name, value)));
        }
        rows = next;
    }
    rows
}

fn elements(value: &Json) -> Vec<Rc<Json>> {
    value.as_array().into_iter().flatten().cloned().map(Rc::new).collect()
}

/// Rows with equal keys together; without keys all of them, even none.
fn group(keys: &[Expr], rows: Vec<Names>) -> Vec<Vec<Names>> {
    if keys.is_empty() {
        return vec![rows];
    }
    let mut groups: Vec<(Vec<MaybeValue>, Vec<Names>)> = Vec::new();
    for row in rows {
        let key: Vec<MaybeValue> = keys.iter().map(|key| value(key, &row)).collect();
        let same = |other: &Vec<MaybeValue>| {
            other.iter().zip(&key).all(|(one, other)| order(one.as_deref(), other.as_deref()).is_eq())
        };
        match groups.iter_mut().find(|(other, _)| same(other)) {
            Some((_, group)) => group.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// What is shown of a row, or of a group and its first row.
fn project(select: &Select, first: &Names, group: &[Names]) -> MaybeValue {
    let shown = |expr: &Expr| match expr {
        Expr::Aggregate(name, argument) => aggregate(name, argument, group),
        other => value(other, first),
    };
    match &select.projection {
        Projection::Star => first.last().map(|(_, value)| value.clone()),
        Projection::Value(value) => shown(value),
        Projection::List(members) => {
            let members = members
                .iter()
                .filter_map(|(name, member)| Some(((*name).to_owned(), Json::clone(&*shown(member)?))));
            Some(Rc::new(Json::Object(members.collect())))
        }
    }
}

fn aggregate(name: &str, argument: &Expr, group: &[Names]) -> MaybeValue {
    let values: Vec<Rc<Json>> = group.iter().filter_map(|row| value(argument, row)).collect();
    let sum = || values.iter().map(|value| value.as_f64()).sum::<Option<f64>>();
    let ordered = || values.iter().all(|value| !value.is_array() && !value.is_object());
    let by_order = |one: &&Rc<Json>, other: &&Rc<Json>| order(Some(one), Some(other));
    match name {
        "COUNT" => Some(Rc::new(Json::from(values.len()))),
        "COUNTIF" => {
            Some(Rc::new(Json::from(values.iter().filter(|value| value.as_bool() == Some(true)).count())))
        }
        "SUM" => double(sum()?).map(Rc::new),
        "AVG" if values.is_empty() => None,
        "AVG" => double(sum()? / values.len() as f64).map(Rc::new),
        "MAKELIST" => Some(Rc::new(values.iter().map(|value| Json::clone(value)).collect())),
        "MAKESET" => {
            let mut set: Vec<Json> = Vec::new();
            for value in values {
                if !set.iter().any(|other| equal(other, &value)) {
                    set.push(Json::clone(&value));
                }
            }
            Some(Rc::new(Json::Array(set)))
        }
        "MIN" if ordered() => values.iter().min_by(by_order).cloned(),
        "MAX" if ordered() => values.iter().max_by(by_order).cloned(),
        "MIN" | "MAX" => None,
        other => unreachable!("no such aggregate: {other}"),
    }
}

fn walk(names: &Names, name: &str, steps: &[Step]) -> MaybeValue {
    let (_, root) = names.iter().rev().find(|(known, _)| *known == name)?;
    inside(root.clone(), steps)
}

/// Returns the value at steps inside another.
fn inside(root: Rc<Json>, steps: &[Step]) -> MaybeValue {
    let step = |value: &'_ Json, step: &Step| match step {
        Step::Name(name) => value.as_object().and_then(|members| members.get(*name)).cloned(),
        Step::Index(index) => value.as_array().and_then(|items| items.get(*index)).cloned(),
    };
    let Some((first, rest)) = steps.split_first() else { return Some(root) };
    let found = rest.iter().try_fold(step(&root, first)?, |value, next| step(&value, next))?;
    Some(Rc::new(found))
}

/// Returns the value of an expression.
fn value(expr: &Expr, names: &Names) -> MaybeValue {
    match expr {
        Expr::Constant(value) | Expr::Parameter(_, value) => Some(Rc::new(value.clone())),
        Expr::Computed(_, steps, meaning) => inside(value(meaning, names)?, steps),
        Expr::Path(name, steps) => walk(names, name, steps),
        Expr::Coalesce(left, right) => value(left, names).or_else(|| value(right, names)),
        Expr::Plus(left, right) => {
            double(value(left, names)?.as_f64()? + value(right, names)?.as_f64()?).map(Rc::new)
        }
        Expr::Call("ARRAY_LENGTH", arguments) => {
            Some(Rc::new(Json::from(value(&arguments[0], names)?.as_array()?.len())))
        }
        Expr::Object(members) => {
            let members = members.iter().filter_map(|(name, member)| {
                Some(((*name).to_owned(), Json::clone(&*value(member, names)?)))
            });
            Some(Rc::new(Json::Object(members.collect())))
        }
        Expr::Subquery(Form::Array, select) => {
            let rows = rows(select, names, None).into_rows();
            Some(Rc::new(rows.iter().map(|row| Json::clone(row)).collect()))
        }
        Expr::Subquery(Form::Scalar, select) => {
            let mut rows = rows(select, names, None).into_rows();
            assert!(rows.len() < 2, "a scalar subquery has one row: {select}");
            rows.pop()
        }
        Expr::Subquery(Form::First, select) => rows(select, names, None).into_rows().into_iter().next(),
        Expr::Subquery(Form::Last, select) => rows(select, names, None).into_rows().pop(),
        Expr::Aggregate(..) => unreachable!("an aggregate stands in a select list alone"),
        condition => truth(condition, names).map(|truth| Rc::new(Json::Bool(truth))),
    }
}

/// Returns the value of a condition; what is not a boolean is undefined.
fn truth(expr: &Expr, names: &Names) -> Option<bool> {
    let negated = |not: Negation, truth: bool| truth != (not == Negation::Negated);
    match expr {
        Expr::Compare(left, operator, right) => {
            relates(&*value(left, names)?, operator, &*value(right, names)?)
        }
        Expr::In(sought, not, list) => {
            let sought = value(sought, names)?;
            let equals = list.iter().map(|item| Some(equal(&sought, &*value(item, names)?)));
            decide(equals, true).map(|found| negated(*not, found))
        }
        Expr::Between(sought, not, low, high) => {
            let sought = value(sought, names)?;
            let above = value(low, names).and_then(|low| relates(&sought, ">=", &low));
            let below = value(high, names).and_then(|high| relates(&sought, "<=", &high));
            decide([above, below].into_iter(), false).map(|found| negated(*not, found))
        }
        Expr::Like(text, not, prefix) => {
            Some(negated(*not, value(text, names)?.as_str()?.starts_with(prefix)))
        }
        Expr::And(parts) => decide(parts.iter().map(|part| truth(part, names)), false),
        Expr::Or(parts) => decide(parts.iter().map(|part| truth(part, names)), true),
        Expr::Not(part) => truth(part, names).map(|truth| !truth),
        Expr::Call(name, arguments) if *name != "ARRAY_LENGTH" => call(name, arguments, names),
        Expr::Subquery(Form::Exists, select) => Some(!rows(select, names, None).into_rows().is_empty()),
        Expr::Subquery(Form::All, select) => {
            Some(rows(select, names, None).into_rows().iter().all(|row| row.as_bool() == Some(true)))
        }
        other => value(other, names)?.as_bool(),
    }
}

/// `OR` is decided by true, `AND` by false; undecided with an undefined part it is undefined.
fn decide(parts: impl Iterator<Item = Option<bool>>, deciding: bool) -> Option<bool> {
    let parts: Vec<Option<bool>> = parts.collect();
    if parts.contains(&Some(deciding)) {
        return Some(deciding);
    }
    if parts.contains(&None) { None } else { Some(!deciding) }
}

fn relates(left: &Json, operator: &str, right: &Json) -> Option<bool> {
    Some(match operator {
        "=" => equal(left, right),
        "!=" => !equal(left, right),
        "<" => compare(left, right)?.is_lt(),
        "<=" => compare(left, right)?.is_le(),
        ">" => compare(left, right)?.is_gt(),
        ">=" => compare(left, right)?.is_ge(),
        other => unreachable!("no such operator: {other}"),
    })
}

fn call(name: &str, arguments: &[Expr], names: &Names) -> Option<bool> {
    let first = value(&arguments[0], names);
    let is = |test: fn(&Json) -> bool| Some(first.as_deref().is_some_and(test));
    match name {
        "IS_DEFINED" => is(|_| true),
        "IS_NULL" => is(Json::is_null),
        "IS_BOOL" => is(Json::is_boolean),
        "IS_NUMBER" | "IS_FINITE_NUMBER" => is(Json::is_number),
        "IS_INTEGER" => is(|value| value.as_f64().is_some_and(|number| number.fract() == 0.0)),
        "IS_STRING" => is(Json::is_string),
        "IS_DATETIME" => is(|value| value.as_str().is_some_and(|text| text.starts_with("2026-01-02T"))),
        "IS_ARRAY" => is(Json::is_array),
        "IS_OBJECT" => is(Json::is_object),
        "IS_PRIMITIVE" => is(|value| !value.is_array() && !value.is_object()),
        "STARTSWITH" | "CONTAINS" => {
            let (text, sought) = (first?, value(&arguments[1], names)?);
            let (text, sought) = (text.as_str()?, sought.as_str()?);
            Some(if name == "CONTAINS" { text.contains(sought) } else { text.starts_with(sought) })
        }
        "ARRAY_CONTAINS" => {
            let (array, sought) = (first?, value(&arguments[1], names)?);
            let fits = if arguments.len() > 2 { includes } else { equal };
            Some(array.as_array()?.iter().any(|item| fits(item, &sought)))
        }
        other => unreachable!("no such function: {other}"),
    }
}

/// Returns whether an object has at least the members of another; other values must be equal.
fn includes(item: &Json, sought: &Json) -> bool {
    match (item, sought) {
        (Json::Object(item), Json::Object(sought)) => {
            sought.iter().all(|(name, sought)| item.get(name).is_some_and(|member| includes(member, sought)))
        }
        _ => equal(item, sought),
    }
}
