//! Throughput as a plain program: all charges ever made, summed up again from the first second on each query.
//!
//! Units are hundredths of request units, times are real ones. Depends on nothing but `std`.

use std::collections::BTreeMap;

/// The number of seconds whose unused units are kept for bursts,
const RESERVE_SECONDS: i64 = 300;
/// and the units that may be spent in a second with them.
const BURST_RATE: i64 = 300_000;

/// The units that a container may spend, and those spent.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    rate: i64,
    bursts: bool,
    began: Option<u64>,
    paid: BTreeMap<u64, i64>,
    purged: BTreeMap<u64, i64>,
}

/// The units that are left in a second.
#[derive(Debug, Clone, Copy)]
struct State {
    balance: i64,
    reserve: i64,
    extra: i64,
    left_over: i64,
}

impl Ledger {
    /// Creates a ledger without charges.
    pub(super) fn new(units: u32, bursts: bool) -> Ledger {
        let rate = i64::from(units) * 100;
        Ledger { rate, bursts, began: None, paid: BTreeMap::new(), purged: BTreeMap::new() }
    }

    /// Records a restart: the process forgets its charges.
    pub(super) fn forget(&mut self) {
        self.began = None;
        self.paid.clear();
        self.purged.clear();
    }

    /// Records the first query since a start: only from then on units are left over.
    pub(super) fn begin(&mut self, now_ms: u64) {
        self.began.get_or_insert(now_ms / 1000);
    }

    /// Records the cost of an admitted request.
    pub(super) fn pay(&mut self, now_ms: u64, units: u64) {
        *self.paid.entry(now_ms / 1000).or_default() += units.cast_signed();
    }

    /// Records the units that the purge has used of what users left.
    pub(super) fn purge(&mut self, now_ms: u64, units: u64) {
        *self.purged.entry(now_ms / 1000).or_default() += units.cast_signed();
    }

    /// Returns how long a request has to wait; `None` if it is admitted.
    pub(super) fn wait_ms(&self, now_ms: u64) -> Option<u64> {
        let second = now_ms / 1000;
        let open = |second| {
            let state = self.at(second);
            state.balance > 0 || state.reserve.min(state.extra) > 0
        };
        let mut first = second;
        while !open(first) {
            first += 1;
        }
        (first > second).then(|| first * 1000 - now_ms)
    }

    /// Returns the units that the purge may spend.
    pub(super) fn left_over(&self, now_ms: u64) -> u64 {
        self.at(now_ms / 1000).left_over.max(0).unsigned_abs()
    }

    fn at(&self, second: u64) -> State {
        let extra = if self.bursts { (BURST_RATE - self.rate).max(0) } else { 0 };
        let reserve_max = if extra > 0 { self.rate * RESERVE_SECONDS } else { 0 };
        let mut state = State { balance: self.rate, reserve: 0, extra, left_over: 0 };
        for past in self.began.unwrap_or(second)..=second {
            if Some(past) != self.began {
                let unused = state.balance.max(0);
                state.left_over = state.left_over.min(0) + unused;
                state.reserve = (state.reserve + unused).min(reserve_max);
                state.balance = state.balance.min(0) + self.rate;
                state.extra = extra;
                state.draw();
            }
            state.balance -= self.paid.get(&past).copied().unwrap_or_default();
            state.draw();
            state.left_over -= self.purged.get(&past).copied().unwrap_or_default();
        }
        state
    }
}

impl State {
    /// Pays a debt from the reserve, as far as the limit of a second allows.
    fn draw(&mut self) {
        let drawn = (-self.balance).max(0).min(self.reserve).min(self.extra);
        self.balance += drawn;
        self.reserve -= drawn;
        self.extra -= drawn;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t20_what_users_leave_is_the_purges_in_the_next_second() {
        let mut ledger = Ledger::new(400, false);
        ledger.begin(0);
        ledger.pay(10, 30_000);
        assert_eq!((ledger.left_over(999), ledger.left_over(1000)), (0, 10_000));
        ledger.pay(1500, 50_000);
        assert_eq!((ledger.wait_ms(1600), ledger.left_over(2000)), (Some(400), 0));
        ledger.purge(1700, 15_000);
        assert_eq!((ledger.wait_ms(2000), ledger.left_over(3000)), (None, 25_000));
    }
}
