//! The item that a row comes from, by a name that the rewritten query can use: rows that are merged by keys carry its
//! `_rid`, which distinguishes rows with equal keys and marks where a client resumes.
//!
//! `FROM c` names the item. `FROM x IN c.t`, `FROM c.b` and `FROM (SELECT c.a FROM c) s` name something inside of it or
//! made of it, which has no `_rid`. There the item becomes the first source, and the query's own sources are joined to
//! it. That gives the same rows in the same order:
//!
//! ```text
//! FROM x IN c.t                     FROM c JOIN x IN c.t
//! FROM c IN c.t                     FROM c_ JOIN c IN c_.t
//! FROM (SELECT c.a FROM c) s        FROM c JOIN (SELECT c.a FROM c) AS s
//! FROM (SELECT c.a FROM c) c        FROM c_ JOIN (SELECT c.a FROM c_ AS c) AS c
//! ```
//!
//! The service has no such plans: it refuses to order by anything that is no path of the item.

use super::build::name;
use super::rewrite::source_name;
use crate::resolve::is_blocking;
use crate::syntax::ast::{Collection, Node, NodeKind, Select, Source};

/// Returns sources with the same rows as these, and the name that the item has there.
pub(super) fn with_item(from: &[Source]) -> (Vec<Source>, String) {
    let (Some(first), mut sources) = (from.first(), from.to_vec()) else {
        return (Vec::new(), String::new());
    };
    let known = source_name(first).to_owned();
    if is_item(first) || depends_on_many(first) {
        return (sources, known);
    }
    let Some(mut item) = root(first).map(str::to_owned) else { return (sources, known) };
    while from.iter().any(|source| source_name(source) == item) {
        item.push('_');
    }
    rename_root(&mut sources[0], &item);
    let collection = Collection::Path { root: name(item.clone()), steps: Vec::new() };
    sources.insert(0, Source { iterates: false, collection, alias: None });
    (sources, item)
}

/// Returns `true` if a source's rows are the items as they are.
fn is_item(source: &Source) -> bool {
    match &source.collection {
        _ if source.iterates => false,
        Collection::Path { steps, .. } => steps.is_empty(),
        Collection::Subquery(inside) => match (&inside.select, inside.from.as_slice()) {
            (Select::Star(_), [only]) => is_item(only),
            (Select::Value(Node { kind: NodeKind::Name(shown), .. }), [first, ..]) => {
                is_item(first) && source_name(first) == shown
            }
            _ => false,
        },
    }
}

/// Returns `true` if a source's rows depend on more than one item: joined to each item, it would have other rows.
fn depends_on_many(source: &Source) -> bool {
    matches!(&source.collection, Collection::Subquery(inside) if is_blocking(inside))
}

/// Returns the name that stands for the container.
fn root(source: &Source) -> Option<&str> {
    match &source.collection {
        Collection::Path { root, .. } => Some(&root.text),
        Collection::Subquery(inside) => inside.from.first().and_then(root),
    }
}

/// Gives the container another name. Expressions still refer to the rows of its source by the old one.
fn rename_root(source: &mut Source, to: &str) {
    let known = source_name(source).to_owned();
    match &mut source.collection {
        Collection::Path { root, .. } => to.clone_into(&mut root.text),
        Collection::Subquery(inside) => {
            if let Some(first) = inside.from.first_mut() {
                rename_root(first, to);
            }
        }
    }
    if source_name(source) != known {
        source.alias = Some(name(known));
    }
}
