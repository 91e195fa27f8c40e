//! Clients that do not trust the server's certificate.
//!
//! A client of direct mode that does not trust the certificate ends its connection after the handshake, without a word,
//! and asks for addresses again; half a minute later its user reads that the service is not available. An error in
//! answer to that second question reaches the user at once. It must not reach others: health checks, too, end
//! connections after the handshake, and many clients may share an address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Addresses that are watched at most.
const ADDRESSES_MAX: usize = 1024;

/// How long an address is watched.
const LIFE: Duration = Duration::from_mins(1);

/// How long ago the handshakes may be that ended without a word.
const RECENT: Duration = Duration::from_secs(10);

/// The number of handshakes without a word that arouse suspicion.
const SILENT_ENDS: usize = 2;

/// The last ends of an address that are remembered, to find regular ones.
const REMEMBERED: usize = 6;

/// What is known of the addresses from which clients come.
#[derive(Debug, Default)]
pub(crate) struct Trust(Mutex<HashMap<IpAddr, Seen>>);

/// What was seen of an address.
#[derive(Debug)]
struct Seen {
    last: Instant,
    /// When it asked for addresses and got them.
    asked: Option<Instant>,
    /// When handshakes ended without a word, the latest last.
    silent_ends: Vec<Instant>,
    /// Whether a client from there opened a connection in direct mode, and so trusts the certificate.
    is_trusting: bool,
}

impl Trust {
    /// Records that a handshake was finished, or refused for the certificate, and that nothing followed.
    pub(crate) fn ended_silently(&self, address: IpAddr) {
        self.note(address, |seen, now| {
            if seen.silent_ends.len() == REMEMBERED {
                seen.silent_ends.remove(0);
            }
            seen.silent_ends.push(now);
        });
    }

    /// Records that a connection in direct mode was opened.
    pub(crate) fn context_came(&self, address: IpAddr) {
        self.note(address, |seen, _| seen.is_trusting = true);
    }

    /// Records a request for addresses, and returns whether it comes from a client that does not trust the certificate.
    pub(crate) fn asks(&self, address: IpAddr) -> bool {
        let mut is_suspect = false;
        self.note(address, |seen, now| {
            is_suspect = seen.is_suspect(now);
            seen.asked = Some(now);
        });
        is_suspect
    }

    fn note(&self, address: IpAddr, change: impl FnOnce(&mut Seen, Instant)) {
        let now = Instant::now();
        let mut all = self.0.lock();
        // Those that trust are kept: they are never told otherwise. A table full of them accuses no client.
        if all.len() >= ADDRESSES_MAX && !all.contains_key(&address) {
            all.retain(|_, seen| seen.is_trusting || seen.last + LIFE > now);
            if all.len() >= ADDRESSES_MAX {
                return;
            }
        }
        let seen = all.entry(address).or_insert_with(|| Seen {
            last: now,
            asked: None,
            silent_ends: Vec::new(),
            is_trusting: false,
        });
        if seen.last + LIFE <= now && !seen.is_trusting {
            (seen.asked, seen.silent_ends) = (None, Vec::new());
        }
        seen.last = now;
        change(seen, now);
    }
}

impl Seen {
    /// Only ends after an answer with addresses count: those of a health check come without a question.
    fn is_suspect(&self, now: Instant) -> bool {
        let Some(asked) = self.asked.filter(|_| !self.is_trusting && !self.is_regular()) else {
            return false;
        };
        let since = |end: &&Instant| **end >= asked && now.duration_since(**end) <= RECENT;
        self.silent_ends.iter().filter(since).count() >= SILENT_ENDS
    }

    /// Returns whether the last ends came at about equal intervals, as those of a health check do.
    fn is_regular(&self) -> bool {
        let gaps: Vec<Duration> = self.silent_ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (Some(least), Some(most)) = (gaps.iter().min(), gaps.iter().max()) else { return false };
        gaps.len() >= 3 && *least > Duration::from_millis(200) && *most < *least * 3 / 2
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::time::advance;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_ends_its_handshakes_without_a_word_is_told_why() {
        let trust = Trust::default();
        assert!(!trust.asks(HERE), "the first question is answered");
        trust.ended_silently(HERE);
        assert!(!trust.asks(HERE), "one end may be chance");
        trust.ended_silently(HERE);
        advance(SECOND / 10).await;
        trust.ended_silently(HERE);
        assert!(trust.asks(HERE));
        advance(11 * SECOND).await;
        assert!(!trust.asks(HERE), "it may have learned since");
    }

    #[tokio::test(start_paused = true)]
    async fn a_health_check_beside_a_healthy_client_arouses_no_suspicion() {
        let trust = Trust::default();
        for second in 0..60 {
            trust.ended_silently(HERE);
            advance(SECOND).await;
            if second % 7 == 0 {
                assert!(!trust.asks(HERE), "after {second} s");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_health_check_each_second_accuses_no_client_that_comes_back_after_a_kill() {
        // A killed server has forgotten everything. Its client is back at any moment between the checks and asks twice, for two
        // containers, before it has opened a connection.
        for back_ms in (0..6000).step_by(50) {
            let trust = Trust::default();
            for elapsed_ms in (0..30_000).step_by(50) {
                if elapsed_ms % 1000 == 0 {
                    trust.ended_silently(HERE);
                }
                let is_asking = elapsed_ms == back_ms || elapsed_ms == back_ms + 400;
                if is_asking || (elapsed_ms > back_ms && elapsed_ms % 7000 == 0) {
                    assert!(!trust.asks(HERE), "back after {back_ms} ms, asks after {elapsed_ms} ms");
                }
                if elapsed_ms == back_ms + 600 {
                    trust.context_came(HERE);
                }
                advance(SECOND / 20).await;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_clients_behind_one_address_the_trusting_one_is_not_refused() {
        let trust = Trust::default();
        assert!(!trust.asks(HERE), "the one that trusts");
        trust.context_came(HERE);
        for second in 0..120 {
            assert!(!trust.asks(HERE), "the one that does not, after {second} s");
            trust.ended_silently(HERE);
            trust.ended_silently(HERE);
            advance(SECOND).await;
            assert!(!trust.asks(HERE), "the one that trusts, after {second} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_from_which_a_client_trusts_is_never_suspect() {
        let trust = Trust::default();
        trust.context_came(HERE);
        for _ in 0..10 {
            assert!(!trust.asks(HERE));
            trust.ended_silently(HERE);
            trust.ended_silently(HERE);
            advance(3 * LIFE).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_addresses_takes_no_more_memory() {
        let trust = Trust::default();
        for number in 0..5000_u32 {
            trust.ended_silently(IpAddr::V4(number.into()));
        }
        assert_eq!(trust.0.lock().len(), ADDRESSES_MAX);
        advance(2 * LIFE).await;
        trust.context_came(HERE);
        assert_eq!(trust.0.lock().len(), 1);
        for number in 0..5000_u32 {
            trust.ended_silently(IpAddr::V4(number.into()));
            advance(SECOND).await;
        }
        assert!(trust.0.lock()[&HERE].is_trusting, "an address that trusts is not forgotten");
    }
}
