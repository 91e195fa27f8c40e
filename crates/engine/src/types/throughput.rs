//! Provisioned throughput, as it is stored and shown; `budget` enforces it.

use document::{Object, OfferRid, Value};

use crate::types::error::{Error, Result};

/// The throughput of a database or container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throughput {
    /// A fixed number of request units a second.
    Manual(u32),
    /// Up to this many request units a second, scaled by use.
    Autoscale {
        /// The upper end.
        max: u32,
        /// By how much the service would raise the upper end by itself, in percent, if that was given; stored and shown.
        increment_percent: Option<u32>,
    },
}

const MANUAL_MIN: u32 = 400;
const MANUAL_STEP: u32 = 100;
const AUTOSCALE_MIN: u32 = 1000;
const AUTOSCALE_STEP: u32 = 1000;
const THROUGHPUT_MAX: u32 = 1_000_000;
/// The throughput that one physical partition can have; beyond it a new container gets several.
const PARTITION_MAX: u32 = 10_000;
/// The throughput that the service then plans for each of them.
const PARTITION_SHARE: u32 = 6000;

impl Throughput {
    /// Refuses what the service would refuse.
    pub fn check(self) -> Result<Throughput> {
        let (kind, value, min, step) = match self {
            Throughput::Manual(value) => ("throughput", value, MANUAL_MIN, MANUAL_STEP),
            Throughput::Autoscale { max, .. } => {
                ("autoscale maximum throughput", max, AUTOSCALE_MIN, AUTOSCALE_STEP)
            }
        };
        if (min..=THROUGHPUT_MAX).contains(&value) && value % step == 0 {
            return Ok(self);
        }
        Err(Error::invalid(format!(
            "The {kind} {value} is invalid: it must be between {min} and {THROUGHPUT_MAX} in steps of {step}."
        )))
    }

    /// The throughput of a container or collection when neither it nor its database was given any.
    pub const DEFAULT: Throughput = Throughput::Manual(MANUAL_MIN);

    /// Returns autoscale with a fixed upper end.
    pub fn autoscale(max: u32) -> Throughput {
        Throughput::Autoscale { max, increment_percent: None }
    }

    /// Returns the least throughput of the same kind that may replace this one when the highest ever provisioned is
    /// `highest`: a hundredth of it, for autoscale a tenth.
    pub(crate) fn least(self, highest: u32) -> u32 {
        match self {
            Throughput::Manual(_) => highest.div_ceil(100).next_multiple_of(MANUAL_STEP).max(MANUAL_MIN),
            Throughput::Autoscale { .. } => {
                highest.div_ceil(10).next_multiple_of(AUTOSCALE_STEP).max(AUTOSCALE_MIN)
            }
        }
    }

    /// Refuses a throughput below the least that is allowed when the highest ever provisioned is `highest`.
    pub(crate) fn check_least(self, highest: u32) -> Result<Throughput> {
        let (asked, least) = (self.check()?.most(), self.least(highest));
        if asked >= least {
            return Ok(self);
        }
        Err(Error::invalid(format!(
            "The throughput {asked} is less than {least}, the least that is possible after {highest} request units a \
             second have been provisioned."
        )))
    }

    /// Returns the most request units that a second can have.
    pub(crate) fn most(self) -> u32 {
        let (Throughput::Manual(rate) | Throughput::Autoscale { max: rate, .. }) = self;
        rate
    }

    /// Returns how many physical partitions the service would create for it.
    pub(crate) fn partitions(self) -> u32 {
        let rate = self.most();
        if rate <= PARTITION_MAX { 1 } else { rate.div_ceil(PARTITION_SHARE) }
    }

    pub(crate) fn to_value(self) -> Value {
        let number = |name: &str, number: u32| (name.to_owned(), Value::Int(i64::from(number)));
        let members = match self {
            Throughput::Manual(value) => vec![number("manual", value)],
            Throughput::Autoscale { max, increment_percent: None } => vec![number("autoscale", max)],
            Throughput::Autoscale { max, increment_percent: Some(increment_percent) } => {
                vec![number("autoscale", max), number("increment", increment_percent)]
            }
        };
        Value::Object(Object::from_iter(members))
    }

    pub(crate) fn from_value(value: &Value) -> Option<Throughput> {
        let number = |name| value.get(name).and_then(Value::as_i64).and_then(|n| u32::try_from(n).ok());
        number("manual").map(Throughput::Manual).or_else(|| {
            let increment_percent = number("increment");
            number("autoscale").map(|max| Throughput::Autoscale { max, increment_percent })
        })
    }
}

/// The performance level of an offer, from before throughput had a number. It is stored and shown: the throughput alone
/// counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PerformanceLevel {
    /// None, which the service calls "Invalid".
    #[default]
    None,
    /// "S1"
    S1,
    /// "S2"
    S2,
    /// "S3"
    S3,
}

impl PerformanceLevel {
    const ALL: [PerformanceLevel; 4] =
        [PerformanceLevel::None, PerformanceLevel::S1, PerformanceLevel::S2, PerformanceLevel::S3];

    /// Returns the level of that name, in any case.
    pub fn from_name(name: &str) -> Option<PerformanceLevel> {
        Self::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(name))
    }

    /// Returns its name as the offer's type.
    pub fn name(self) -> &'static str {
        match self {
            PerformanceLevel::None => "Invalid",
            PerformanceLevel::S1 => "S1",
            PerformanceLevel::S2 => "S2",
            PerformanceLevel::S3 => "S3",
        }
    }
}

/// The throughput of one database or container, as a resource of its own.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The offer's own resource id.
    pub rid: OfferRid,
    /// The `_self` link of what it belongs to.
    pub resource: String,
    /// The resource id of what it belongs to.
    pub resource_rid: String,
    /// The provision.
    pub throughput: Throughput,
    /// The performance level that a client gave it.
    pub level: PerformanceLevel,
    /// The least throughput of the same kind that may replace it.
    pub least: u32,
    /// The highest throughput that was ever provisioned.
    pub highest: u32,
    /// Version of the offer.
    pub etag: document::Etag,
    /// The time of its last change, seconds since 1970.
    pub ts: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_follow_the_rate() {
        for (rate, partitions) in [(400, 1), (10_000, 1), (10_100, 2), (11_000, 2), (20_000, 4), (30_000, 5)]
        {
            assert_eq!(Throughput::Manual(rate).partitions(), partitions, "{rate}");
        }
    }

    #[test]
    fn limits_and_steps_are_kept() {
        let increasing = Throughput::Autoscale { max: 2000, increment_percent: Some(20) };
        for good in
            [Throughput::Manual(400), Throughput::Manual(20_000), Throughput::autoscale(4000), increasing]
        {
            assert_eq!(good.check(), Ok(good));
            assert_eq!(Throughput::from_value(&good.to_value()), Some(good));
        }
        for bad in [Throughput::Manual(399), Throughput::Manual(450), Throughput::autoscale(400)] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_was_provisioned_once_bounds_what_may_be_asked_for_later() {
        for (throughput, highest, least) in [
            (Throughput::Manual(400), 400, 400),
            (Throughput::Manual(400), 40_000, 400),
            (Throughput::Manual(400), 45_000, 500),
            (Throughput::autoscale(1000), 4000, 1000),
            (Throughput::autoscale(1000), 45_000, 5000),
        ] {
            assert_eq!(throughput.least(highest), least, "{throughput:?} {highest}");
            assert_eq!(throughput.check_least(highest).is_ok(), least <= throughput.most());
        }
    }
}
