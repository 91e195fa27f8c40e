//! Lanes: the parts of the key space that a transaction touches.
//!
//! The embedded and the memory store run one transaction at a time, so lanes cost them nothing and protect nothing. A
//! store with several writers locks exactly these lanes while a job runs, in ascending order so that two jobs never
//! deadlock.

/// A set of lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes(Set);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Set {
    All,
    Some(Vec<u64>),
}

impl Lanes {
    /// Creates the lane of one logical partition.
    pub fn one(lane: u64) -> Self {
        Self(Set::Some(vec![lane]))
    }

    /// Creates the set of all lanes, existing and future: for changes to the catalog.
    pub const fn all() -> Self {
        Self(Set::All)
    }

    /// Returns the lanes in ascending order, or `None` for all.
    pub fn numbers(&self) -> Option<&[u64]> {
        match &self.0 {
            Set::All => None,
            Set::Some(numbers) => Some(numbers),
        }
    }
}

impl FromIterator<u64> for Lanes {
    fn from_iter<I: IntoIterator<Item = u64>>(lanes: I) -> Self {
        let mut numbers: Vec<u64> = lanes.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Self(Set::Some(numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::Lanes;

    #[test]
    fn lanes_are_sorted_and_unique() {
        let lanes: Lanes = [5, 1, 5, 3].into_iter().collect();
        assert_eq!(lanes.numbers(), Some(&[1, 3, 5][..]));
        assert_eq!(Lanes::all().numbers(), None);
    }
}
