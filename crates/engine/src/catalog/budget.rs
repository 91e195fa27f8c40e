//! Budgets: how much of a provisioned throughput is left in each second, and what the purge may use of it.
//!
//! None of this runs unless throughput is enforced. Every physical partition has a bucket, and so has every database
//! whose containers share its throughput. Time is real time, in whole seconds of the machine's boot-time clock (T29).
//! There is no timer: the first request of a second advances the bucket to that second.
//!
//! ```text
//!   second n                                       second n + 1
//!   rate ----- users spend ----> unused  --------> left over: the purge may use it in n + 1
//!        \                              \--------> reserve: a burst may spend it later, if bursts are on
//!         \--- or more than there is --> debt ---> taken from the rate of n + 1, n + 2 ...
//! ```
//!
//! **Users.** A request is admitted while the bucket is not empty. Its real cost is taken once it is known, so the
//! bucket may get into debt, and the debt delays later requests. A refusal names the time until the bucket will be
//! out of debt, found by advancing a copy of the bucket.
//!
//! **The purge** never takes a token. Once a second is over, users can no longer spend its unused units. They
//! become the purge's allowance for the next second, in a separate account that may get into debt in the same way.
//! If users leave nothing, the allowance is zero; if they are idle, it is the rate. The reserve for bursts is filled
//! with the same unused units, and the purge does not reduce it: a purge must never be the reason for a refusal
//! (T20). Decision 0011 has the details.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use storage::WallClock;

use crate::Engine;
use crate::catalog::collection::Collection;
use crate::catalog::container::{Api, Container, Partition, Provision};
use crate::catalog::owner::Owner;
use crate::types::charge::Charge;
use crate::types::error::{Error, Result};
use crate::types::throughput::Throughput;

/// The number of seconds of unused throughput that can be kept for a burst.
const RESERVE_SECONDS: i64 = 300;
/// What a partition can spend in a second with a burst, in hundredths. Only partitions with less than that have
/// bursts.
const BURST_RATE: i64 = 3000 * 100;

/// Whether requests beyond the provisioned throughput are refused.
#[derive(Clone, Default)]
pub enum Enforcement {
    /// Such requests are admitted.
    #[default]
    Off,
    /// Such requests are refused, by the machine's boot-time clock.
    On {
        /// Real time, whatever the test clock is set to (T29).
        clock: Arc<dyn WallClock>,
        /// Whether unused throughput is kept for bursts.
        burst: Burst,
    },
}

/// Whether unused throughput may be spent later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Burst {
    /// What is unused in a second is lost.
    #[default]
    Off,
    /// Up to five minutes of it are kept.
    On,
}

/// The rate at which a bucket is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rate {
    /// Hundredths of request units in a second.
    per_second: i64,
    burst: Burst,
}

impl Rate {
    /// Returns the share of one of `partitions` partitions.
    fn share(throughput: Throughput, partitions: usize, burst: Burst) -> Rate {
        let share = i64::from(throughput.most()) * 100 / partitions.max(1) as i64;
        Rate { per_second: share.max(1), burst }
    }

    /// Returns what may be spent in a second beyond the rate.
    fn extra(self) -> i64 {
        match self.burst {
            Burst::On => (BURST_RATE - self.per_second).max(0),
            Burst::Off => 0,
        }
    }

    fn reserve_max(self) -> i64 {
        if self.extra() > 0 { self.per_second * RESERVE_SECONDS } else { 0 }
    }
}

/// What is left of a throughput, in hundredths of request units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// The second that the figures belong to; `None` before the first use.
    second: Option<u64>,
    /// What is left of this second; negative is debt.
    balance: i64,
    /// What earlier seconds left unused, for bursts.
    reserve: i64,
    /// How much of the reserve may still be spent in this second.
    extra: i64,
    /// The purge's account; negative is debt.
    left_over: i64,
}

impl Bucket {
    /// Advances the bucket to the current second.
    fn turn_to(&mut self, now: Duration, rate: Rate) {
        let Some(mut second) = self.second else {
            *self = Bucket { second: Some(now.as_secs()), balance: rate.per_second, ..Bucket::default() };
            self.extra = rate.extra();
            return;
        };
        while second < now.as_secs() {
            let before = *self;
            self.turn(rate);
            second += 1;
            // Once a step changes nothing, no further one does.
            if *self == before {
                break;
            }
        }
        self.second = self.second.max(Some(now.as_secs()));
    }

    /// Ends a second and begins the next.
    fn turn(&mut self, rate: Rate) {
        let unused = self.balance.max(0);
        self.left_over = self.left_over.min(0) + unused;
        self.reserve = (self.reserve + unused).min(rate.reserve_max());
        self.balance = self.balance.min(0) + rate.per_second;
        self.extra = rate.extra();
        self.draw();
    }

