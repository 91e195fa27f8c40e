//! The generator of queries: every clause, over the item itself, properties, system properties and elements, with
//! subqueries wherever the language has them.

use super::json::Json;
use super::tree::{Expr, Form, Negation, Projection, Rows, Select, Source, Step};
use super::world::{START, VALUES, World};

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Item,
    Element,
}

/// A name that an expression may use.
type Name = (&'static str, Kind);

/// Names of elements, from the outside in.
const ELEMENTS: [&str; 4] = ["x", "y", "z", "w"];

const TYPE_CHECKS: &[&str] = &[
    "IS_DEFINED",
    "IS_DEFINED",
    "IS_NULL",
    "IS_BOOL",
    "IS_NUMBER",
    "IS_FINITE_NUMBER",
    "IS_INTEGER",
    "IS_STRING",
    "IS_DATETIME",
    "IS_ARRAY",
    "IS_OBJECT",
    "IS_PRIMITIVE",
];

const AGGREGATES: &[&str] = &["COUNT", "COUNT", "SUM", "AVG", "MIN", "MAX"];

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

fn path(name: &'static str, steps: &[Step]) -> Expr {
    Expr::Path(name, steps.to_vec())
}

fn member(name: &'static str, member: &'static str) -> Expr {
    path(name, &[Step::Name(member)])
}

impl World {
    fn chance(&mut self, one_in: u8) -> bool {
        self.random.u8(..one_in) == 0
    }

    fn json(&mut self, list: &[&'static str]) -> Json {
        serde_json::from_str(self.pick(list)).expect("valid JSON")
    }

    fn name(&mut self, names: &[Name]) -> Name {
        *self.random.choice(names).expect("a query has a name")
    }

    /// A place in a value: the value itself now and then.
    fn place(&mut self, names: &[Name]) -> Expr {
        use Step::{Index, Name};
        let (name, kind) = self.name(names);
        if kind == Kind::Element {
            return match self.random.u8(..6) {
                0..=3 => path(name, &[]),
                4 => member(name, "k"),
                _ => path(name, &[Index(0)]),
            };
        }
        match self.random.u8(..24) {
            0 | 1 => path(name, &[]),
            2..=6 => member(name, "a"),
            7 => member(name, "b"),
            8 => path(name, &[Name("b"), Name("k")]),
            9 | 10 => member(name, "n"),
            11 => member(name, "s"),
            12 => member(name, "t"),
            13 => path(name, &[Name("t"), Index(0)]),
            14 => path(name, &[Name("t"), Index(1)]),
            15 => path(name, &[Name("t"), Index(0), Name("k")]),
            16 => path(name, &[Index(0)]),
            17 => member(name, "missing"),
            other => member(name, ["id", "pk", "_ts", "_rid", "_etag", "_self"][usize::from(other - 18)]),
        }
    }

    /// A place that holds no more than a few hundred bytes.
    fn small_place(&mut self, names: &[Name]) -> Expr {
        loop {
            match self.place(names) {
                Expr::Path(name, steps) if steps.is_empty() && names.contains(&(name, Kind::Item)) => {}
                place => return place,
            }
        }
    }

    /// A constant that the place may well hold.
    fn constant_for(&mut self, place: &Expr) -> Expr {
        let steps = if let Expr::Path(_, steps) = place { steps.as_slice() } else { &[] };
        let likely = match steps {
            [Step::Name("_ts")] => Some(Json::from(START + self.random.u64(..20))),
            [Step::Name("n")] => Some(Json::from(self.random.u8(..9))),
            [Step::Name("s")] => Some(Json::from(self.pick(&["x", "y", "w"]))),
            [Step::Name(member @ ("id" | "pk" | "_rid" | "_etag" | "_self"))] => self.sample(member),
            [Step::Name("a")] if self.chance(8) => Some(Json::from("l".repeat(self.random.usize(126..132)))),
            _ => None,
        };
        match likely {
            Some(likely) if !self.chance(4) => Expr::Constant(likely),
            _ => Expr::Constant(self.json(VALUES)),
        }
    }

    fn negation(&mut self) -> Negation {
        if self.chance(3) { Negation::Negated } else { Negation::Plain }
    }

    /// A path to what may be an array.
    fn array(&mut self, names: &[Name]) -> Expr {
        match self.name(names) {
            (name, Kind::Element) => path(name, &[]),
            (name, Kind::Item) => match self.random.u8(..10) {
                0 => path(name, &[]),
                1 => member(name, "a"),
                2 => path(name, &[Step::Name("t"), Step::Index(0)]),
                _ => member(name, "t"),
            },
        }
    }

    /// `FROM x IN c.t WHERE ...`, and `x`.
    fn over_elements(&mut self, names: &[Name], depth: usize) -> (Select, &'static str) {
        let taken = |element: &&str| names.iter().any(|(name, _)| name == element);
        let name = *ELEMENTS.iter().find(|element| !taken(element)).expect("few levels");
        let source = Source { name, rows: Rows::Elements(self.array(names)) };
        let mut select = Select::new(Projection::Value(path(name, &[])), vec![source]);
        if !self.chance(3) {
            let inside: Vec<Name> = [names, &[(name, Kind::Element), (name, Kind::Element)]].concat();
            select.filter = Some(self.filter(&inside, depth.min(1)));
        }
        (select, name)
    }

    /// A subquery with one row: `(SELECT VALUE COUNT(1) FROM x IN c.t)`.
    fn one_row(&mut self, names: &[Name], depth: usize) -> Select {
        if self.chance(4) {
            return Select::new(Projection::Value(self.place(names)), Vec::new());
        }
        let (mut select, name) = self.over_elements(names, depth);
        let argument = match self.random.u8(..5) {
            0 | 1 => Expr::Constant(Json::from(1)),
            2 if depth > 0 => {
                let inside: Vec<Name> = [names, &[(name, Kind::Element)]].concat();
                Expr::Subquery(Form::Scalar, Box::new(self.one_row(&inside, depth - 1)))
            }
            _ => path(name, &[]),
        };
        select.projection = Projection::Value(Expr::Aggregate(self.pick(AGGREGATES), Box::new(argument)));
        select
    }

    /// A subquery of any number of rows whose order does not matter, or is told.
    fn list(&mut self, names: &[Name], depth: usize) -> Expr {
        let (mut select, name) = self.over_elements(names, depth);
        match self.random.u8(..5) {
            0 => {
                select.distinct = true;
                let array = Expr::Subquery(Form::Array, Box::new(select));
                return Expr::Call("ARRAY_LENGTH", vec![array]);
            }
            1 => select.order_by = vec![(path(name, &[]), self.chance(2))],
            2 => select.top = Some(self.random.usize(..3)),
            _ => {}
        }
        Expr::Subquery(Form::Array, Box::new(select))
    }

    fn subquery_condition(&mut self, names: &[Name], depth: usize) -> Expr {
        match self.random.u8(..4) {
            0 | 1 => {
                let (mut select, name) = self.over_elements(names, depth);
                match self.random.u8(..5) {
                    0 => select.projection = Projection::Value(Expr::Constant(Json::from(1))),
                    1 => select.projection = Projection::Value(member(name, "k")),
                    2 => select.projection = Projection::List(vec![("k", member(name, "k"))]),
                    _ => {}
                }
                Expr::Subquery(Form::Exists, Box::new(select))
            }
            2 => {
                let select = Expr::Subquery(Form::Scalar, Box::new(self.one_row(names, depth)));
                self.comparison(select)
            }
            _ => {
                let list = self.list(names, depth);
                self.comparison(list)
            }
        }
    }

    fn comparison(&mut self, value: Expr) -> Expr {
        let operator = self.pick(&["=", "=", "=", "!=", "<", "<=", ">", ">="]);
        let constant = self.constant_for(&value);
        let (left, right) = if self.chance(6) { (constant, value) } else { (value, constant) };
        Expr::Compare(Box::new(left), operator, Box::new(right))
    }

    /// One condition.
    fn statement(&mut self, names: &[Name], depth: usize) -> Expr {
        let place = self.place(names);
        match self.random.u8(..24) {
            0..=6 => self.comparison(place),
            7 => {
                let other = self.place(names);
                let operator = self.pick(&["=", "!=", "<", ">="]);
                Expr::Compare(Box::new(place), operator, Box::new(other))
            }
            8 | 9 => {
                let list = (0..self.random.usize(1..4)).map(|_| self.constant_for(&place)).collect();
                Expr::In(Box::new(place), self.negation(), list)
            }
            10 => {
                let (low, high) = (self.constant_for(&place), self.constant_for(&place));
                Expr::Between(Box::new(place), self.negation(), Box::new(low), Box::new(high))
            }
            11 => Expr::Like(Box::new(place), self.negation(), self.pick(&["a", "l", "", "k"])),
            12..=14 => Expr::Call(self.pick(TYPE_CHECKS), vec![place]),
            15 => {
                let text = Expr::Constant(Json::from(self.pick(&["a", "l", "", "0"])));
                Expr::Call(self.pick(&["STARTSWITH", "CONTAINS"]), vec![place, text])
            }
            16 | 17 => {
                let (array, value) = (self.array(names), Expr::Constant(self.json(VALUES)));
                let partial = self.chance(3).then_some(Expr::Constant(Json::Bool(true)));
                Expr::Call("ARRAY_CONTAINS", [array, value].into_iter().chain(partial).collect())
            }
            18 => {
                let list = Json::Array((0..self.random.usize(1..4)).map(|_| self.json(VALUES)).collect());
                Expr::Call("ARRAY_CONTAINS", vec![Expr::Constant(list), place])
            }
            19 => {
                let constant = self.constant_for(&place);
                self.comparison(Expr::Coalesce(Box::new(place), Box::new(constant)))
            }
            20 => place,
            21 => {
                let check = Expr::Call(self.pick(TYPE_CHECKS), vec![place]);
                let truth = Expr::Constant(Json::Bool(self.chance(2)));
                Expr::Compare(Box::new(check), self.pick(&["=", "!="]), Box::new(truth))
            }
            _ if depth > 0 => self.subquery_condition(names, depth - 1),
            _ => self.comparison(place),
        }
    }

    /// A condition, combined of some.
    pub(super) fn filter(&mut self, names: &[Name], depth: usize) -> Expr {
        if depth == 0 {
            return self.statement(names, 0);
        }
        let parts = |world: &mut World| -> Vec<Expr> {
            (0..world.random.usize(2..4)).map(|_| world.filter(names, depth - 1)).collect()
        };
        match self.random.u8(..8) {
            0..=3 => self.statement(names, depth),
            4 | 5 => Expr::And(parts(self)),
            6 => Expr::Or(parts(self)),
            _ => Expr::Not(Box::new(self.filter(names, depth - 1))),
        }
    }

    /// Something to show.
    fn shown(&mut self, names: &[Name]) -> Expr {
        match self.random.u8(..12) {
            0 => Expr::Constant(self.json(VALUES)),
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

    /// A query in `FROM` that reads the container.
    fn inner(&mut self) -> (Select, Kind) {
        let c = ("c", Kind::Item);
        let from = vec![Source { name: "c", rows: Rows::Container }];
        let mut select = Select::new(Projection::Value(path("c", &[])), from);
        if !self.chance(3) {
            select.filter = Some(self.filter(&[c], 1));
        }
        let mut kind = Kind::Item;
        match self.random.u8(..6) {
            0 => {
                select.projection = Projection::List(vec![
                    ("a", self.small_place(&[c])),
                    ("t", member("c", "t")),
                    ("id", member("c", "id")),
                ]);
            }
            1 => (select.projection, kind) = (Projection::Value(self.small_place(&[c])), Kind::Element),
            2 => {
                select.distinct = true;
                (select.projection, kind) = (Projection::Value(self.small_place(&[c])), Kind::Element);
            }
            3 => {
                select.top = Some(self.random.usize(..20));
                select.order_by = vec![(member("c", "id"), self.chance(2))];
            }
            _ => {}
        }
        (select, kind)
    }

    fn aggregate(&mut self, names: &[Name]) -> Expr {
        let argument = match self.random.u8(..4) {
            0 => Expr::Constant(Json::from(1)),
            1 if names.contains(&("c", Kind::Item)) => member("c", "n"),
            _ => self.place(names),
        };
        if self.chance(10) {
            return Expr::Aggregate("COUNTIF", Box::new(self.statement(names, 0)));
        }
        Expr::Aggregate(self.pick(AGGREGATES), Box::new(argument))
    }

    fn order(&mut self, names: &[Name]) -> Vec<(Expr, bool)> {
        if names.contains(&("c", Kind::Item)) && self.chance(2) {
            let keys = ORDERS[self.random.usize(..ORDERS.len())];
            return keys.iter().map(|(key, descends)| (member("c", key), *descends)).collect();
        }
        (0..self.random.usize(1..3)).map(|_| (self.small_place(names), self.chance(2))).collect()
    }

    fn window(&mut self, select: &mut Select) {
        match self.random.u8(..8) {
            0 | 1 => select.top = Some(self.random.usize(..12)),
            2 => select.window = Some((self.random.usize(..5), self.random.usize(..9))),
            3 => select.window = Some((0, 1)),
            _ => {}
        }
    }

    /// A question about the container without a `FROM` of its own.
    fn question(&mut self) -> Select {
        let names = [("c", Kind::Item)];
        let from = vec![Source { name: "c", rows: Rows::Container }];
        let mut inner = Select::new(Projection::Value(Expr::Constant(Json::from(1))), from);
        if !self.chance(5) {
            inner.filter = Some(self.filter(&names, 2));
        }
        let subquery = |form, inner: Select| Expr::Subquery(form, Box::new(inner));
        let value = match self.random.u8(..4) {
            0 | 1 => subquery(Form::Exists, inner),
            2 => Expr::Not(Box::new(subquery(Form::Exists, inner))),
            _ => {
                inner.projection = Projection::Value(self.aggregate(&names));
                subquery(Form::Scalar, inner)
            }
        };
        let projection =
            if self.chance(4) { Projection::List(vec![("p", value)]) } else { Projection::Value(value) };
        Select::new(projection, Vec::new())
    }

    /// A query of any form.
    pub(super) fn query(&mut self) -> Select {
        if self.chance(24) {
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
