//! Connections that insert, and others that read what has not expired.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::client::Client;
use crate::documents::Random;
use crate::histogram::Histogram;

/// Items in one logical partition.
const PARTITION_ITEMS: u64 = 1000;
/// The newest items, of which some may not be inserted yet, are not read.
const NEWEST: u64 = 500;
/// How often a reader reads.
const READ_PERIOD: Duration = Duration::from_millis(10);

/// What all connections share.
#[derive(Default)]
pub(super) struct Load {
    /// The next item to insert.
    next: AtomicU64,
    /// The oldest item that readers ask for.
    oldest: AtomicU64,
    /// The next item at each of the last seconds.
    history: Mutex<VecDeque<u64>>,
    writes: Mutex<Histogram>,
    reads: Mutex<Histogram>,
    misses: AtomicU64,
    pub(super) over: AtomicBool,
}

impl Load {
    /// Returns the latencies of writes and reads since the last call.
    pub(super) fn take(&self) -> (Histogram, Histogram) {
        let take = |of: &Mutex<Histogram>| std::mem::take(&mut *of.lock().expect("no user panics with it"));
        (take(&self.writes), take(&self.reads))
    }

    /// Is called every second: items older than half of their time to live are not read any more.
    pub(super) fn age(&self, ttl_seconds: u64) {
        let mut history = self.history.lock().expect("no user panics with it");
        history.push_back(self.next.load(Ordering::Relaxed));
        if history.len() as u64 > ttl_seconds / 2
            && let Some(oldest) = history.pop_front()
        {
            self.oldest.store(oldest, Ordering::Relaxed);
        }
    }

    /// Returns the reads that did not find their item.
    pub(super) fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }

    /// Inserts as fast as answers come, or one item each period.
    pub(super) fn insert(&self, mut client: Client, period: Duration) -> Result<()> {
        let mut due = Instant::now();
        while !self.over.load(Ordering::Relaxed) {
            if period.is_zero() {
                due = Instant::now();
            } else {
                sleep(due.saturating_duration_since(Instant::now()));
            }
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            let pk = (id / PARTITION_ITEMS).to_string();
            let body = body(id, &pk);
            client.upsert("c", &pk, &body)?.expect(201)?;
            self.writes.lock().expect("no user panics with it").add(due.elapsed());
            due += period;
        }
        Ok(())
    }

    /// Reads items at regular times, whether or not the last answer was late.
    pub(super) fn read(&self, mut client: Client, number: u64) -> Result<()> {
        let (mut random, mut due) = (Random::new(number), Instant::now());
        while !self.over.load(Ordering::Relaxed) {
            sleep(due.saturating_duration_since(Instant::now()));
            let oldest = self.oldest.load(Ordering::Relaxed);
            let newest = self.next.load(Ordering::Relaxed).saturating_sub(NEWEST);
            if newest > oldest {
                let id = oldest + random.below(newest - oldest);
                let answer = client.read("c", &(id / PARTITION_ITEMS).to_string(), &id.to_string())?;
                if answer.status == 404 {
                    self.misses.fetch_add(1, Ordering::Relaxed);
                } else {
                    answer.expect(200)?;
                    self.reads.lock().expect("no user panics with it").add(due.elapsed());
                }
            }
            due += READ_PERIOD;
        }
        Ok(())
    }
}

/// Sets the flag when it is dropped.
pub(super) struct OnDrop<'a>(pub(super) &'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Returns an item of about 900 bytes.
fn body(id: u64, pk: &str) -> String {
    let noise = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let text: String = (0..24_u64).map(|part| format!("{:032x}", noise.wrapping_mul(2 * part + 1))).collect();
    format!(
        "{{\"id\":\"{id}\",\"pk\":\"{pk}\",\"name\":\"{noise:016x}\",\"n\":{},\"text\":\"{text}\"}}",
        noise % 1000
    )
}
