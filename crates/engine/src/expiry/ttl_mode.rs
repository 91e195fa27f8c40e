//! TTL modes other than "since the last write" (T33): countdowns that start elsewhere, and instants of expiry that a
//! property names.
//!
//! Expiry has no special case for these. A countdown that does not start at `_ts` may start in the past, as a
//! date may. Therefore such an item has its entry in a numbered queue, which has generations, and not in `inherit` or
//! `own`. Two rules with reserved numbers own these queues and follow `D` as `inherit` and `own` do; a third rule is
//! for instants of expiry:
//!
//! ```text
//!   rule        items in its queues                    base                    delay
//!   inherited   no ttl, countdown starts elsewhere     its start               D while D = n, else none
//!   owned       ttl = m, countdown starts elsewhere    its start + m           0 unless D is off
//!   absolute    items that name their expiry           the named instant       0
//! ```
//!
//! *Base property*: the countdown starts at a number of seconds that a property holds. *Keep expiry*: it starts where
//! the countdown of the previous version started. *Sliding*: it starts with the write, and a read restarts it
//! ([`renewal`](crate::access::renewal)). A setting applies to items that are written from then on; stored items keep
//! their queue positions until their next version.

use bson::RawDocument;
use document::{Path, ValueRef};

use super::{CountdownBase, DateRule, Millis, Policy, Queue, QueuePosition, from_seconds};
use crate::expiry::header::{Body, Header};
use crate::expiry::ttl::{DefaultTtl, OwnTtl};
use crate::types::error::{Error, Result};

/// What a write does to the countdown of the item that it replaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Countdown {
    /// The countdown restarts (T9).
    #[default]
    Restart,
    /// The countdown continues (T33): the new version expires when the previous one would have, unless its `ttl`
    /// differs.
    Keep,
}

impl DateRule {
    /// The rule of items without `ttl` whose countdown does not start at `_ts`. No index has so high a number.
    pub(super) const INHERITED: u32 = u32::MAX;
    /// The rule of items with a `ttl` whose countdown does not start at `_ts`.
    pub(super) const OWNED: u32 = u32::MAX - 1;
    /// The rule of items that name the instant of their expiry.
    pub(crate) const ABSOLUTE: u32 = u32::MAX - 2;

    /// Returns whether this is a rule of ttl. An item in its queues is neither in `inherit` nor in `own`.
    pub(super) fn is_of_ttl(&self) -> bool {
        [DateRule::INHERITED, DateRule::OWNED].contains(&self.id)
    }

    /// Returns whether this is the rule of a date index.
    pub(crate) fn is_of_an_index(&self) -> bool {
        !self.is_of_ttl() && self.id != DateRule::ABSOLUTE
    }
}

impl Policy {
    /// Returns whether countdowns may start elsewhere than at `_ts`.
    pub(crate) fn has_ttl_modes(&self) -> bool {
        self.rules.iter().any(DateRule::is_of_ttl)
    }

    /// Returns whether items expire by ttl alone, wherever its countdown starts.
    pub(crate) fn is_of_ttl_alone(&self) -> bool {
        let of_dates = |queue: Queue| matches!(queue, Queue::Date(_)) && !self.is_of_ttl(queue);
        !self.queues().into_iter().any(of_dates)
    }

    fn is_of_ttl(&self, queue: Queue) -> bool {
        self.rule_of(queue).is_some_and(DateRule::is_of_ttl)
    }

    /// Sets the delays of the ttl rules after a change of `D`.
    pub(super) fn follow_default_ttl(&mut self) {
        let (inherited, owned) = match self.default_ttl {
            DefaultTtl::Off => (None, None),
            DefaultTtl::Never => (None, Some(0)),
            DefaultTtl::Seconds(seconds) => (Some(from_seconds(seconds.into())), Some(0)),
        };
        for rule in &mut self.rules {
            match rule.id {
                DateRule::INHERITED => rule.delay_ms = inherited,
                DateRule::OWNED => rule.delay_ms = owned,
                _ => {}
            }
        }
    }

    /// Gives a version that is being written its queue positions: the start of its countdown, and its dates. `before`
    /// is the version that it replaces; `date` returns the date for the rule of an index.
    pub(crate) fn settle<B: Body>(
        &self,
        header: &mut Header,
        body: &B,
        (countdown, before): (Countdown, Option<&Header>),
        date: impl FnMut(u32) -> Option<Millis>,
    ) -> Result<()> {
        let property = || self.lifecycle.ttl_property_path.as_ref().and_then(|path| body.seconds_at(path));
        let from = match (countdown, before) {
            (Countdown::Keep, Some(before)) => Some(before.counts_from()),
            (Countdown::Keep, None) | (Countdown::Restart, _) => property(),
        };
        let slides = self.lifecycle.sliding && header.ttl != OwnTtl::Never;
        if from.is_some() || slides {
            let from = from.unwrap_or(from_seconds(header.ts));
            header.counted = Some(CountdownBase { queue: self.counted_queue(header.ttl)?, from, slides });
        }
        header.bases = self.dates(body, date);
        Ok(())
    }

    /// Gives a stored item that had no queue positions, because it was held, its positions in the newest queues.
    pub(crate) fn settle_lifted<B: Body>(
        &self,
        header: &mut Header,
        body: &B,
        date: impl FnMut(u32) -> Option<Millis>,
    ) -> Result<()> {
        if let Some(counted) = &mut header.counted {
            counted.queue = self.counted_queue(header.ttl)?;
        }
        header.bases = self.dates(body, date);
        Ok(())
    }

