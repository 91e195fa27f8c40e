//! A query as a small tree: printed for the engine, evaluated over plain JSON by `evaluate`.
//!
//! It has as much of the language as the generator uses and is not part of the crate `query`, whose parser and
//! evaluator are under test.

use std::fmt;

use super::json::Json;

/// One step into a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Name(&'static str),
    Index(usize),
}

/// A value, a condition or an aggregate.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expr {
    Constant(Json),
    /// `@p0`, and its value.
    Parameter(usize, Json),
    /// `c.name` and steps: a computed property of the container, with its expression over `c`.
    Computed(&'static str, Vec<Step>, Box<Expr>),
    Path(&'static str, Vec<Step>),
    Compare(Box<Expr>, &'static str, Box<Expr>),
    In(Box<Expr>, Negation, Vec<Expr>),
    Between(Box<Expr>, Negation, Box<Expr>, Box<Expr>),
    /// `LIKE 'prefix%'`
    Like(Box<Expr>, Negation, &'static str),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    Coalesce(Box<Expr>, Box<Expr>),
    Plus(Box<Expr>, Box<Expr>),
    Call(&'static str, Vec<Expr>),
    Object(Vec<(&'static str, Expr)>),
    Subquery(Form, Box<Select>),
    Aggregate(&'static str, Box<Expr>),
}

/// `IN` or `NOT IN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Negation {
    Plain,
    Negated,
}

/// How the rows of a subquery are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Exists,
    All,
    Array,
    Scalar,
    First,
    Last,
}

/// The figure of `TOP`, `OFFSET` or `LIMIT`, as a number or as a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) value: usize,
    pub(super) parameter: Option<usize>,
}

/// Where the rows of a name in `FROM` come from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rows {
    /// `FROM c`: the items.
    Container,
    /// `FROM c.b b` or, around a subquery, `FROM c`: the value of a path, here of the items.
    Value(Expr),
    /// `x IN c.t`
    Elements(Expr),
    /// `(SELECT ...) s`
    Subquery(Box<Select>),
    /// `x IN (SELECT ...)`
    ElementsOf(Box<Select>),
}

/// One name of `FROM`, or of `JOIN` behind the first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Source {
    pub(super) name: &'static str,
    pub(super) rows: Rows,
}

/// The form of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Projection {
    Star,
    Value(Expr),
    List(Vec<(&'static str, Expr)>),
}

/// A `SELECT`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Select {
    pub(super) distinct: bool,
    pub(super) top: Option<Count>,
    pub(super) projection: Projection,
    pub(super) from: Vec<Source>,
    pub(super) filter: Option<Expr>,
    pub(super) group_by: Vec<Expr>,
    /// The keys, and whether each descends.
    pub(super) order_by: Vec<(Expr, bool)>,
    /// `OFFSET` and `LIMIT`.
    pub(super) window: Option<(Count, Count)>,
}

impl Select {
    /// Creates `SELECT projection FROM ...` and nothing more.
    pub(super) fn new(projection: Projection, from: Vec<Source>) -> Select {
        let (group_by, order_by) = (Vec::new(), Vec::new());
        Select {
            distinct: false,
            top: None,
            projection,
            from,
            filter: None,
            group_by,
            order_by,
            window: None,
        }
    }

    /// Returns the expressions of the select list.
    pub(super) fn selected(&self) -> Vec<&Expr> {
        match &self.projection {
            Projection::Star => Vec::new(),
            Projection::Value(value) => vec![value],
            Projection::List(members) => members.iter().map(|(_, member)| member).collect(),
        }
    }

    /// Returns whether its rows are groups.
    pub(super) fn is_grouped(&self) -> bool {
        !self.group_by.is_empty()
            || self.selected().iter().any(|selected| matches!(selected, Expr::Aggregate(..)))
    }

    /// Returns whether the engine's answer has only one order: of sort keys with ties by creation, of groups, or of
    /// distinct rows.
    pub(super) fn has_told_order(&self) -> bool {
        !self.order_by.is_empty() || self.distinct || self.is_grouped()
    }

    /// Returns whether it takes some of its rows, without an order that says which.
    pub(super) fn takes_any(&self) -> bool {
        (self.top.is_some() || self.window.is_some()) && !self.has_told_order()
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Name(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// Things with commas between them.
fn list<T: fmt::Display>(things: &[T], between: &str) -> String {
    things.iter().map(T::to_string).collect::<Vec<_>>().join(between)
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parameter {
            Some(number) => write!(f, "@p{number}"),
            None => write!(f, "{}", self.value),
        }
    }
}

impl fmt::Display for Negation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Negation::Negated { "NOT " } else { "" })
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Constant(value) => write!(f, "{value}"),
            Expr::Parameter(number, _) => write!(f, "@p{number}"),
            Expr::Computed(name, steps, _) => write!(f, "c.{name}{}", list(steps, "")),
            Expr::Path(name, steps) => write!(f, "{name}{}", list(steps, "")),
            Expr::Compare(left, operator, right) => write!(f, "({left} {operator} {right})"),
            Expr::In(value, not, items) => write!(f, "({value} {not}IN ({}))", list(items, ", ")),
            Expr::Between(value, not, low, high) => write!(f, "({value} {not}BETWEEN {low} AND {high})"),
            Expr::Like(value, not, prefix) => write!(f, "({value} {not}LIKE '{prefix}%')"),
            Expr::And(parts) => write!(f, "({})", list(parts, " AND ")),
            Expr::Or(parts) => write!(f, "({})", list(parts, " OR ")),
            Expr::Not(part) => write!(f, "(NOT {part})"),
            Expr::Coalesce(left, right) => write!(f, "({left} ?? {right})"),
            Expr::Plus(left, right) => write!(f, "({left} + {right})"),
            Expr::Call(name, arguments) => write!(f, "{name}({})", list(arguments, ", ")),
            Expr::Object(members) => {
                let members: Vec<_> =
                    members.iter().map(|(name, member)| format!("\"{name}\": {member}")).collect();
                write!(f, "{{{}}}", members.join(", "))
            }
            Expr::Subquery(Form::Exists, select) => write!(f, "EXISTS({select})"),
            Expr::Subquery(Form::All, select) => write!(f, "ALL({select})"),
            Expr::Subquery(Form::Array, select) => write!(f, "ARRAY({select})"),
            Expr::Subquery(Form::First, select) => write!(f, "FIRST({select})"),
            Expr::Subquery(Form::Last, select) => write!(f, "LAST({select})"),
            Expr::Subquery(Form::Scalar, select) => write!(f, "({select})"),
            Expr::Aggregate(name, argument) => write!(f, "{name}({argument})"),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        match &self.rows {
            Rows::Container => f.write_str(name),
            Rows::Value(value) => write!(f, "{value} {name}"),
            Rows::Elements(array) => write!(f, "{name} IN {array}"),
            Rows::Subquery(select) => write!(f, "({select}) {name}"),
            Rows::ElementsOf(select) => write!(f, "{name} IN ({select})"),
        }
    }
}

impl fmt::Display for Projection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Projection::Star => f.write_str("*"),
            Projection::Value(value) => write!(f, "VALUE {value}"),
            Projection::List(members) => {
                let members: Vec<_> =
                    members.iter().map(|(name, member)| format!("{member} AS {name}")).collect();
                f.write_str(&members.join(", "))
            }
        }
    }
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SELECT {}", if self.distinct { "DISTINCT " } else { "" })?;
        if let Some(top) = self.top {
            write!(f, "TOP {top} ")?;
        }
        write!(f, "{}", self.projection)?;
        if !self.from.is_empty() {
            write!(f, " FROM {}", list(&self.from, " JOIN "))?;
        }
        if let Some(filter) = &self.filter {
            write!(f, " WHERE {filter}")?;
        }
        if !self.group_by.is_empty() {
            write!(f, " GROUP BY {}", list(&self.group_by, ", "))?;
        }
        if !self.order_by.is_empty() {
            let key =
                |(key, descends): &(Expr, bool)| format!("{key}{}", if *descends { " DESC" } else { "" });
            write!(f, " ORDER BY {}", self.order_by.iter().map(key).collect::<Vec<_>>().join(", "))?;
        }
        if let Some((offset, limit)) = self.window {
            write!(f, " OFFSET {offset} LIMIT {limit}")?;
        }
        Ok(())
    }
}
