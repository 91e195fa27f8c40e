//! Generates subqueries: over the elements of arrays, over the container in `FROM`, and queries about the container
//! without an outer `FROM`.

use super::generate::{AGGREGATES, Kind, Name, member, path};
use super::json::Json;
use super::tree::{Expr, Form, Projection, Rows, Select, Source};
use super::world::World;

/// Names of elements, from the outside in.
const ELEMENTS: [&str; 4] = ["x", "y", "z", "w"];

impl World {
    /// `FROM x IN c.t WHERE ...`, and `x`.
    pub(super) fn over_elements(&mut self, names: &[Name], depth: usize) -> (Select, &'static str) {
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

    /// Returns a subquery with one row: `(SELECT VALUE COUNT(1) FROM x IN c.t)`.
    pub(super) fn one_row(&mut self, names: &[Name], depth: usize) -> Select {
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

    /// Returns a subquery of any number of rows whose order is defined or does not matter.
    pub(super) fn list(&mut self, names: &[Name], depth: usize) -> Expr {
        let (mut select, name) = self.over_elements(names, depth);
        match self.random.u8(..5) {
            0 => {
                select.distinct = true;
                let array = Expr::Subquery(Form::Array, Box::new(select));
                return Expr::Call("ARRAY_LENGTH", vec![array]);
            }
            1 => select.order_by = vec![(path(name, &[]), self.chance(2))],
            2 => {
                let count = self.random.usize(..3);
                select.top = Some(self.count(count));
            }
            _ => {}
        }
        Expr::Subquery(Form::Array, Box::new(select))
    }

    pub(super) fn subquery_condition(&mut self, names: &[Name], depth: usize) -> Expr {
        match self.random.u8(..6) {
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
            3 => {
                let (mut select, name) = self.over_elements(names, depth);
                let inside: Vec<Name> = [names, &[(name, Kind::Element)]].concat();
                select.projection = Projection::Value(self.statement(&inside, 0));
                Expr::Subquery(Form::All, Box::new(select))
            }
            4 => {
                let (mut select, name) = self.over_elements(names, depth);
                if self.chance(3) {
                    select.order_by = vec![(path(name, &[]), self.chance(2))];
                }
                let form = if self.chance(2) { Form::First } else { Form::Last };
                self.comparison(Expr::Subquery(form, Box::new(select)))
            }
            _ => {
                let list = self.list(names, depth);
                self.comparison(list)
            }
        }
    }

    /// Returns a query in `FROM` that reads the container.
    pub(super) fn inner(&mut self) -> (Select, Kind) {
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
                let count = self.random.usize(..20);
                select.top = Some(self.count(count));
                select.order_by = vec![(member("c", "id"), self.chance(2))];
            }
            _ => {}
        }
        (select, kind)
    }

    /// Returns a question about the container without a `FROM` of its own.
    pub(super) fn question(&mut self) -> Select {
        let value = self.answer();
        let value = if self.chance(3) { self.around(value) } else { value };
        let projection =
            if self.chance(4) { Projection::List(vec![("p", value)]) } else { Projection::Value(value) };
        Select::new(projection, Vec::new())
    }

    /// Returns the value of a subquery over the container.
    fn answer(&mut self) -> Expr {
        let c = [("c", Kind::Item)];
        let from = vec![Source { name: "c", rows: Rows::Container }];
        let mut inner = Select::new(Projection::Value(Expr::Constant(Json::from(1))), from);
        if !self.chance(5) {
            inner.filter = Some(self.filter(&c, 2));
        }
        let by_id = |world: &mut World| vec![(member("c", "id"), world.chance(2))];
        let form = match self.random.u8(..9) {
            0 | 1 => Form::Exists,
            2 => return Expr::Not(Box::new(Expr::Subquery(Form::Exists, Box::new(inner)))),
            3 => {
                inner.projection = Projection::Value(self.statement(&c, 1));
                Form::All
            }
            4 | 5 => {
                inner.projection = Projection::Value(self.small_place(&c));
                inner.distinct = self.chance(3);
                if !inner.distinct && self.chance(3) {
                    inner.order_by = by_id(self);
                    let count = self.random.usize(..9);
                    inner.top = Some(self.count(count));
                }
                Form::Array
            }
            6 => {
                inner.projection = Projection::Value(self.small_place(&c));
                inner.order_by = by_id(self);
                if self.chance(2) { Form::First } else { Form::Last }
            }
            7 => {
                let id = self.sample("id").unwrap_or(Json::Null);
                let id = self.constant(id);
                inner.filter = Some(Expr::Compare(Box::new(member("c", "id")), "=", Box::new(id)));
                inner.projection = Projection::Value(self.place(&c));
                Form::Scalar
            }
            _ => {
                inner.projection = Projection::Value(self.aggregate(&c));
                Form::Scalar
            }
        };
        Expr::Subquery(form, Box::new(inner))
    }

    /// Something made of an answer by expressions and subqueries without `FROM`.
    fn around(&mut self, value: Expr) -> Expr {
        let bare = |value| Box::new(Select::new(Projection::Value(value), Vec::new()));
        match self.random.u8(..8) {
            0 => Expr::Subquery(Form::Scalar, bare(value)),
            1 => Expr::Subquery(Form::Array, bare(value)),
            2 => Expr::Subquery(Form::All, bare(value)),
            3 => {
                let mut select = bare(Expr::Constant(Json::from(1)));
                select.filter = Some(value);
                Expr::Subquery(if self.chance(2) { Form::Exists } else { Form::Array }, select)
            }
            4 => Expr::Plus(Box::new(value), Box::new(Expr::Constant(Json::from(1)))),
            5 => Expr::Call("ARRAY_LENGTH", vec![value]),
            6 => Expr::Not(Box::new(value)),
            _ => Expr::Object(vec![("q", value)]),
        }
    }
}
