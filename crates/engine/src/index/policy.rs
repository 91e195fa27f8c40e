//! The coverage of one generation of an index: the indexing policy of a container, compiled.
//!
//! Included and excluded paths become one tree of steps. The most precise path wins: a longer one over a shorter one,
//! and at the same node `?`, which covers the scalar there, over `*`, which covers everything from there down. `*`
//! includes the scalar at its own node.
//!
//! Whatever the paths say, `id` is indexed, as in the service. The path of a vector index is not, unless it is named:
//! a vector's thousand numbers would cost a thousand entries that no query uses. `_ts` needs no entries, because the
//! queues are ordered by it; in a composite index it may be used like any other path.

use std::collections::BTreeMap;

use document::{Path, ValueRef};

use crate::definition::{IndexPath, IndexingMode, IndexingPolicy, Order, Reach, Step};
use crate::expiry::item::SYSTEM_PROPERTIES;

/// The compiled policy. Equal policies give equal entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Coverage {
    root: Node,
    composites: Vec<Composite>,
}

/// A composite index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Composite {
    /// Its position in the policy, which identifies it in keys.
    pub(crate) number: u16,
    /// Its paths, two at least.
    pub(crate) parts: Vec<CompositePart>,
}

/// One path of a composite index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompositePart {
    /// Where its value comes from.
    pub(crate) source: Source,
    /// Its direction.
    pub(crate) order: Order,
}

/// Where the value of a composite index's path comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A property of the body.
    Body(Path),
    /// `_ts`.
    Stamp,
}

impl Source {
    /// Returns the value in a body; `_ts` is not in it.
    pub(super) fn read<'a>(&self, body: ValueRef<'a>) -> Option<ValueRef<'a>> {
        match self {
            Source::Body(path) => path.read(body),
            Source::Stamp => None,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    /// Whether the scalar at this node is indexed, if a path says so.
    scalar: Option<bool>,
    /// Whether everything from this node down is indexed, if a path says so.
    subtree: Option<bool>,
    properties: BTreeMap<String, Node>,
    items: Option<Box<Node>>,
}

impl Coverage {
    /// Compiles a policy. Returns `None` if it asks for no index.
    pub(crate) fn new(policy: &IndexingPolicy) -> Option<Coverage> {
        if policy.mode == IndexingMode::None {
            return None;
        }
        let mut root = Node::default();
        for (paths, covered) in [(&policy.included, true), (&policy.excluded, false)] {
            for IndexPath { steps, reach, .. } in paths {
                let node = root.make(steps);
                match reach {
                    Reach::Scalar => node.scalar = Some(covered),
                    Reach::Subtree => node.subtree = Some(covered),
                }
            }
        }
        for path in policy.vector_paths() {
            let steps: Vec<Step> = path.segments().iter().cloned().map(Step::Property).collect();
            let node = root.make(&steps);
            node.scalar.get_or_insert(false);
            node.subtree.get_or_insert(false);
        }
        root.make(&[Step::Property("id".to_owned())]).scalar = Some(true);
        let composites = policy.composites.iter().enumerate();
        let composites = composites.filter_map(|(number, paths)| composite(number, paths)).collect();
        Some(Coverage { root, composites })
    }

    /// Returns whether a scalar at this path has an entry.
    pub(crate) fn covers(&self, path: &[Step]) -> bool {
        let cursor = path.iter().fold(self.start(), |cursor, step| match step {
            Step::Property(name) => cursor.property(name),
            Step::Items => cursor.items(),
        });
        !is_of_the_system(path) && cursor.is_covered()
    }

    /// Returns the composite indexes.
    pub(crate) fn composites(&self) -> &[Composite] {
        &self.composites
    }

    /// Returns the cursor at the root of a body.
    pub(super) fn start(&self) -> Cursor<'_> {
        Cursor { node: None, covered: false }.at(&self.root)
    }
}

