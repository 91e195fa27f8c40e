//! From constraints on the fields of an index to spans of its keys.
//!
//! Field by field from the first: as long as a field is narrowed to single values, each of them leads to a narrower search
//! in the next field; the first field with a range ends it. Conditions on later fields are left to the filter.

use bson::{Document, Value};

use super::constraint::{Constraint, Field, of_groups};
use super::set::{Interval, Set, raised};
use super::{Candidate, Planner, Span};
use crate::index::keys::hash_of_key;
use crate::index::pattern::{Part, PartKind};
use crate::path::FieldPath;
use crate::sort::Direction;

/// The largest number of spans of a candidate; beyond it, ranges replace them.
const SPANS_MAX: usize = 10_000;

/// A candidate, and whether every matching document has one of the fields.
pub(super) struct PlannedCandidate {
    pub(super) candidate: Candidate,
    pub(super) present: bool,
}

/// Spans of pieces of keys that replace a part that is not ordinary.
pub(super) type Pieces = Vec<(Vec<u8>, Vec<u8>)>;

/// A part of the key with the filter's constraint on it.
pub(super) struct Narrowed<'p> {
    pub(super) part: &'p Part,
    pub(super) constraint: Option<Constraint>,
}

impl<'p> Planner<'p> {
    pub(super) fn field<'f>(&'f self, part: &'f Part) -> Field<'f> {
        Field { path: &part.path, within: 0, reader: self.reader(), multikey: self.index.multikey }
    }

    /// Returns the filter's constraint on each part, as far as they hold for all of them together.
    pub(super) fn narrowed(&self) -> Vec<Narrowed<'p>> {
        let mut narrowed: Vec<Narrowed<'p>> = Vec::new();
        for part in &self.spec().parts {
            let field = self.field(part);
            let constraint = match part.kind {
                PartKind::Text | PartKind::Sphere | PartKind::Wildcard => None,
                _ => field.all(self.conditions()),
            };
            let constraint = if self.index.multikey && !part.path.is_empty() {
                self.joined(field, constraint, &narrowed)
            } else {
                constraint
            };
            narrowed.push(Narrowed { part, constraint });
        }
        narrowed
    }

    /// Returns the constraint on a field together with those on the fields before it: values of fields below one array are
    /// in one key only if they are in one item.
    fn joined(
        &self,
        field: Field<'_>,
        constraint: Option<Constraint>,
        narrowed: &[Narrowed<'_>],
    ) -> Option<Constraint> {
        let earlier: Vec<(&Constraint, usize)> = narrowed
            .iter()
            .filter(|earlier| earlier.part.path.first() == field.path.first())
            .filter_map(|earlier| {
                Some((earlier.constraint.as_ref()?, common(&earlier.part.path, field.path)))
            })
            .filter(|(known, _)| !known.set.is_full())
            .collect();
        let others = earlier.iter().flat_map(|(known, _)| of_groups(field, self.conditions(), known));
        constraint
            .into_iter()
            .chain(others)
            .find(|found| earlier.iter().all(|(known, names)| found.joins(known, *names)))
    }

    /// Returns the candidate of an index with ordinary and hashed parts. `pieces` replace a part of another kind.
    pub(super) fn ordinary(&self, pieces: &[Pieces]) -> PlannedCandidate {
        let narrowed = self.narrowed();
        let present =
            narrowed.iter().any(|field| field.constraint.as_ref().is_some_and(|found| found.present));
        let nothing =
            narrowed.iter().any(|field| field.constraint.as_ref().is_some_and(|found| found.set.is_empty()));
        let mut builder = Builder::default();
        let mut pieces = pieces.iter();
        for field in &narrowed {
            let set = field.constraint.as_ref().map_or_else(Set::full, |constraint| constraint.set.clone());
            match field.part.kind {
                PartKind::Ascending => builder.add(&set, &ascending(&set)),
                PartKind::Descending => builder.add(&set, &descending(&set)),
                PartKind::Hashed => builder.add_hashed(&set),
                _ => match pieces.next() {
                    Some(pieces) => builder.add_pieces(pieces),
                    // A further geographic field is not in the key.
                    None => builder.fields += 1,
                },
            }
        }
        let order = self.order(&narrowed, &builder);
        let candidate = Candidate {
            index: self.number,
            direction: order.unwrap_or(Direction::Ascending),
            serves_sort: order.is_some(),
            point: builder.equalities == narrowed.len(),
            fields_used: builder.fields_used,
            equalities: builder.equalities,
            exact: builder.whole && self.is_exact(&narrowed, builder.fields_used),
            bounds: bounds(&narrowed, builder.fields_used),
            spans: if nothing { Vec::new() } else { merged(builder.spans()) },
        };
        PlannedCandidate { candidate, present: present || nothing }
    }

    /// Returns `true` if the spans contain all conditions of the filter, without loss.
    fn is_exact(&self, narrowed: &[Narrowed<'_>], fields_used: usize) -> bool {
        let used = &narrowed[..fields_used];
        self.conditions().all(|condition| {
            matches!(condition, crate::filter::Node::True)
                || used.iter().any(|field| {
                    let own = self.field(field.part).constraint(condition);
                    let alone =
                        !self.index.multikey || field.constraint.as_ref().is_some_and(|found| found.exact);
                    alone && field.constraint.is_some() && own.is_some_and(|own| own.exact)
                })
        })
    }
}

/// Returns how many names two paths have in common before one of them ends.
fn common(one: &FieldPath, other: &FieldPath) -> usize {
    one.components().iter().zip(other.components()).take_while(|(one, other)| one == other).count()
}

fn ascending(set: &Set) -> Pieces {
    set.intervals()
        .iter()
        .map(|interval| (interval.lower.bytes().to_vec(), interval.upper.bytes().to_vec()))
        .collect()
}

/// Returns every byte inverted: a key before an edge is after the inverted bytes.
fn descending(set: &Set) -> Pieces {
    let turned = |bytes: &[u8]| bytes.iter().map(|byte| !byte).collect::<Vec<u8>>();
    let piece = |interval: &Interval| {
        let upper = raised(&turned(interval.lower.bytes()));
        // Of a single value the whole key is wanted, and going over the edge behind it may lose bytes.
        let lower = if interval.point {
            turned(interval.lower.bytes())
        } else {
            raised(&turned(interval.upper.bytes()))
        };
        (lower, upper)
    };
    set.intervals().iter().rev().map(piece).collect()
}

/// Returns the spans in order, overlapping ones as one.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.lower < last.upper => {
                last.upper = span.upper.max(std::mem::take(&mut last.upper));
            }
            _ => merged.push(span),
        }
    }
    merged
}

