//! Records which sequences had been taken by which commit, to bound the numbers in a table, which are made of sequences.
//!
//! A table does not record the highest number that its keys end with, but it records the newest commit that it has an entry of, and
//! sequences are taken in the order of commits. So the history keeps a few *samples*, pairs of a commit and the last sequence taken
//! before it:
//!
//! ```text
//!   commit   ...  310      420      505      611
//!   sequence      9 000    12 000   15 000   17 000
//! ```
//!
//! A table whose newest entry is of commit 400 has no number made of a sequence above 12 000. The samples are stored, because old
//! tables need those from before a restart. Their number is bounded however long the history: the further back, the further apart.

/// The most samples.
const SAMPLES_MAX: usize = 128;
/// The least number of sequences between two samples.
const SPACING: u64 = 1024;
const SAMPLE_BYTES: usize = 16;

/// Entries of commits before `seqno` have no higher sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    seqno: u64,
    sequence: u64,
}

/// The sequences taken so far.
#[derive(Debug, Clone, Default)]
pub(super) struct SequenceHistory {
    /// Ascending in both fields.
    samples: Vec<Sample>,
    /// The sample of the newest commit.
    newest: Option<Sample>,
    /// Whether a sample was added since [`take_changed`](Self::take_changed).
    is_changed: bool,
}

impl SequenceHistory {
    /// Reads the stored samples of a store whose next commit is `seqno` and whose last sequence taken is `sequence`.
    pub(super) fn open(stored: &[u8], seqno: u64, sequence: u64) -> Self {
        let newest = Sample { seqno, sequence };
        let samples: Vec<_> = stored.chunks_exact(SAMPLE_BYTES).filter_map(Sample::decode).collect();
        let is_ascending = samples.iter().chain([&newest]).is_sorted_by(|a, b| a.is_before(**b));
        let mut history = Self { newest: Some(newest), ..Self::default() };
        // Samples that contradict the store are ignored.
        if is_ascending {
            history.samples = samples;
        }
        history.add(newest);
        history
    }

    /// Returns the samples to store if there are new ones.
    pub(super) fn take_changed(&mut self) -> Option<Vec<u8>> {
        std::mem::take(&mut self.is_changed)
            .then(|| self.samples.iter().flat_map(|sample| sample.encode()).collect())
    }

    /// Records a commit. `seqno` is the next commit, `sequence` the last sequence taken in this one or before.
    pub(super) fn committed(&mut self, seqno: u64, sequence: u64) {
        let newest = Sample { seqno, sequence };
        self.newest = Some(newest);
        match self.samples.last_mut() {
            // The same sequence holds for more commits. That is not worth storing by itself.
            Some(last) if last.sequence == sequence => last.seqno = seqno,
            Some(last) if sequence.saturating_sub(last.sequence) < SPACING => {}
            _ => self.add(newest),
        }
    }

    /// Adds a sample of the state before the commit that is about to be recorded, if that commit raises a watermark above all earlier
    /// sequences.
    pub(super) fn raised(&mut self, sequence: u64) {
        if let Some(newest) = self.newest.filter(|newest| newest.sequence < sequence) {
            self.add(newest);
        }
    }

    /// Returns the highest sequence that an entry of a commit, or of one before, may have; `None` if that is not known.
    pub(super) fn highest_through(&self, seqno: u64) -> Option<u64> {
        let at = self.samples.partition_point(|sample| sample.seqno <= seqno);
        self.samples.get(at).map(|sample| sample.sequence)
    }

    fn add(&mut self, sample: Sample) {
        if self.samples.last().is_some_and(|last| !last.is_before(sample)) {
            return;
        }
        match self.samples.last_mut() {
            Some(last) if last.sequence == sample.sequence => *last = sample,
            _ => self.samples.push(sample),
        }
        self.is_changed = true;
        if self.samples.len() > SAMPLES_MAX {
            self.forget_one(sample.sequence);
        }
    }

