//! Where the feed of latest versions of a partition ends.

use document::Sequence;
use parking_lot::Mutex;

/// The end of a partition's feed as the first reader saw it since the last write to the partition.
///
/// A reader that has seen everything gets this end instead of the store's last sequence, which any write to
/// another container moves. Otherwise its position would differ at each poll, and clients store each new position in a lease,
/// which is such a write.
#[derive(Debug, Default)]
pub(crate) struct FeedEnd(Mutex<Option<(u64, Sequence)>>);

impl FeedEnd {
    /// Returns the end in a view in which the partition has this LSN, and where nothing follows `end`.
    ///
    /// The LSN counts the commits that a feed can show and nothing else, so an end holds as long as the LSN does; and neither
    /// shows whether the purge has run.
    pub(crate) fn at(&self, lsn: u64, end: Sequence) -> Sequence {
        let mut known = self.0.lock();
        match *known {
            Some((at, known)) if at == lsn => known.min(end),
            Some((at, _)) if at > lsn => end,
            _ => {
                *known = Some((lsn, end));
                end
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_stays_until_something_is_written() {
        let end = FeedEnd::default();
        for (lsn, last, expected) in [
            (5, 50, 50),
            (5, 60, 50),
            // An older view of the same LSN is not told of what came later.
            (5, 40, 40),
            (6, 70, 70),
            // A view of before the last write does not move the end back.
            (5, 60, 60),
            (6, 80, 70),
        ] {
            assert_eq!(end.at(lsn, Sequence(last)), Sequence(expected), "LSN {lsn}, {last}");
        }
    }
}