    /// Returns the queue positions of an item by its dates.
    fn dates<B: Body>(&self, body: &B, mut date: impl FnMut(u32) -> Option<Millis>) -> Vec<QueuePosition> {
        self.bases(|rule| match (rule, &self.lifecycle.expire_at_path) {
            (DateRule::ABSOLUTE, Some(path)) => body.instant_at(path),
            (DateRule::ABSOLUTE | DateRule::INHERITED | DateRule::OWNED, _) => None,
            (index, _) => date(index),
        })
    }

    /// Returns the queue that an item joins whose countdown does not start at `_ts`.
    pub(super) fn counted_queue(&self, ttl: OwnTtl) -> Result<Queue> {
        let rule = match ttl {
            OwnTtl::Absent | OwnTtl::Never => DateRule::INHERITED,
            OwnTtl::Seconds(_) => DateRule::OWNED,
        };
        let rule = self.rule(rule).map(DateRule::newest);
        rule.ok_or_else(|| Error::Corrupt("a policy without queues for TTL modes".into()))
    }
}

/// Reads a JSON number of seconds.
pub(crate) fn seconds_of(value: ValueRef<'_>) -> Option<Millis> {
    match value {
        ValueRef::Int(seconds) => Some(seconds.saturating_mul(1000)),
        ValueRef::Double(seconds) => from_fraction(seconds),
        _ => None,
    }
}

/// Reads a JSON number of seconds, or a date as text.
pub(crate) fn instant_of(value: ValueRef<'_>) -> Option<Millis> {
    match value {
        ValueRef::String(text) => query::parse_date_time(text),
        number => seconds_of(number),
    }
}

/// Returns the value at a path of embedded documents.
pub(crate) fn bson_at<'a>(body: &'a RawDocument, path: &Path) -> Option<bson::ValueRef<'a>> {
    let (last, parents) = path.segments().split_last()?;
    let parent = parents.iter().try_fold(body.view(), |parent, name| match parent.get(name)? {
        bson::ValueRef::Document(document) => Some(document),
        _ => None,
    });
    parent?.get(last)
}

/// Reads a BSON number of seconds.
pub(crate) fn seconds_of_bson(value: bson::ValueRef<'_>) -> Option<Millis> {
    match value {
        bson::ValueRef::Int32(seconds) => Some(Millis::from(seconds) * 1000),
        bson::ValueRef::Int64(seconds) => Some(seconds.saturating_mul(1000)),
        bson::ValueRef::Double(seconds) => from_fraction(seconds),
        _ => None,
    }
}

/// Reads a BSON date, a number of seconds, or a date as text.
pub(crate) fn instant_of_bson(value: bson::ValueRef<'_>) -> Option<Millis> {
    match value {
        bson::ValueRef::DateTime(date) => Some(date),
        bson::ValueRef::String(text) => query::parse_date_time(text),
        number => seconds_of_bson(number),
    }
}

/// Converts seconds with a fraction; the cast saturates (T7).
fn from_fraction(seconds: f64) -> Option<Millis> {
    seconds.is_finite().then(|| (seconds * 1000.0).floor() as Millis)
}

#[cfg(test)]
mod tests {
    use bson::Value as Bson;
    use document::Document;

    use super::*;

    #[test]
    fn t33_properties_that_name_times() {
        let far = Millis::MAX;
        for (json, seconds, instant) in [
            ("5", Some(5000), Some(5000)),
            ("-5", Some(-5000), Some(-5000)),
            ("1.5", Some(1500), Some(1500)),
            ("-0.0001", Some(-1), Some(-1)),
            ("9223372036854775807", Some(far), Some(far)),
            ("1e300", Some(far), Some(far)),
            ("-1e300", Some(Millis::MIN), Some(Millis::MIN)),
            (r#""1970-01-01T00:00:02.5Z""#, None, Some(2500)),
            (r#""1970-01-02""#, None, Some(86_400_000)),
            (r#""5""#, None, None),
            (r#""soon""#, None, None),
            ("null", None, None),
            ("true", None, None),
            ("[5]", None, None),
        ] {
            let body = Document::from_json(format!(r#"{{"id":"1","a":{{"b":{json}}}}}"#).as_bytes());
            let (body, path) = (body.expect("JSON"), Path::parse("/a/b").expect("a path"));
            assert_eq!((body.seconds_at(&path), body.instant_at(&path)), (seconds, instant), "{json}");
            for elsewhere in ["/a", "/b", "/a/b/c", "/id"] {
                let path = Path::parse(elsewhere).expect("a path");
                assert_eq!((body.seconds_at(&path), body.instant_at(&path)), (None, None), "{elsewhere}");
            }
        }
    }

    #[test]
    fn t33_properties_of_documents_that_name_times() {
        for (value, seconds, instant) in [
            (Bson::Int32(5), Some(5000), Some(5000)),
            (Bson::Int64(-5), Some(-5000), Some(-5000)),
            (Bson::Int64(i64::MAX), Some(Millis::MAX), Some(Millis::MAX)),
            (Bson::Double(1.5), Some(1500), Some(1500)),
            (Bson::Double(f64::NAN), None, None),
            (Bson::Double(f64::INFINITY), None, None),
            (Bson::DateTime(2500), None, Some(2500)),
            (Bson::from("1970-01-01T00:00:02.5Z"), None, Some(2500)),
            (Bson::Null, None, None),
        ] {
            let inner = bson::Document::new().with("b", value.clone());
            let body = RawDocument::from_document(&bson::Document::new().with("_id", 1).with("a", inner));
            let path = Path::parse("/a/b").expect("a path");
            assert_eq!((body.seconds_at(&path), body.instant_at(&path)), (seconds, instant), "{value:?}");
            let path = Path::parse("/_id/b").expect("a path");
            assert_eq!((body.seconds_at(&path), body.instant_at(&path)), (None, None));
        }
    }
}