/// Returns whether the path is a system property: those are not in the body and cannot be indexed.
fn is_of_the_system(path: &[Step]) -> bool {
    matches!(path.first(), Some(Step::Property(name)) if SYSTEM_PROPERTIES.contains(&name.as_str()))
}

/// Compiles a composite index. Returns `None` if it has a path to a system property other than `_ts`.
fn composite(number: usize, paths: &[crate::definition::CompositePath]) -> Option<Composite> {
    let part = |entry: &crate::definition::CompositePath| {
        let source = match entry.path.segments() {
            [name] if name == "_ts" => Source::Stamp,
            [name, ..] if SYSTEM_PROPERTIES.contains(&name.as_str()) => return None,
            _ => Source::Body(entry.path.clone()),
        };
        Some(CompositePart { source, order: entry.order })
    };
    let parts = paths.iter().map(part).collect::<Option<Vec<_>>>()?;
    Some(Composite { number: u16::try_from(number).ok()?, parts })
}

impl Node {
    fn make(&mut self, steps: &[Step]) -> &mut Node {
        steps.iter().fold(self, |node, step| match step {
            Step::Property(name) => node.properties.entry(name.clone()).or_default(),
            Step::Items => node.items.get_or_insert_with(Box::default),
        })
    }
}

/// A position in an item, with what the policy says of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    /// The node in the tree; `None` if no path of the policy continues here.
    node: Option<&'a Node>,
    /// What the nearest `*` here or above says.
    covered: bool,
}

impl<'a> Cursor<'a> {
    fn at(self, node: &'a Node) -> Cursor<'a> {
        Cursor { node: Some(node), covered: node.subtree.unwrap_or(self.covered) }
    }

    fn step(self, node: Option<&'a Node>) -> Cursor<'a> {
        match node {
            Some(node) => self.at(node),
            None => Cursor { node: None, covered: self.covered },
        }
    }

    /// Enters a property.
    pub(super) fn property(self, name: &str) -> Cursor<'a> {
        self.step(self.node.and_then(|node| node.properties.get(name)))
    }

    /// Enters the items of an array.
    pub(super) fn items(self) -> Cursor<'a> {
        self.step(self.node.and_then(|node| node.items.as_deref()))
    }

    /// Returns whether a scalar here has an entry.
    pub(super) fn is_covered(self) -> bool {
        self.node.and_then(|node| node.scalar).unwrap_or(self.covered)
    }

    /// Returns whether nothing from here down has an entry.
    pub(super) fn is_barren(self) -> bool {
        !self.covered && self.node.is_none()
    }
}

#[cfg(test)]
mod tests {
    use document::parse_json;

    use super::*;
    use crate::definition::ContainerDefinition;

