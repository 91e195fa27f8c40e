//! Detects that tenants that hold nothing are refused: the sign that a server is overloaded for all of them.
//!
//! A refusal of a tenant that holds its share says nothing about the server. A tenant that holds nothing is refused
//! only where the others hold everything. One admission of such a tenant ends the starvation, and so does silence: a
//! server that a load balancer has taken out gets no requests, and must become ready again.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Refusals of tenants that hold nothing, for one resource.
#[derive(Debug)]
pub(super) struct Starvation {
    refusals: Mutex<Refusals>,
    /// How long refusals must have lasted, and how old the last one may be.
    after: Duration,
}

/// The refusals since a tenant that held nothing was admitted.
#[derive(Debug, Default)]
struct Refusals {
    /// The first and the last one.
    whole: Option<(Instant, Instant)>,
    /// The beginning of the first wait that was given up early, and the end of the last.
    early: Option<(Instant, Instant)>,
}

impl Starvation {
    pub(super) fn new(after: Duration) -> Starvation {
        Starvation { refusals: Mutex::default(), after }
    }

    /// Records the refusal of a tenant that holds `held` units.
    pub(super) fn refused(&self, held: usize) {
        if held == 0 {
            let mut refusals = self.refusals.lock();
            refusals.whole = Some(self.prolonged(refusals.whole, Instant::now(), Duration::ZERO));
        }
    }

    /// Records the refusal of a tenant that holds `held` units and has waited for less than others do. It counts once such
    /// waits, one after another, have lasted for `max_wait` without an admission: a tenant that waits for that long would
    /// have been refused by then.
    pub(super) fn refused_early(&self, held: usize, waited: Duration, max_wait: Duration) {
        if held == 0 {
            let now = Instant::now();
            let mut refusals = self.refusals.lock();
            let early = self.prolonged(refusals.early, now, waited);
            refusals.early = Some(early);
            if now - early.0 >= max_wait {
                refusals.whole = Some(self.prolonged(refusals.whole, now, Duration::ZERO));
            }
        }
    }

    /// Returns a series of refusals prolonged by one after a wait; a new one if the last refusal is old.
    fn prolonged(
        &self,
        series: Option<(Instant, Instant)>,
        now: Instant,
        waited: Duration,
    ) -> (Instant, Instant) {
        match series {
            Some((first, last)) if !self.is_old(last, now) => (first, now),
            _ => (now - waited, now),
        }
    }

    /// Records the admission of a tenant that held `held` units.
    pub(super) fn admitted(&self, held: usize) {
        if held == 0 {
            *self.refusals.lock() = Refusals::default();
        }
    }

    /// Returns for how long such tenants have been refused, if that is long enough to report.
    pub(super) fn lasts(&self) -> Option<Duration> {
        let (first, last) = self.refusals.lock().whole?;
        let now = Instant::now();
        let lasts = now - first;
        (lasts >= self.after && !self.is_old(last, now)).then_some(lasts)
    }

    fn is_old(&self, last: Instant, now: Instant) -> bool {
        now - last > self.after
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_lasting_refusals_of_tenants_that_hold_nothing_count() {
        let starvation = Starvation::new(Duration::from_secs(5));
        let second = Duration::from_secs(1);
        for _ in 0..10 {
            starvation.refused(1);
            advance(second).await;
        }
        assert_eq!(starvation.lasts(), None, "it holds its share");
        for _ in 0..5 {
            assert_eq!(starvation.lasts(), None, "not for long enough");
            starvation.refused(0);
            advance(second).await;
        }
        assert_eq!(starvation.lasts(), Some(5 * second));
        starvation.admitted(1);
        assert_eq!(starvation.lasts(), Some(5 * second), "it had something already");
        starvation.admitted(0);
        assert_eq!(starvation.lasts(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_it() {
        let starvation = Starvation::new(Duration::from_secs(5));
        starvation.refused(0);
        advance(Duration::from_secs(5)).await;
        assert!(starvation.lasts().is_some());
        advance(Duration::from_secs(1)).await;
        assert_eq!(starvation.lasts(), None, "no request was refused for more than five seconds");
        starvation.refused(0);
        assert_eq!(starvation.lasts(), None, "that is another time");
    }

    #[tokio::test(start_paused = true)]
    async fn short_waits_count_as_the_long_one_that_they_add_up_to() {
        let starvation = Starvation::new(Duration::from_secs(5));
        let (short, long) = (Duration::from_millis(250), Duration::from_secs(5));
        let refuse = async |times: u32| {
            for _ in 0..times {
                // Two at once wait no longer than one.
                advance(short).await;
                starvation.refused_early(0, short, long);
                starvation.refused_early(0, short, long);
            }
        };
        refuse(39).await;
        assert_eq!(starvation.lasts(), None, "for 9.75 s, the first five of which are a wait");
        refuse(1).await;
        assert_eq!(starvation.lasts(), Some(long));
        starvation.admitted(0);
        refuse(39).await;
        assert_eq!(starvation.lasts(), None, "an admission ends the short waits as well");
        advance(Duration::from_secs(6)).await;
        refuse(39).await;
        assert_eq!(starvation.lasts(), None, "and so does silence");
    }
}