    /// Pays a debt from the reserve, as far as the limit of a second allows.
    fn draw(&mut self) {
        let drawn = (-self.balance).max(0).min(self.reserve).min(self.extra);
        self.balance += drawn;
        self.reserve -= drawn;
        self.extra -= drawn;
    }

    fn is_open(&self) -> bool {
        self.balance > 0 || self.reserve.min(self.extra) > 0
    }

    /// Admits a request, or returns how long it should wait.
    fn admit(&mut self, now: Duration, rate: Rate) -> std::result::Result<(), Duration> {
        self.turn_to(now, rate);
        if self.is_open() {
            return Ok(());
        }
        let (mut later, mut seconds) = (*self, 0);
        while !later.is_open() {
            later.turn(rate);
            seconds += 1;
        }
        let into_second = Duration::from_nanos(u64::from(now.subsec_nanos()));
        Err(Duration::from_secs(seconds).saturating_sub(into_second))
    }

    fn pay(&mut self, now: Duration, rate: Rate, charge: Charge) {
        self.turn_to(now, rate);
        self.balance = self.balance.saturating_sub_unsigned(charge.0);
        self.draw();
    }

    fn left_over(&mut self, now: Duration, rate: Rate) -> Charge {
        self.turn_to(now, rate);
        Charge(self.left_over.max(0).unsigned_abs())
    }

    fn spend_left_over(&mut self, now: Duration, rate: Rate, charge: Charge) {
        self.turn_to(now, rate);
        self.left_over = self.left_over.saturating_sub_unsigned(charge.0);
    }
}

/// A bucket as partitions and databases hold it: all versions of a handle share it.
pub(crate) type SharedBucket = Arc<Mutex<Bucket>>;

/// Where the requests to a partition are admitted and paid.
#[derive(Clone)]
pub struct Budget(Option<Account>);

#[derive(Clone)]
struct Account {
    bucket: SharedBucket,
    rate: Rate,
    clock: Arc<dyn WallClock>,
}

impl Budget {
    /// Admits a request, or refuses it for its rate.
    pub fn admit(&self) -> Result<PendingCharge> {
        if let Some(Account { bucket, rate, clock }) = &self.0 {
            let admitted = bucket.lock().admit(clock.boot_time(), *rate);
            admitted.map_err(|wait| Error::TooManyRequests { retry_after_ms: milliseconds(wait) })?;
        }
        Ok(PendingCharge(self.0.clone()))
    }

    /// Returns what users left unused in the last second and the purge has not spent, or `None` if throughput is not
    /// enforced.
    pub fn left_over(&self) -> Option<Charge> {
        let Account { bucket, rate, clock } = self.0.as_ref()?;
        Some(bucket.lock().left_over(clock.boot_time(), *rate))
    }

    /// Charges the work of the purge to what users left unused. It may exceed what there is: later seconds repay the
    /// difference.
    pub fn spend_left_over(&self, charge: Charge) {
        if let Some(Account { bucket, rate, clock }) = &self.0 {
            bucket.lock().spend_left_over(clock.boot_time(), *rate, charge);
        }
    }
}

/// Converts to milliseconds, rounded up, so that a client that waits for so long is admitted.
fn milliseconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1)
}

/// An admitted request that has yet to pay.
#[must_use = "an admitted request has to pay"]
pub struct PendingCharge(Option<Account>);

impl PendingCharge {
    /// Pays what the request has cost.
    pub fn pay(mut self, charge: Charge) {
        self.take(charge);
    }

    /// Pays for a part of a request that continues.
    pub(crate) fn pay_part(&self, charge: Charge) {
        if let Some(Account { bucket, rate, clock }) = &self.0 {
            bucket.lock().pay(clock.boot_time(), *rate, charge);
        }
    }

    fn take(&mut self, charge: Charge) {
        self.pay_part(charge);
        self.0 = None;
    }
}

/// A request that failed pays the minimum.
impl Drop for PendingCharge {
    fn drop(&mut self) {
        self.take(Charge::MINIMUM);
    }
}

impl Engine {
    /// Admits a request to a partition of a container, or refuses it for its rate.
    pub(crate) fn admit(&self, container: &Container, partition: &Partition) -> Result<PendingCharge> {
        self.budget_of(container, partition).admit()
    }

    /// Admits a request to a collection, or refuses it for its rate.
    pub fn admit_collection(&self, collection: &Collection) -> Result<PendingCharge> {
        self.budget_of_collection(collection).admit()
    }

