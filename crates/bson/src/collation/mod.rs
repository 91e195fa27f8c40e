//! Collations: the order of strings in a language.
//!
//! The order is that of Unicode's collation algorithm with the tailorings of each language (Swedish `å` behind `z`), by
//! ICU4X. Unsupported options are refused by name, not ignored.
//!
//! Keys of indexes and of `_id` lie on disk in this order, and ICU4X promises no order beyond one version of itself. So a
//! stored collation names its order ([`Collation::to_stored`]): the version of ICU4X is pinned, a test holds a sample of its
//! keys, and a store that names an order this program does not have is refused, not read wrongly. Collections of stores
//! before format 9 name no order and keep the one they were created with (`legacy.rs`).

mod legacy;
mod locale;
mod options;

use std::cmp::Ordering;
use std::sync::Arc;

use icu_collator::CollatorBorrowed;

use crate::error::{Error, Result};
use crate::order::compare_by;
use crate::value::Document;
use crate::value::view::{DocumentRef, ValueRef};
use options::Options;

/// How strings compare.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Collation(Option<Arc<Rules>>);

#[derive(Debug)]
struct Rules {
    options: Options,
    order: Order,
}

#[derive(Debug)]
enum Order {
    /// The order of stores before format 9.
    Legacy,
    /// The order of Unicode's collation algorithm.
    Unicode(CollatorBorrowed<'static>),
}

/// The version of a listed collation: that of MongoDB's collation data. MongoDB's tools compare it when they restore a
/// dump of this server, and send it when they restore a dump of MongoDB here.
const LISTED_VERSION: &str = "57.1";

/// The version of a stored collation: the name of the order of its keys. It changes with the pinned version of
/// `icu_collator`; older collections then have to be rebuilt, or their order has to be kept.
const STORED_VERSION: &str = "icu4x 2.4.0";

impl Rules {
    fn version(&self) -> &'static str {
        match self.order {
            Order::Legacy => LISTED_VERSION,
            Order::Unicode(_) => STORED_VERSION,
        }
    }
}

/// The order of two collations is the same if they have the same options and the same version.
impl PartialEq for Rules {
    fn eq(&self, other: &Rules) -> bool {
        self.options == other.options && self.version() == other.version()
    }
}

impl Eq for Rules {}

impl Collation {
    /// Returns the simple collation: strings compare byte by byte.
    pub const fn simple() -> Collation {
        Collation(None)
    }

    /// Returns `true` if strings compare byte by byte.
    pub fn is_simple(&self) -> bool {
        self.0.is_none()
    }

    /// Parses `{locale: .., strength: .., ..}` as a client sends it. A version in it is ignored: the order is always the
    /// current one.
    pub fn parse(document: DocumentRef<'_>) -> Result<Collation> {
        let Some(given) = options::RequestedOptions::parse(document)? else { return Ok(Collation::simple()) };
        let (options, collator) = given.resolve()?;
        Ok(Collation(Some(Arc::new(Rules { options, order: Order::Unicode(collator) }))))
    }

    /// Parses the output of [`Collation::to_stored`], of this version or of one before format 9.
    pub fn parse_stored(document: DocumentRef<'_>) -> Result<Collation> {
        match document.get("version").and_then(ValueRef::as_str) {
            Some(STORED_VERSION) => Collation::parse(document),
            Some(LISTED_VERSION) => {
                let options =
                    options::RequestedOptions::parse(document)?.map(options::RequestedOptions::legacy);
                Ok(Collation(options.map(|options| Arc::new(Rules { options, order: Order::Legacy }))))
            }
            other => Err(Error::Text(format!(
                "the keys are in the collation order '{}'; this version has '{STORED_VERSION}'",
                other.unwrap_or("")
            ))),
        }
    }

    /// Returns all options, as they are listed.
    pub fn to_document(&self) -> Document {
        match &self.0 {
            None => Document::new().with("locale", "simple"),
            Some(rules) => rules.options.to_document().with("version", LISTED_VERSION),
        }
    }

    /// Returns all options with the name of the order, as they are stored beside keys in that order.
    pub fn to_stored(&self) -> Document {
        match &self.0 {
            None => self.to_document(),
            Some(rules) => rules.options.to_document().with("version", rules.version()),
        }
    }

    /// Compares two strings.
    pub fn compare(&self, left: &str, right: &str) -> Ordering {
        match self.0.as_deref() {
            None => left.cmp(right),
            Some(Rules { order: Order::Unicode(collator), .. }) => collator.compare(left, right),
            Some(Rules { order: Order::Legacy, options }) => legacy::compare(options, left, right),
        }
    }

    /// Appends bytes that sort as the strings do and are equal where the strings are.
    pub fn sort_key(&self, text: &str, out: &mut Vec<u8>) {
        match self.0.as_deref() {
            None => out.extend_from_slice(text.as_bytes()),
            Some(Rules { order: Order::Unicode(collator), .. }) => {
                let Ok(()) = collator.write_sort_key_to(text, out);
            }
            Some(Rules { order: Order::Legacy, options }) => legacy::sort_key(options, text, out),
        }
    }

    /// Compares two values of any types; strings compare by this collation.
    pub fn compare_values(&self, left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
        compare_by(left, right, &|left, right| self.compare(left, right))
    }
}

#[cfg(test)]
mod tests;
