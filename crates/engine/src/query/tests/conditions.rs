//! Generates conditions: comparisons, type checks, lists, subqueries, and combinations of them.

use super::generate::{Kind, Name};
use super::json::Json;
use super::tree::Expr;
use super::world::{VALUES, World};

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

impl World {
    pub(super) fn comparison(&mut self, value: Expr) -> Expr {
        let operator = self.pick(&["=", "=", "=", "!=", "<", "<=", ">", ">="]);
        let constant = self.constant_for(&value);
        let (left, right) = if self.chance(6) { (constant, value) } else { (value, constant) };
        Expr::Compare(Box::new(left), operator, Box::new(right))
    }

    /// Returns one condition.
    pub(super) fn statement(&mut self, names: &[Name], depth: usize) -> Expr {
        let place = self.place(names);
        if names.contains(&("c", Kind::Item))
            && self.chance(16)
            && let Some(condition) = self.key_condition()
        {
            return condition;
        }
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
                let (array, value) = (self.array(names), self.json(VALUES));
                let value = self.constant(value);
                let partial = self.chance(3).then_some(Expr::Constant(Json::Bool(true)));
                Expr::Call("ARRAY_CONTAINS", [array, value].into_iter().chain(partial).collect())
            }
            18 => {
                let list = Json::Array((0..self.random.usize(1..4)).map(|_| self.json(VALUES)).collect());
                Expr::Call("ARRAY_CONTAINS", vec![self.constant(list), place])
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

    /// Returns a condition, combined of some.
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
}
