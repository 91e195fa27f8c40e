//! The check of evidence (archive, deletion record) against the expiries of the model, for items and documents: no false
//! entry, no missing entry, no purge recorded twice.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// An expiry as the model knows it.
pub(crate) trait ExpectedExpiry: Debug {
    /// A line of an archive or an entry of a deletion record.
    type EvidenceEntry: Debug;
    /// The item that an entry is about.
    type Subject: Ord;

    /// Returns the item that an entry is about.
    fn subject(entry: &Self::EvidenceEntry) -> Self::Subject;

    /// Returns `true` if an entry may be about this expiry.
    fn is_about(&self, entry: &Self::EvidenceEntry) -> bool;

    /// Returns `true` if the entry has the time and the cause of this expiry.
    fn is_exact(&self, entry: &Self::EvidenceEntry) -> bool;
}

/// The check of one source of evidence: an archive, or a deletion record.
pub(crate) struct EvidenceCheck<'a, C: ExpectedExpiry> {
    /// The name of the source.
    pub(crate) place: String,
    /// The expiries that may have an entry.
    pub(crate) expired: Vec<&'a C>,
    /// The expiries that must have an entry once their bytes are gone.
    pub(crate) owed: Vec<&'a C>,
    /// The entries.
    pub(crate) told: &'a [C::EvidenceEntry],
}

impl<C: ExpectedExpiry> EvidenceCheck<'_, C> {
    /// Checks that every entry is of an expiry that happened, with its time and cause where it is required.
    pub(crate) fn check_truth(&self) -> Result<(), String> {
        for entry in self.told {
            let about = self.expired.iter().filter(|expiry| expiry.is_about(entry));
            let expiries: Vec<&C> = about.copied().collect();
            let is_owed = |expiry: &C| self.owed.iter().any(|owed| std::ptr::eq(*owed, expiry));
            let is_true = |expiry: &&C| !is_owed(expiry) || expiry.is_exact(entry);
            if !expiries.iter().any(is_true) {
                return Err(format!("T32: {}: recorded is {entry:?}, expired are {expiries:?}", self.place));
            }
        }
        Ok(())
    }

    /// Checks that every required entry exists, except for at most `left` items whose bytes are still there. Returns
    /// whether there is any entry.
    pub(crate) fn check_complete(&self, left: u64) -> Result<bool, String> {
        let mut open: Vec<&C::EvidenceEntry> = self.told.iter().collect();
        let (mut found, mut missing) = (false, Vec::new());
        for expiry in &self.owed {
            let fits = |entry: &&C::EvidenceEntry| expiry.is_about(entry) && expiry.is_exact(entry);
            match open.iter().position(fits) {
                Some(at) => {
                    open.remove(at);
                    found = true;
                }
                None => missing.push(expiry),
            }
        }
        if missing.len() as u64 > left {
            return Err(format!("T32: {} tells nothing of {missing:?}; {left} are still there", self.place));
        }
        Ok(found)
    }

    /// Checks that no purge is recorded twice: an item that expired twice in a second, under the same name, has at
    /// most that many entries.
    pub(crate) fn check_once(&self) -> Result<(), String> {
        let mut counts: BTreeMap<C::Subject, usize> = BTreeMap::new();
        for entry in self.told {
            let count = counts.entry(C::subject(entry)).or_default();
            *count += 1;
            if *count > self.expired.iter().filter(|expiry| expiry.is_about(entry)).count() {
                return Err(format!("{} tells too often of {entry:?}", self.place));
            }
        }
        Ok(())
    }
}