    /// Removes the least useful sample: the one whose neighbours are nearest to each other, relative to their age.
    fn forget_one(&mut self, now: u64) {
        let mut least: Option<(u128, u128, usize)> = None;
        for (at, neighbours) in self.samples.windows(3).enumerate() {
            let gap = u128::from(neighbours[2].sequence - neighbours[0].sequence);
            let age = u128::from(now - neighbours[0].sequence) + 1;
            if least.is_none_or(|(least_gap, its_age, _)| gap * its_age < least_gap * age) {
                least = Some((gap, age, at + 1));
            }
        }
        if let Some((_, _, at)) = least {
            self.samples.remove(at);
        }
    }
}

impl Sample {
    fn is_before(self, other: Sample) -> bool {
        self.seqno <= other.seqno && self.sequence <= other.sequence
    }

    fn encode(self) -> [u8; SAMPLE_BYTES] {
        let mut bytes = [0; SAMPLE_BYTES];
        bytes[..8].copy_from_slice(&self.seqno.to_le_bytes());
        bytes[8..].copy_from_slice(&self.sequence.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (seqno, sequence) = bytes.split_first_chunk()?;
        let sequence = sequence.first_chunk()?;
        Some(Self { seqno: u64::from_le_bytes(*seqno), sequence: u64::from_le_bytes(*sequence) })
    }
}

#[cfg(test)]
mod tests {
    use super::{SAMPLES_MAX, SPACING, SequenceHistory};

    #[test]
    fn t22_a_bound_is_never_below_a_number_of_the_commit() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut history = SequenceHistory::open(&[], 10, 100);
        let (mut seqno, mut sequence) = (10, 100);
        // What entries of each commit may have at most.
        let mut commits = vec![(9, 100)];
        for _ in 0..20_000 {
            sequence += random.u64(..3 * SPACING) * u64::from(random.u8(..4) == 0);
            commits.push((seqno, sequence));
            seqno += random.u64(1..4);
            if random.u8(..50) == 0 {
                history.raised(sequence + 1);
            }
            history.committed(seqno, sequence);
            if random.u16(..3000) == 0 {
                let stored: Vec<u8> = history.samples.iter().flat_map(|sample| sample.encode()).collect();
                history = SequenceHistory::open(&stored, seqno, sequence);
            }
            let (of, had) = commits[random.usize(..commits.len())];
            assert!(history.highest_through(of).is_none_or(|bound| bound >= had), "{of} {had}");
        }
        assert!(history.samples.len() <= SAMPLES_MAX);
    }

    #[test]
    fn samples_reach_back_with_a_resolution_that_follows_the_age() {
        let mut history = SequenceHistory::default();
        (0..1_000_000_u64).for_each(|commit| history.committed(commit + 1, commit * 100));
        let now = 100_000_000_u64;
        for age in [10_000, 100_000, 1_000_000, 10_000_000, 90_000_000] {
            let sequence = now - age;
            let bound = history.highest_through(sequence / 100).expect("known");
            assert!(
                bound >= sequence && bound - sequence <= 3 * SPACING + age / 4,
                "{age}: {}",
                bound - sequence
            );
        }
    }

    #[test]
    fn what_was_written_before_a_watermark_that_passes_everything_lies_below_it() {
        let mut history = SequenceHistory::open(&[], 10, 100);
        history.committed(20, 150);
        assert_eq!(history.highest_through(15), None);
        history.raised(151);
        history.committed(21, 151);
        assert_eq!(history.highest_through(15), Some(150));
        assert_eq!(history.highest_through(20), None, "the commit itself is not known");
    }

    #[test]
    fn stored_samples_that_the_store_does_not_agree_with_are_forgotten() {
        let mut history = SequenceHistory::open(&[], 10, 100);
        history.committed(2000, 5000);
        let stored = history.take_changed().expect("new ones");
        assert_eq!(history.take_changed(), None);
        assert_eq!(SequenceHistory::open(&stored, 2000, 5000).highest_through(5), Some(100));
        assert_eq!(SequenceHistory::open(&stored, 1500, 5000).highest_through(5), Some(5000));
        assert_eq!(SequenceHistory::open(&stored[..30], 2000, 5000).highest_through(15), Some(5000));
        assert_eq!(SequenceHistory::open(&stored, 1500, 5000).highest_through(1500), None);
    }
}
