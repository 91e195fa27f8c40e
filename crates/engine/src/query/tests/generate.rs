//! The generator of queries: every clause, over the item itself, properties, computed and system properties and
//! elements, with subqueries wherever the language has them.

use super::json::Json;
use super::tree::{Expr, Form, Projection, Rows, Select, Source, Step};
use super::world::{VALUES, World};

/// What a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Item,
    Element,
}

/// A name that an expression may use.
pub(super) type Name = (&'static str, Kind);

pub(super) const AGGREGATES: &[&str] = &["COUNT", "COUNT", "SUM", "AVG", "MIN", "MAX", "MAKELIST", "MAKESET"];

/// The orders that composite indexes have, their reverse, and others.
const ORDERS: &[&[(&str, bool)]] = &[
    &[("a", false), ("n", false)],
    &[("a", true), ("n", true)],
    &[("a", false), ("n", true)],
    &[("n", true), ("_ts", false)],
    &[("n", false), ("_ts", true)],
    &[("s", false), ("n", true), ("a", false)],
    &[("a", false)],
    &[("a", true)],
    &[("_ts", true)],
    &[("n", false), ("id", false)],
    &[("a", true), ("id", false)],
];

pub(super) fn path(name: &'static str, steps: &[Step]) -> Expr {
    Expr::Path(name, steps.to_vec())
}

pub(super) fn member(name: &'static str, member: &'static str) -> Expr {
    path(name, &[Step::Name(member)])
}

impl World {
    /// Something to show.
    fn shown(&mut self, names: &[Name]) -> Expr {
        match self.random.u8(..12) {
            0 => {
                let value = self.json(VALUES);
                self.constant(value)
            }
            1 => Expr::Plus(Box::new(self.place(names)), Box::new(Expr::Constant(Json::from(1)))),
            2 => Expr::Object(vec![("p", self.place(names)), ("q", self.small_place(names))]),
            3 => self.list(names, 1),
            4 => Expr::Subquery(Form::Scalar, Box::new(self.one_row(names, 1))),
            5 => self.statement(names, 1),
            _ => self.place(names),
        }
    }

    /// `FROM`, and the names that it gives.
    fn from(&mut self) -> (Vec<Source>, Vec<Name>) {
        let container = || Source { name: "c", rows: Rows::Container };
        let c = ("c", Kind::Item);
        let subquery = |select| Rows::Subquery(Box::new(select));
        match self.random.u8(..24) {
            0..=8 => (vec![container()], vec![c]),
            9..=11 => {
                let x = Source { name: "x", rows: Rows::Elements(self.array(&[c])) };
                (vec![container(), x], vec![c, ("x", Kind::Element)])
            }
            12 => {
                let x = Source { name: "x", rows: Rows::Elements(member("c", "t")) };
                let y = Source { name: "y", rows: Rows::Elements(self.array(&[c, ("x", Kind::Element)])) };
                (vec![container(), x, y], vec![c, ("x", Kind::Element), ("y", Kind::Element)])
            }
            13 => {
                let item = Select::new(Projection::Value(path("c", &[])), Vec::new());
                (vec![container(), Source { name: "s", rows: subquery(item) }], vec![c, ("s", Kind::Item)])
            }
            14 => {
                let (elements, _) = self.over_elements(&[c], 1);
                let s = Source { name: "s", rows: subquery(elements) };
                (vec![container(), s], vec![c, ("s", Kind::Element)])
            }
            15 => {
                let one = self.one_row(&[c], 1);
                let s = Source { name: "s", rows: subquery(one) };
                (vec![container(), s], vec![c, ("s", Kind::Element)])
            }
            16 => {
                let array = Select::new(Projection::Value(self.array(&[c])), Vec::new());
                let x = Source { name: "x", rows: Rows::ElementsOf(Box::new(array)) };
                (vec![container(), x], vec![c, ("x", Kind::Element)])
            }
            17 => {
                let x = Source { name: "x", rows: Rows::Elements(self.array(&[c])) };
                (vec![x], vec![("x", Kind::Element)])
            }
            18 => {
                let b = Source { name: "b", rows: Rows::Value(self.small_place(&[c])) };
                (vec![b], vec![("b", Kind::Element)])
            }
            _ => {
                let (select, kind) = self.inner();
                (vec![Source { name: "s", rows: subquery(select) }], vec![("s", kind)])
            }
        }
    }

    pub(super) fn aggregate(&mut self, names: &[Name]) -> Expr {
        let argument = match self.random.u8(..4) {
            0 => Expr::Constant(Json::from(1)),
            1 if names.contains(&("c", Kind::Item)) => member("c", "n"),
            _ => self.place(names),
        };
        if self.chance(10) {
            return Expr::Aggregate("COUNTIF", Box::new(self.statement(names, 0)));
        }
        let name = self.pick(AGGREGATES);
        let argument = if name.starts_with("MAKE") { self.small_place(names) } else { argument };
        Expr::Aggregate(name, Box::new(argument))
    }

    fn order(&mut self, names: &[Name]) -> Vec<(Expr, bool)> {
        let (name, kind) = self.name(names);
        if kind == Kind::Item && !self.has_large_items && self.chance(6) {
            return vec![(path(name, &[]), self.chance(2))];
        }
        if names.contains(&("c", Kind::Item)) && self.chance(2) {
            let keys = ORDERS[self.random.usize(..ORDERS.len())];
            return keys.iter().map(|(key, descends)| (member("c", key), *descends)).collect();
        }
        (0..self.random.usize(1..3)).map(|_| (self.small_place(names), self.chance(2))).collect()
    }

    fn window(&mut self, select: &mut Select) {
        let (most, offset) = (self.random.usize(..12), self.random.usize(..5));
        match self.random.u8(..8) {
            0 | 1 => select.top = Some(self.count(most)),
            2 => select.window = Some((self.count(offset), self.count(most))),
            3 => select.window = Some((self.count(0), self.count(1))),
            _ => {}
        }
    }

    /// Returns a query of any form.
    pub(super) fn query(&mut self) -> Select {
        self.parameters.clear();
        if self.chance(20) {
            return self.question();
        }
        let (from, names) = self.from();
        let mut select = Select::new(Projection::Star, from);
        if !self.chance(5) {
            select.filter = Some(self.filter(&names, 2));
        }
        match self.random.u8(..10) {
            0 => select.projection = Projection::Value(self.aggregate(&names)),
            1 => {
                let members = [("p", self.aggregate(&names)), ("q", self.aggregate(&names))];
                let count = self.random.usize(1..3);
                select.projection = Projection::List(members.into_iter().take(count).collect());
            }
            2 | 3 => self.groups(&mut select, &names),
            _ => self.rows_of(&mut select, &names),
        }
        select
    }

    fn groups(&mut self, select: &mut Select, names: &[Name]) {
        let mut keys = vec![self.small_place(names)];
        let other = self.small_place(names);
        if self.chance(3) && other != keys[0] {
            keys.push(other);
        }
        select.projection = match self.random.u8(..5) {
            0 => Projection::Value(self.aggregate(names)),
            1 => Projection::Value(keys[0].clone()),
            _ => Projection::List(vec![
                ("k", keys[0].clone()),
                ("p", self.aggregate(names)),
                ("q", self.aggregate(names)),
            ]),
        };
        if self.chance(6) {
            select.order_by = vec![(keys[0].clone(), self.chance(2))];
        }
        select.group_by = keys;
        self.window(select);
    }

    fn rows_of(&mut self, select: &mut Select, names: &[Name]) {
        select.distinct = self.chance(6);
        select.projection = match self.random.u8(..6) {
            _ if select.distinct => Projection::Value(self.small_place(names)),
            0 | 1 if select.from.len() == 1 => Projection::Star,
            2 => {
                let list = [("p", self.shown(names)), ("q", self.shown(names))];
                Projection::List(list.into_iter().collect())
            }
            3 | 4 => Projection::Value(self.shown(names)),
            _ => Projection::Value(path(self.name(names).0, &[])),
        };
        if self.chance(2) {
            select.order_by = match &select.projection {
                // Sorted by itself, a distinct row needs no memory of those before.
                Projection::Value(value @ Expr::Path(..)) if select.distinct && self.chance(2) => {
                    vec![(value.clone(), self.chance(2))]
                }
                _ => self.order(names),
            };
        }
        self.window(select);
    }
}