/// Spans under construction.
pub(super) struct Builder {
    /// The beginnings of keys, one for each combination of single values so far.
    prefixes: Vec<Vec<u8>>,
    /// The spans, once a range has ended the work.
    finished: Option<Vec<Span>>,
    fields: usize,
    pub(super) fields_used: usize,
    pub(super) equalities: usize,
    /// How many leading fields have exactly one value.
    pub(super) constants: usize,
    /// Whether no span had to be widened.
    pub(super) whole: bool,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            prefixes: vec![Vec::new()],
            finished: None,
            fields: 0,
            fields_used: 0,
            equalities: 0,
            constants: 0,
            whole: true,
        }
    }
}

impl Builder {
    /// Adds the next field, whose keys are within these pieces.
    fn add(&mut self, set: &Set, pieces: &Pieces) {
        self.fields += 1;
        if self.finished.is_some() {
            return;
        }
        let prefixes = self.prefixes.len();
        let fits = |count: usize| count.saturating_mul(prefixes) <= SPANS_MAX;
        match set.points() {
            Some(count) if fits(count) => {
                self.constants += usize::from(count == 1 && self.constants + 1 == self.fields);
                self.equalities += 1;
                self.fields_used += 1;
                // The piece of a single value begins with its whole key, which the edge behind it only raises.
                self.prefixes = self
                    .prefixes
                    .iter()
                    .flat_map(|prefix| pieces.iter().map(|(lower, _)| [prefix.as_slice(), lower].concat()))
                    .collect();
            }
            _ if set.is_full() => self.finish(&[]),
            _ if fits(pieces.len()) => {
                self.fields_used += 1;
                self.finish(pieces);
            }
            _ => {
                self.fields_used += 1;
                self.whole = false;
                let hull: Pieces = match (pieces.first(), pieces.last()) {
                    (Some(first), Some(last)) => vec![(first.0.clone(), last.1.clone())],
                    _ => Vec::new(),
                };
                self.finish(&hull);
            }
        }
    }

    fn add_hashed(&mut self, set: &Set) {
        match set.points() {
            Some(_) => {
                let hashes: Pieces = set
                    .intervals()
                    .iter()
                    .map(|interval| {
                        let hash = hash_of_key(interval.lower.bytes());
                        (hash.to_vec(), raised(&hash))
                    })
                    .collect();
                self.whole = false;
                self.add(set, &hashes);
            }
            None => self.add(&Set::full(), &Vec::new()),
        }
    }

    fn add_pieces(&mut self, pieces: &Pieces) {
        self.fields += 1;
        self.whole = false;
        if self.finished.is_none() {
            self.fields_used += 1;
            if pieces.len().saturating_mul(self.prefixes.len()) <= SPANS_MAX {
                self.finish(pieces);
            } else {
                self.finish(&[]);
            }
        }
    }

    /// Ends with ranges after each prefix; without any, with everything that begins with the prefix.
    fn finish(&mut self, pieces: &[(Vec<u8>, Vec<u8>)]) {
        let mut spans = Vec::new();
        for prefix in &self.prefixes {
            if pieces.is_empty() {
                spans.push(Span { lower: prefix.clone(), upper: raised(prefix) });
            }
            for (lower, upper) in pieces {
                spans.push(Span {
                    lower: [prefix.as_slice(), lower].concat(),
                    upper: [prefix.as_slice(), upper].concat(),
                });
            }
        }
        self.finished = Some(spans);
    }

    fn spans(self) -> Vec<Span> {
        let all = |prefix: Vec<u8>| Span { upper: raised(&prefix), lower: prefix };
        self.finished.unwrap_or_else(|| self.prefixes.into_iter().map(all).collect())
    }
}

fn bounds(narrowed: &[Narrowed<'_>], fields_used: usize) -> Document {
    let mut bounds = Document::new();
    for (number, field) in narrowed.iter().enumerate() {
        let set = match &field.constraint {
            Some(constraint) if number < fields_used => constraint.set.clone(),
            _ => Set::full(),
        };
        let down = field.part.kind == PartKind::Descending;
        let mut texts: Vec<Value> =
            set.intervals().iter().take(100).map(|interval| Value::String(interval.text(down))).collect();
        if down {
            texts.reverse();
        }
        bounds.push(field.part.name.as_str(), texts);
    }
    bounds
}
