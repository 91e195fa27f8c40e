//! Turns of background work: each partition with work is served before one is served again.

use parking_lot::Mutex;

use crate::keys::PartitionId;

/// The partition that had its turn last. Partitions take turns in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Turn(Mutex<Option<PartitionId>>);

impl Turn {
    /// Sorts waiting work, beginning behind the partition that had its turn last.
    pub(crate) fn sort<T>(&self, waiting: &mut [T], partition: impl Fn(&T) -> PartitionId) {
        let last = *self.0.lock();
        waiting.sort_by_key(|work| (Some(partition(work)) <= last, partition(work)));
    }

    /// Records that a partition has its turn.
    pub(crate) fn begin(&self, partition: PartitionId) {
        *self.0.lock() = Some(partition);
    }

    /// Returns the work whose turn it is and how much waits beside it, and begins its turn; `None` if none waits.
    pub(crate) fn next<T>(
        &self,
        waiting: impl Iterator<Item = T>,
        partition: impl Fn(&T) -> PartitionId,
    ) -> Option<(T, usize)> {
        let mut waiting: Vec<T> = waiting.collect();
        self.sort(&mut waiting, &partition);
        let others = waiting.len().saturating_sub(1);
        let work = waiting.into_iter().next()?;
        self.begin(partition(&work));
        Some((work, others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_has_its_turn_before_one_has_another() {
        let turn = Turn::default();
        let next = |waiting: &[u32]| turn.next(waiting.iter().copied(), |number| PartitionId(*number));
        assert_eq!(next(&[]), None);
        assert_eq!([next(&[3, 1, 2]), next(&[3, 1, 2]), next(&[3, 1, 2])], [1, 2, 3].map(|n| Some((n, 2))));
        assert_eq!(next(&[3, 2]), Some((2, 1)), "the turns begin again");
        assert_eq!(next(&[1, 2]), Some((1, 1)), "a partition that had its turn last comes last");
        assert_eq!(next(&[1]), Some((1, 0)), "unless no other waits");
    }
}