    fn coverage(policy: &str) -> Coverage {
        let text = format!(
            r#"{{"id":"c","partitionKey":{{"paths":["/pk"]}},"indexingPolicy":{policy},
                "vectorEmbeddingPolicy":{{"vectorEmbeddings":[{{"path":"/vector","dataType":"float32",
                "dimensions":3,"distanceFunction":"cosine"}}]}}}}"#
        );
        let value = parse_json(text.as_bytes()).expect("valid JSON");
        let definition = ContainerDefinition::from_value(&value).expect("a valid definition");
        Coverage::new(&definition.indexing).expect("an index")
    }

    fn steps(path: &str) -> Vec<Step> {
        let step = |name: &str| match name {
            "[]" => Step::Items,
            name => Step::Property(name.to_owned()),
        };
        path.split('/').skip(1).map(step).collect()
    }

    #[test]
    fn the_most_precise_path_wins() {
        let everything = r#"{"excludedPaths":[]}"#;
        let few = r#"{"includedPaths":[{"path":"/a/?"},{"path":"/b/*"},{"path":"/t/[]/?"},{"path":"/u/[]/x/?"}],
                      "excludedPaths":[{"path":"/*"},{"path":"/b/secret/*"},{"path":"/b/secret/open/?"}]}"#;
        let nested = r#"{"includedPaths":[{"path":"/*"},{"path":"/x/y/?"},{"path":"/q/?"}],
                         "excludedPaths":[{"path":"/x/*"},{"path":"/q/*"},{"path":"/pad/?"}]}"#;
        for (policy, path, covered) in [
            (everything, "/a", true),
            (everything, "/a/b/[]/c", true),
            (everything, "/id", true),
            (everything, "/_ts", false),
            (everything, "/_etag", false),
            (everything, "/a/_ts", true),
            (few, "/a", true),
            (few, "/a/b", false),
            (few, "/a/[]", false),
            (few, "/b", true),
            (few, "/b/c/[]/d", true),
            (few, "/b/secret", false),
            (few, "/b/secret/x", false),
            (few, "/b/secret/open/x", false),
            (few, "/t", false),
            (few, "/t/[]", true),
            (few, "/t/[]/x", false),
            (few, "/u/[]/x", true),
            (few, "/u/x", false),
            (few, "/other", false),
            (few, "/id", true),
            (few, "/pk", false),
            (nested, "/x", false),
            (nested, "/x/y", true),
            (nested, "/x/y/z", false),
            (nested, "/q", true),
            (nested, "/q/r", false),
            (nested, "/pad", false),
            (nested, "/pad/inner", true),
            (nested, "/elsewhere", true),
        ] {
            assert_eq!(coverage(policy).covers(&steps(path)), covered, "{path} in {policy}");
        }
    }

    #[test]
    fn an_explicitly_included_path_below_an_excluded_one_is_included() {
        let policy =
            r#"{"includedPaths":[{"path":"/a/b/c/?"}],"excludedPaths":[{"path":"/*"},{"path":"/a/b/*"}]}"#;
        assert!(coverage(policy).covers(&steps("/a/b/c")) && !coverage(policy).covers(&steps("/a/b/d")));
    }

    #[test]
    fn vectors_are_left_out_unless_they_are_named() {
        let vectors = r#""vectorIndexes":[{"path":"/vector","type":"flat"}]"#;
        let silent = coverage(&format!("{{{vectors}}}"));
        assert!(!silent.covers(&steps("/vector/[]")) && silent.covers(&steps("/vectors/[]")));
        let named =
            coverage(&format!(r#"{{"includedPaths":[{{"path":"/*"}},{{"path":"/vector/*"}}],{vectors}}}"#));
        assert!(named.covers(&steps("/vector/[]")));
    }

    #[test]
    fn nothing_is_walked_that_is_not_covered() {
        let coverage = coverage(r#"{"includedPaths":[{"path":"/a/b/?"}],"excludedPaths":[{"path":"/*"}]}"#);
        let start = coverage.start();
        assert!(!start.is_barren() && !start.property("a").is_barren());
        assert!(start.property("x").is_barren() && start.property("a").items().is_barren());
    }

    #[test]
    fn composites_keep_their_number_and_may_have_the_stamp() {
        let composites = coverage(
            r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/_rid"}],
                [{"path":"/a","order":"descending"},{"path":"/_ts"}]]}"#,
        );
        let [kept] = composites.composites() else { panic!("one of the two is kept") };
        assert_eq!((kept.number, &kept.parts[1].source), (1, &Source::Stamp));
        assert_eq!(kept.parts[0].order, Order::Descending);
    }

    #[test]
    fn policies_that_give_the_same_entries_are_equal() {
        let one = coverage(r#"{"includedPaths":[{"path":"/*"},{"path":"/a/?"}]}"#);
        let other = coverage(r#"{"indexingMode":"lazy","includedPaths":[{"path":"/'a'/?"},{"path":"/*"}]}"#);
        assert_eq!(one, other);
        assert_ne!(one, coverage(r#"{"excludedPaths":[{"path":"/a/?"}]}"#));
    }
}