    /// Returns the budget of a partition of a container or collection.
    pub fn budget(&self, owner: &Owner, partition: &Partition) -> Budget {
        match owner {
            Owner::Container(container) => self.budget_of(container, partition),
            Owner::Collection(collection) => self.budget_of_collection(collection),
        }
    }

    /// Returns how long it takes until what users leave unused in this second is known, or `None` if throughput is
    /// not enforced.
    pub fn next_left_over(&self) -> Option<Duration> {
        let Enforcement::On { clock, .. } = &self.options.enforcement else { return None };
        let into_second = Duration::from_nanos(u64::from(clock.boot_time().subsec_nanos()));
        Some(Duration::from_secs(1).saturating_sub(into_second))
    }

    fn budget_of(&self, container: &Container, partition: &Partition) -> Budget {
        let own = (container.provision, container.partitions.len(), &partition.bucket);
        self.account(own, Api::NoSql, &container.database)
    }

    pub(crate) fn budget_of_collection(&self, collection: &Collection) -> Budget {
        let own = (collection.provision, 1, &collection.partition.bucket);
        self.account(own, Api::MongoDb, &collection.database)
    }

    /// Returns the account of a partition. A throughput of its own comes before the database's, which comes before
    /// the default.
    fn account(
        &self,
        (own, partitions, bucket): (Option<Provision>, usize, &SharedBucket),
        api: Api,
        database: &str,
    ) -> Budget {
        let Enforcement::On { clock, burst } = &self.options.enforcement else { return Budget(None) };
        let (clock, burst) = (Arc::clone(clock), *burst);
        let shared = || {
            let database = self.catalog().database_of(api, database)?;
            let throughput = database.provision?.throughput;
            Some((Arc::clone(&database.bucket), Rate::share(throughput, 1, burst)))
        };
        let of_its_own = |throughput| (Arc::clone(bucket), Rate::share(throughput, partitions, burst));
        let (bucket, rate) = match own {
            Some(provision) => of_its_own(provision.throughput),
            None => shared().unwrap_or_else(|| of_its_own(Throughput::DEFAULT)),
        };
        Budget(Some(Account { bucket, rate, clock }))
    }
}

#[cfg(test)]
mod tests {
    use storage::{ManualClock, Time};

    use super::*;
    use crate::tests::model_test::each_seed;

    const SECOND: Duration = Duration::from_secs(1);

    fn rate(units: i64, burst: Burst) -> Rate {
        Rate { per_second: units * 100, burst }
    }

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn units(units: u64) -> Charge {
        Charge(units * 100)
    }

    #[test]
    fn a_second_admits_until_it_is_spent_and_debt_delays_the_next() {
        let (mut bucket, rate) = (Bucket::default(), rate(400, Burst::Off));
        let table = [
            // (milliseconds, the cost if it is admitted, how long it must wait otherwise)
            (200, 399, None),
            (300, 1001, None),
            // 1000 units in debt: 600 after one second, 200 after two, out of debt in the third.
            (300, 0, Some(2700)),
            (1999, 0, Some(1001)),
            (2999, 0, Some(1)),
            (3000, 200, None),
            (3000, 1, Some(1000)),
            (4000, 1, None),
        ];
        for (millis, charge, wait) in table {
            let admitted = bucket.admit(at(millis), rate);
            assert_eq!(admitted.err(), wait.map(at), "at {millis}");
            if admitted.is_ok() {
                bucket.pay(at(millis), rate, units(charge));
            }
        }
    }

    #[test]
    fn what_is_unused_is_gone_without_bursts() {
        let (mut bucket, rate) = (Bucket::default(), rate(400, Burst::Off));
        bucket.pay(at(0), rate, units(0));
        assert!(bucket.admit(at(60_000), rate).is_ok());
        bucket.pay(at(60_000), rate, units(400));
        assert_eq!(bucket.admit(at(60_001), rate), Err(at(999)));
    }

    #[test]
    fn five_minutes_are_kept_for_bursts_of_three_thousand_a_second() {
        let (mut bucket, rate) = (Bucket::default(), rate(400, Burst::On));
        bucket.pay(at(0), rate, units(0));
        let mut second = 1000;
        let mut spent = 0;
        // Idle for far longer than five minutes, then a burst.
        loop {
            let now = SECOND * second;
            let mut in_second = 0;
            while bucket.admit(now, rate).is_ok() {
                bucket.pay(now, rate, units(10));
                in_second += 10;
            }
            assert!(in_second <= 3000, "{in_second}");
            if in_second == 400 {
                break;
            }
            spent += in_second - 400;
            second += 1;
        }
        assert_eq!(spent, 400 * 300);
    }

