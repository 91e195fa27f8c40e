//! Whether reading an index in the order of its keys gives documents in the order of a sort.
//!
//! The fields of the sort have to follow each other in the index, all in one direction or all in the other; fields that have
//! only one value do not count, on either side.
//!
//! A document with an array is found once for each item, and sorts by the first of them, so the index serves the order as
//! long as none of its keys is left out: that is, if no bounds are on a field of the sort or on one below the same array.

use super::Planner;
use super::spans::{Builder, Narrowed};
use crate::index::pattern::PartKind;
use crate::path::FieldPath;
use crate::sort::Direction;

impl Planner<'_> {
    /// Returns the direction in which to read for the order of the sort; `None` if the index does not serve it.
    pub(super) fn order(&self, narrowed: &[Narrowed<'_>], builder: &Builder) -> Option<Direction> {
        let sort = self.sort?;
        let strings_agree = self.spec().collation() == self.collation;
        if sort.is_empty() || sort.uses_meta() || sort.natural().is_some() || self.index.cut || !strings_agree
        {
            return None;
        }
        let constant =
            |path: &FieldPath| narrowed[..builder.constants].iter().any(|field| field.part.path == *path);
        // With arrays, a field with one value among its keys may still have others to sort by.
        let skips = |path: &FieldPath| !self.index.multikey && constant(path);
        let mut wanted = sort.fields().iter().filter(|(path, _)| !skips(path)).peekable();
        let mut forward = None;
        for (number, field) in narrowed.iter().enumerate() {
            let Some((path, direction)) = wanted.peek() else { break };
            if field.part.path != *path {
                // A field with one value is the same for all that follows.
                if number < builder.constants {
                    continue;
                }
                return None;
            }
            let own = match field.part.kind {
                PartKind::Ascending => Direction::Ascending,
                PartKind::Descending => Direction::Descending,
                _ => return None,
            };
            let positions = path.components().iter().any(|component| component.index().is_some());
            if positions || !self.keeps_all_keys(narrowed, path) {
                return None;
            }
            let same = own == *direction;
            if forward.is_some_and(|forward| forward != same) {
                return None;
            }
            forward = Some(same);
            wanted.next();
        }
        if wanted.peek().is_some() {
            return None;
        }
        Some(if forward.unwrap_or(true) { Direction::Ascending } else { Direction::Descending })
    }

    /// Returns `true` if all keys of a document are within the spans, as far as fields below the same array are concerned.
    fn keeps_all_keys(&self, narrowed: &[Narrowed<'_>], path: &FieldPath) -> bool {
        !self.index.multikey
            || narrowed
                .iter()
                .filter(|field| field.part.path.first() == path.first())
                .all(|field| field.constraint.as_ref().is_none_or(|constraint| constraint.set.is_full()))
    }
}
