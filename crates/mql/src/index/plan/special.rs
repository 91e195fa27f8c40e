//! Candidates of wildcard, text and geographic indexes.

use bson::{Document, encode_key_text};

use super::constraint::{Constraint, Field};
use super::set::{Set, raised};
use super::spans::Pieces;
use super::{Candidate, Planner, Span};
use crate::filter::{Node, Test};
use crate::index::pattern::PartKind;
use crate::path::FieldPath;
use crate::sort::Direction;

/// How many paths of a filter are considered: each examines all conditions.
const WILDCARD_PATHS_MAX: usize = 64;

impl Planner<'_> {
    /// Returns the candidate of a wildcard index, which answers conditions on one path if it indexes everything at
    /// it.
    pub(super) fn wildcard(&self) -> Option<Candidate> {
        let rules = self.spec().wildcard.as_ref()?;
        let mut paths = Vec::new();
        self.conditions().for_each(|node| collect_paths(node, &FieldPath::default(), &mut paths));
        paths.sort();
        paths.dedup();
        paths.truncate(WILDCARD_PATHS_MAX);
        let mut best: Option<(FieldPath, Constraint)> = None;
        for path in paths {
            let positions = path.components().iter().any(|component| component.index().is_some());
            if positions || path.is_empty() || !rules.includes(&path) {
                continue;
            }
            let field = Field { path: &path, within: 0, reader: self.reader(), multikey: true };
            let Some(constraint) = field.all(self.conditions()).filter(is_answerable) else { continue };
            if best.as_ref().is_none_or(|(_, known)| constraint.set.rank() < known.set.rank()) {
                best = Some((path, constraint));
            }
        }
        let (path, constraint) = best?;
        let mut prefix = Vec::new();
        let name = path.to_string();
        encode_key_text(name.as_bytes(), &mut prefix);
        let spans: Vec<Span> = constraint
            .set
            .intervals()
            .iter()
            .map(|interval| Span {
                lower: [prefix.as_slice(), interval.lower.bytes()].concat(),
                upper: [prefix.as_slice(), interval.upper.bytes()].concat(),
            })
            .collect();
        let texts: Vec<bson::Value> =
            constraint.set.intervals().iter().take(100).map(|interval| interval.text(false).into()).collect();
        let point = constraint.set.points().is_some();
        Some(Candidate {
            index: self.number,
            spans,
            direction: Direction::Ascending,
            serves_sort: false,
            point,
            fields_used: 1,
            equalities: usize::from(point),
            exact: false,
            bounds: Document::new()
                .with("$_path", vec![format!("[\"{name}\", \"{name}\"]").into()])
                .with(name, texts),
        })
    }

    /// Returns the candidate of a text or geographic index for a filter with such a condition on its field.
    pub(super) fn special(&self) -> Option<Candidate> {
        let spec = self.spec();
        let pieces = if spec.text.is_some() {
            let query = self.filter.text()?.query(spec.text_rules()?);
            let piece = |term: &str| {
                let mut key = Vec::new();
                encode_key_text(term.as_bytes(), &mut key);
                (key.clone(), raised(&key))
            };
            vec![query.terms().map(piece).collect::<Pieces>()]
        } else {
            self.places()?
        };
        // All text fields come from one search, so one without results means that nothing matches.
        let nothing = pieces.first().is_some_and(Vec::is_empty);
        let mut candidate = self.ordinary(&pieces).candidate;
        if nothing {
            candidate.spans.clear();
        }
        candidate.serves_sort = false;
        candidate.exact = false;
        candidate.point = false;
        // Before the words or cells there may only be single values: everything else would have to be read through.
        let leading = spec.parts.iter().position(|part| !part.kind.is_ordinary()).unwrap_or(0);
        (candidate.fields_used > leading).then_some(candidate)
    }

    /// Returns the spans of the first geographic field, the only one that is in the key.
    fn places(&self) -> Option<Vec<Pieces>> {
        let part = self.spec().parts.iter().find(|part| part.kind == PartKind::Sphere)?;
        let boxes = self.conditions().find_map(|node| match node {
            Node::Field { path, test: Test::Geo(test) } if *path == part.path => test.boxes(),
            Node::Field { path, test: Test::Near(near) } if *path == part.path => near.boxes(),
            _ => None,
        })?;
        Some(vec![crate::index::sphere::spans(&boxes)])
    }
}

/// Returns `true` if keys of single values can answer: documents and arrays have no key of their own, and a missing value
/// has none.
fn is_answerable(constraint: &Constraint) -> bool {
    use bson::Kind;
    let hidden =
        Set::union([Set::class(Kind::Document), Set::class(Kind::Array), Set::class(Kind::Undefined)]);
    constraint.present && !constraint.set.is_full() && !constraint.set.meets(&hidden)
}

fn collect_paths(node: &Node, outer: &FieldPath, paths: &mut Vec<FieldPath>) {
    match node {
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().for_each(|node| collect_paths(node, outer, paths)),
        Node::Field { path, test } => {
            let path = FieldPath::of(outer.names().chain(path.names()));
            match test {
                Test::ElementFields(node) => collect_paths(node, &path, paths),
                _ => paths.push(path),
            }
        }
        _ => {}
    }
}
