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
    /// The first and the last refusal since such a tenant was admitted.
    refusals: Mutex<Option<(Instant, Instant)>>,
    /// How long refusals must have lasted, and how old the last one may be.
    after: Duration,
}

impl Starvation {
    pub(super) fn new(after: Duration) -> Starvation {
        Starvation { refusals: Mutex::default(), after }
    }

    /// Records the refusal of a tenant that holds `held` units.
    pub(super) fn refused(&self, held: usize) {
        if held == 0 {
            let now = Instant::now();
            let mut refusals = self.refusals.lock();
            let first =
                refusals.map_or(now, |(first, last)| if self.is_old(last, now) { now } else { first });
            *refusals = Some((first, now));
        }
    }

    /// Records the admission of a tenant that held `held` units.
    pub(super) fn admitted(&self, held: usize) {
        if held == 0 {
            let mut refusals = self.refusals.lock();
            if refusals.is_some() {
                *refusals = None;
            }
        }
    }

    /// Returns for how long such tenants have been refused, if that is long enough to report.
    pub(super) fn lasts(&self) -> Option<Duration> {
        let (first, last) = (*self.refusals.lock())?;
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
}
