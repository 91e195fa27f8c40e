//! The path of an index entry, as self-delimiting bytes.
//!
//! ```text
//! 0x02  name, 0x00 written as 0x00 0xFF, then 0x00 0x00     into a property
//! 0x03                                                      into every item of an array
//! 0x01                                                      the end
//! ```
//!
//! No path is a prefix of another, so a path followed by a term is one range of keys for each path. A path that is
//! longer than [`PATH_BYTES_MAX`] has no encoding: an item that has one, where the policy asks for it, is an
//! *outlier* (see [`terms`](super::terms)), and a query on such a path is not answered from the index.

use crate::definition::Step;

/// The longest encoded path without its end.
pub(crate) const PATH_BYTES_MAX: usize = 1024;

const END: u8 = 0x01;
const NAME: u8 = 0x02;
const ITEMS: u8 = 0x03;

/// A whole path in its encoded form, end included.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PathKey(Vec<u8>);

impl PathKey {
    /// Returns the path's key, or `None` if it is too long for the index.
    pub(crate) fn new(steps: &[Step]) -> Option<PathKey> {
        let mut path = GrowingPath::default();
        for step in steps {
            let fits = match step {
                Step::Property(name) => path.enter(name),
                Step::Items => path.enter_items(),
            };
            if !fits {
                return None;
            }
        }
        let mut bytes = path.0;
        bytes.push(END);
        Some(PathKey(bytes))
    }

    /// Returns the encoded form.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A path that grows and shrinks while a document is traversed.
#[derive(Debug, Default)]
pub(super) struct GrowingPath(Vec<u8>);

impl GrowingPath {
    /// Enters a property. Returns `false`, with the path unchanged, if it would become too long.
    pub(super) fn enter(&mut self, name: &str) -> bool {
        let zeros = name.bytes().filter(|&byte| byte == 0).count();
        if self.0.len() + name.len() + zeros + 3 > PATH_BYTES_MAX {
            return false;
        }
        self.0.push(NAME);
        if zeros == 0 {
            self.0.extend_from_slice(name.as_bytes());
        } else {
            for byte in name.bytes() {
                self.0.push(byte);
                if byte == 0 {
                    self.0.push(0xFF);
                }
            }
        }
        self.0.extend_from_slice(&[0x00, 0x00]);
        true
    }

    /// Enters the items of an array. Returns `false`, with the path unchanged, if it would become too long.
    pub(super) fn enter_items(&mut self) -> bool {
        if self.0.len() == PATH_BYTES_MAX {
            return false;
        }
        self.0.push(ITEMS);
        true
    }

    /// Returns the current length, for [`leave`](Self::leave).
    pub(super) fn depth(&self) -> usize {
        self.0.len()
    }

    /// Returns to an earlier length.
    pub(super) fn leave(&mut self, depth: usize) {
        self.0.truncate(depth);
    }

    /// Writes the current path, with its end.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
        out.push(END);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Step {
        Step::Property(text.to_owned())
    }

    #[test]
    fn no_path_is_the_beginning_of_another() {
        let paths = [
            vec![],
            vec![name("a")],
            vec![name("a"), name("b")],
            vec![name("a"), Step::Items],
            vec![name("a"), Step::Items, name("b")],
            vec![name("a\0b")],
            vec![name("a\0")],
            vec![name("ab")],
            vec![name("")],
            vec![name(""), name("")],
            vec![name("a\u{1}")],
        ];
        let keys: Vec<PathKey> = paths.iter().map(|path| PathKey::new(path).expect("short")).collect();
        for (at, one) in keys.iter().enumerate() {
            for (beside, other) in keys.iter().enumerate() {
                assert_eq!(at == beside, other.as_bytes().starts_with(one.as_bytes()), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_path_ends_where_the_limit_is() {
        let longest = "x".repeat(PATH_BYTES_MAX - 3);
        assert!(PathKey::new(&[name(&longest)]).is_some());
        assert!(PathKey::new(&[name(&longest), Step::Items]).is_none());
        assert!(PathKey::new(&[name(&format!("{longest}x"))]).is_none());
        assert!(PathKey::new(&[name(&"\0".repeat(PATH_BYTES_MAX / 2))]).is_none());
    }

    #[test]
    fn a_walk_comes_back_to_where_it_was() {
        let mut path = GrowingPath::default();
        assert!(path.enter("a"));
        let depth = path.depth();
        assert!(path.enter_items() && path.enter("b"));
        path.leave(depth);
        let mut bytes = Vec::new();
        path.write(&mut bytes);
        assert_eq!(bytes, PathKey::new(&[name("a")]).expect("short").as_bytes());
    }
}
