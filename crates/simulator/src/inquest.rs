//! What is told of the dead against who has died, whichever form items have: nothing false, nobody missing, no purge twice.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// A death as the model knows it.
pub(crate) trait Case: Debug {
    /// What a line or an entry tells of a dead item.
    type Testimony: Debug;
    /// Whom it tells of.
    type Subject: Ord;

    /// Whom a testimony is about.
    fn subject(testimony: &Self::Testimony) -> Self::Subject;

    /// Whether a testimony may be about this death.
    fn is_about(&self, testimony: &Self::Testimony) -> bool;

    /// Whether it tells when and why it happened.
    fn is_exact(&self, testimony: &Self::Testimony) -> bool;
}

/// One place where the dead are told of: an archive, or a deletion record.
pub(crate) struct Inquest<'a, C: Case> {
    /// The place.
    pub(crate) place: String,
    /// Of whom it may tell.
    pub(crate) died: Vec<&'a C>,
    /// Of whom it must when their bytes are gone.
    pub(crate) owed: Vec<&'a C>,
    /// What it tells.
    pub(crate) told: &'a [C::Testimony],
}

impl<C: Case> Inquest<'_, C> {
    /// What a testimony tells has happened; of whom it is owed to, when and why it did.
    pub(crate) fn check_truth(&self) -> Result<(), String> {
        for testimony in self.told {
            let about = self.died.iter().filter(|death| death.is_about(testimony));
            let deaths: Vec<&C> = about.copied().collect();
            let is_owed = |death: &C| self.owed.iter().any(|owed| std::ptr::eq(*owed, death));
            let is_true = |death: &&C| !is_owed(death) || death.is_exact(testimony);
            if !deaths.iter().any(is_true) {
                return Err(format!("T32: {}: told is {testimony:?}, died has {deaths:?}", self.place));
            }
        }
        Ok(())
    }

    /// Those to whom it is owed are told of, but for at most `left` whose bytes are still there. Says whether anybody is.
    pub(crate) fn check_complete(&self, left: u64) -> Result<bool, String> {
        let mut open: Vec<&C::Testimony> = self.told.iter().collect();
        let (mut found, mut missing) = (false, Vec::new());
        for death in &self.owed {
            let fits = |testimony: &&C::Testimony| death.is_about(testimony) && death.is_exact(testimony);
            match open.iter().position(fits) {
                Some(at) => {
                    open.remove(at);
                    found = true;
                }
                None => missing.push(death),
            }
        }
        if missing.len() as u64 > left {
            return Err(format!("T32: {} tells nothing of {missing:?}; {left} are still there", self.place));
        }
        Ok(found)
    }

    /// No purge is told twice: of one who died twice in a second, under the same name, at most that often.
    pub(crate) fn check_once(&self) -> Result<(), String> {
        let mut counts: BTreeMap<C::Subject, usize> = BTreeMap::new();
        for testimony in self.told {
            let count = counts.entry(C::subject(testimony)).or_default();
            *count += 1;
            if *count > self.died.iter().filter(|death| death.is_about(testimony)).count() {
                return Err(format!("{} tells too often of {testimony:?}", self.place));
            }
        }
        Ok(())
    }
}