    #[test]
    fn large_partitions_have_no_bursts() {
        let (mut bucket, rate) = (Bucket::default(), rate(3000, Burst::On));
        bucket.pay(at(0), rate, units(0));
        bucket.pay(at(100_000), rate, units(3000));
        assert!(bucket.admit(at(100_000), rate).is_err());
    }

    #[test]
    fn t20_the_purge_has_what_users_left_and_nothing_else() {
        let (mut bucket, rate) = (Bucket::default(), rate(400, Burst::Off));
        assert_eq!(bucket.left_over(at(0), rate), units(0));
        bucket.pay(at(100), rate, units(150));
        assert_eq!(bucket.left_over(at(999), rate), units(0), "the second is not over");
        assert_eq!(bucket.left_over(at(1000), rate), units(250));
        bucket.spend_left_over(at(1000), rate, units(300));
        assert_eq!(bucket.left_over(at(1500), rate), units(0));
        bucket.pay(at(1500), rate, units(1000));
        assert_eq!(bucket.left_over(at(2000), rate), units(0), "users are in debt");
        assert_eq!(bucket.left_over(at(3000), rate), units(0), "users pay their debt");
        assert_eq!(bucket.left_over(at(4000), rate), units(150), "of 200 units 50 were the purge's own debt");
        assert_eq!(bucket.left_over(at(5000), rate), units(400), "when users stop, it is the rate");
        assert_eq!(bucket.left_over(at(500_000), rate), units(400), "it does not pile up");
    }

    #[test]
    fn a_request_may_pay_in_parts_and_pays_the_same() {
        let clock: Arc<dyn WallClock> = Arc::new(ManualClock::new(Time::from_seconds(1)));
        let rate = rate(400, Burst::Off);
        let spent = |pay: &dyn Fn(PendingCharge)| {
            let (bucket, clock) = (SharedBucket::default(), Arc::clone(&clock));
            bucket.lock().pay(clock.boot_time(), rate, units(0));
            let before = bucket.lock().balance;
            pay(PendingCharge(Some(Account { bucket: bucket.clone(), rate, clock })));
            before - bucket.lock().balance
        };
        let least = i64::try_from(Charge::MINIMUM.0).expect("small");
        let parts = |pending: &PendingCharge| {
            pending.pay_part(units(100));
            pending.pay_part(units(20));
        };
        let whole = spent(&|pending| {
            parts(&pending);
            pending.pay(units(3));
        });
        assert_eq!(whole, spent(&|pending| pending.pay(units(123))));
        assert_eq!(
            spent(&|pending| parts(&pending)),
            12_000 + least,
            "a request that failed pays the least besides"
        );
    }

    /// Two equal budgets, one of them with a purge that uses all it may: users fare the same in both. Together users
    /// and purge never exceed the rate by more than the last admitted request of each. A client that waits as told is
    /// admitted, and no sooner.
    #[test]
    fn t20_no_user_is_refused_because_of_the_purge() {
        each_seed(200, |seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            let burst = if seed % 2 == 0 { Burst::Off } else { Burst::On };
            let rate = rate(100 + random.u64(..900) as i64, burst);
            let (mut purged, mut plain, mut now) = (Bucket::default(), Bucket::default(), at(0));
            let (mut used, mut purge_used, largest) = (0, 0, 500 * 100);
            for _ in 0..400 {
                now += at(random.u64(..400) * random.u64(..4));
                let admitted = plain.admit(now, rate);
                assert_eq!(purged.admit(now, rate), admitted);
                match admitted {
                    Ok(()) => {
                        let charge = Charge(random.u64(..largest));
                        used += charge.0;
                        plain.pay(now, rate, charge);
                        purged.pay(now, rate, charge);
                    }
                    Err(wait) => {
                        let mut early = plain;
                        assert!(early.admit((now + wait).saturating_sub(at(1)), rate).is_err());
                        assert!(early.admit(now + wait, rate).is_ok());
                    }
                }
                while purged.left_over(now, rate) > Charge(0) {
                    let charge = Charge(random.u64(..largest) + 1);
                    purge_used += charge.0;
                    purged.spend_left_over(now, rate, charge);
                }
                let allowed = (now.as_secs() + 1) * rate.per_second.unsigned_abs();
                assert!(purge_used <= allowed + largest, "{purge_used} of {allowed}");
                if burst == Burst::Off {
                    assert!(
                        used + purge_used <= allowed + 2 * largest,
                        "{used} and {purge_used} of {allowed}"
                    );
                }
            }
        });
    }
}
