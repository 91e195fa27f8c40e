//! Generates the smallest parts of queries: paths in items, constants and parameters for them, arrays and partition
//! keys.

use super::generate::{Kind, Name, member, path};
use super::json::Json;
use super::tree::{Count, Expr, Negation, Step};
use super::world::{START, VALUES, World};

impl World {
    pub(super) fn chance(&mut self, one_in: u8) -> bool {
        self.random.u8(..one_in) == 0
    }

    pub(super) fn json(&mut self, list: &[&'static str]) -> Json {
        serde_json::from_str(self.pick(list)).expect("valid JSON")
    }

    pub(super) fn name(&mut self, names: &[Name]) -> Name {
        *self.random.choice(names).expect("a query has a name")
    }

    /// Returns a path in a value, or sometimes the value itself.
    pub(super) fn place(&mut self, names: &[Name]) -> Expr {
        use Step::{Index, Name};
        let (name, kind) = self.name(names);
        if kind == Kind::Element {
            return match self.random.u8(..6) {
                0..=3 => path(name, &[]),
                4 => member(name, "k"),
                _ => path(name, &[Index(0)]),
            };
        }
        if name == "c" && !self.computed.is_empty() && self.chance(12) {
            return self.computed_place();
        }
        match self.random.u8(..26) {
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
            other => member(
                name,
                ["id", "pk", "_ts", "_rid", "_etag", "_self", "pk2", "pk3"][usize::from(other - 18)],
            ),
        }
    }

    /// Returns a computed property, or a path in it.
    fn computed_place(&mut self) -> Expr {
        let (name, meaning) = self.random.choice(&self.computed).expect("some").clone();
        let steps = match self.random.u8(..6) {
            0 => vec![Step::Index(0)],
            1 => vec![Step::Name("k")],
            _ => Vec::new(),
        };
        Expr::Computed(name, steps, Box::new(meaning))
    }

    /// Returns a path whose value has no more than a few hundred bytes.
    pub(super) fn small_place(&mut self, names: &[Name]) -> Expr {
        loop {
            match self.place(names) {
                Expr::Path(name, steps) if steps.is_empty() && names.contains(&(name, Kind::Item)) => {}
                place => return place,
            }
        }
    }

    /// Returns a constant in the text, or a parameter.
    pub(super) fn constant(&mut self, value: Json) -> Expr {
        if self.chance(5) {
            Expr::Parameter(self.parameter(value.clone()), value)
        } else {
            Expr::Constant(value)
        }
    }

    /// Returns a figure in the text, or a parameter.
    pub(super) fn count(&mut self, value: usize) -> Count {
        let parameter = self.chance(4).then(|| self.parameter(Json::from(value)));
        Count { value, parameter }
    }

    /// Returns the number of a new parameter.
    fn parameter(&mut self, value: Json) -> usize {
        self.parameters.push(value);
        self.parameters.len() - 1
    }

    /// Returns a constant that the path is likely to hold.
    pub(super) fn constant_for(&mut self, place: &Expr) -> Expr {
        let steps = if let Expr::Path(_, steps) = place { steps.as_slice() } else { &[] };
        let likely = match steps {
            [Step::Name("_ts")] => Some(Json::from(START + self.random.u64(..20))),
            [Step::Name("n")] => Some(Json::from(self.random.u8(..9))),
            [Step::Name("s")] => Some(Json::from(self.pick(&["x", "y", "w"]))),
            [Step::Name(member @ ("id" | "pk" | "pk2" | "pk3" | "_rid" | "_etag" | "_self"))] => {
                self.sample(member)
            }
            [Step::Name("a")] if self.chance(8) => Some(Json::from("l".repeat(self.random.usize(126..132)))),
            _ => None,
        };
        match likely {
            Some(likely) if !self.chance(4) => self.constant(likely),
            _ => {
                let value = self.json(VALUES);
                self.constant(value)
            }
        }
    }

    /// Returns a condition that the items of some partition key, or of a prefix of one, have in common.
    pub(super) fn key_condition(&mut self) -> Option<Expr> {
        let key = self.sample_key()?;
        let levels = self.random.usize(1..=key.len());
        let mut parts = Vec::new();
        for (level, text) in self.levels.iter().copied().zip(key).take(levels) {
            let place = member("c", level);
            let value: Json = serde_json::from_str(text).expect("valid JSON");
            parts.push(if text == "{}" {
                Expr::Not(Box::new(Expr::Call("IS_DEFINED", vec![place])))
            } else if self.chance(4) {
                let others = [self.constant(value), self.constant_for(&place)];
                Expr::In(Box::new(place), Negation::Plain, others.to_vec())
            } else {
                Expr::Compare(Box::new(place), "=", Box::new(self.constant(value)))
            });
        }
        Some(if parts.len() == 1 { parts.remove(0) } else { Expr::And(parts) })
    }

    pub(super) fn negation(&mut self) -> Negation {
        if self.chance(3) { Negation::Negated } else { Negation::Plain }
    }

    /// Returns a path to what may be an array.
    pub(super) fn array(&mut self, names: &[Name]) -> Expr {
        match self.name(names) {
            (name, Kind::Element) => path(name, &[]),
            ("c", Kind::Item) if !self.computed.is_empty() && self.chance(12) => self.computed_place(),
            (name, Kind::Item) => match self.random.u8(..10) {
                0 => path(name, &[]),
                1 => member(name, "a"),
                2 => path(name, &[Step::Name("t"), Step::Index(0)]),
                _ => member(name, "t"),
            },
        }
    }
}
