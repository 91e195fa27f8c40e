//! The filters that select the elements of `$[name]`.
//!
//! Each is a filter over a document with a single field, the name, that holds the element.

use std::collections::{BTreeMap, BTreeSet};

use bson::{ArrayRef, DocumentRef, ValueRef, shell_text};

use crate::error::{Error, Result};
use crate::filter::{self, Filter};
use crate::update::path::{Part, UpdatePath};

/// The array filters of an update, and which of them its paths named.
#[derive(Debug, Default)]
pub(super) struct ArrayFilters {
    filters: BTreeMap<String, Filter>,
    used: BTreeSet<String>,
}

impl ArrayFilters {
    pub(super) fn parse(filters: &[DocumentRef<'_>], settings: &filter::Settings) -> Result<ArrayFilters> {
        let mut parsed = ArrayFilters::default();
        for filter in filters {
            let mut identifier = None;
            find_identifier(*filter, &mut identifier)?;
            let identifier = identifier.ok_or_else(|| {
                Error::failed_to_parse(
                    "Cannot use an expression without a top-level field name in arrayFilters",
                )
            })?;
            if !is_identifier(identifier) {
                return Err(Error::bad_value(format!(
                    "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric \
                     string beginning with a lowercase letter, found '{identifier}'"
                )));
            }
            let filter = Filter::parse(*filter, settings).map_err(|error| {
                let message = format!("Error parsing array filter :: caused by :: {}", error.message);
                Error::new(error.code, message)
            })?;
            if parsed.filters.insert(identifier.to_owned(), filter).is_some() {
                return Err(Error::failed_to_parse(format!(
                    "Found multiple array filters with the same top-level field name {identifier}"
                )));
            }
        }
        Ok(parsed)
    }

    /// Accepts a path whose identifiers all have a filter, and marks those filters as used.
    pub(super) fn resolve(&mut self, path: UpdatePath) -> Result<UpdatePath> {
        for part in path.parts() {
            if let Part::Each(identifier) = part
                && !identifier.is_empty()
            {
                if !self.filters.contains_key(identifier) {
                    let message =
                        format!("No array filter found for identifier '{identifier}' in path '{path}'");
                    return Err(Error::bad_value(message));
                }
                self.used.insert(identifier.clone());
            }
        }
        Ok(path)
    }

    /// Returns the filters by their identifiers.
    pub(super) fn parsed(&self) -> BTreeMap<String, Filter> {
        self.filters.clone()
    }

    /// Refuses filters that no path named.
    pub(super) fn check_used(&self, update: ValueRef<'_>) -> Result<()> {
        match self.filters.keys().find(|identifier| !self.used.contains(*identifier)) {
            None => Ok(()),
            Some(identifier) => Err(Error::failed_to_parse(format!(
                "The array filter for identifier '{identifier}' was not used in the update {}",
                shell_text(update)
            ))),
        }
    }
}

/// Finds the one name with which all paths of a filter begin.
fn find_identifier<'f>(filter: DocumentRef<'f>, identifier: &mut Option<&'f str>) -> Result<()> {
    for (name, value) in filter.iter() {
        if let "$and" | "$or" | "$nor" = name {
            let branches = value.as_array().into_iter().flat_map(ArrayRef::iter);
            for branch in branches.filter_map(ValueRef::as_document) {
                find_identifier(branch, identifier)?;
            }
            continue;
        }
        if name.starts_with('$') {
            continue;
        }
        let first = name.split('.').next().unwrap_or_default();
        match identifier {
            Some(known) if *known != first => {
                return Err(Error::failed_to_parse(format!(
                    "Error parsing array filter :: caused by :: Expected a single top-level field name, found '{known}' \
                     and '{first}'"
                )));
            }
            _ => *identifier = Some(first),
        }
    }
    Ok(())
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric())
}
