//! The policy's bytes; `docs/file-format.md` describes the same layout in prose.
//!
//! The part about date rules is present only where there is or was one. Behind it, the parts about instants of expiry
//! and about lifecycle settings are present only where they are not empty. So the records of other partitions are as
//! they were before these features.

use std::collections::BTreeMap;

use document::{Document, Sequence, Value};

use super::change::{RESERVED_RULES, RULES_MAX};
use super::{Cutoff, DateRule, Lifecycle, Millis, Moment, Policy, Queue, RuleTerm};
use crate::expiry::ttl::DefaultTtl;
use crate::types::error::{Error, Result};

const SUSPENDED: u8 = 0;
const IN_FORCE: u8 = 1;

impl Policy {
    /// Returns the stored form.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.version.to_be_bytes().to_vec();
        out.extend_from_slice(&default_ttl_number(self.default_ttl).to_be_bytes());
        out.extend_from_slice(&(self.cutoffs.len() as u16).to_be_bytes());
        for cutoff in &self.cutoffs {
            out.extend_from_slice(&cutoff.queue.number().to_be_bytes());
            out.extend_from_slice(&cutoff.through.to_be_bytes());
            out.extend_from_slice(&cutoff.before.0.to_be_bytes());
        }
        let has_more =
            !self.cutoffs.is_empty() || !self.since.is_empty() || self.lifecycle != Lifecycle::default();
        if self.last_queue != 0 || has_more {
            out.extend_from_slice(&self.last_queue.to_be_bytes());
            out.push(self.rules.len() as u8);
            for rule in &self.rules {
                rule.encode(&mut out);
            }
        }
        if has_more {
            self.encode_more(&mut out);
        }
        out
    }

    fn encode_more(&self, out: &mut Vec<u8>) {
        for cutoff in &self.cutoffs {
            out.extend_from_slice(&cutoff.term.delay.to_be_bytes());
            cutoff.term.since.encode(out);
        }
        out.extend_from_slice(&(self.since.len() as u16).to_be_bytes());
        for (queue, moment) in &self.since {
            out.extend_from_slice(&queue.number().to_be_bytes());
            moment.encode(out);
        }
        if self.lifecycle != Lifecycle::default() {
            let settings = Document::from_value(&Value::Object(self.lifecycle.to_object()));
            out.extend_from_slice(settings.expect("lifecycle settings are short and flat").as_bytes());
        }
    }

    /// Reads the stored form back.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Policy> {
        Policy::try_decode(bytes).ok_or_else(|| Error::Corrupt("an expiry policy cannot be read".into()))
    }

    fn try_decode(mut bytes: &[u8]) -> Option<Policy> {
        let version = u64::from_be_bytes(*take(&mut bytes)?);
        let default_ttl = default_ttl_from(i32::from_be_bytes(*take(&mut bytes)?))?;
        let count = u16::from_be_bytes(*take(&mut bytes)?);
        let mut cutoffs = Vec::new();
        for _ in 0..count {
            let queue = Queue::from_number(u16::from_be_bytes(*take(&mut bytes)?))?;
            let through = Millis::from_be_bytes(*take(&mut bytes)?);
            let before = Sequence(u64::from_be_bytes(*take(&mut bytes)?));
            cutoffs.push(Cutoff { queue, through, before, term: RuleTerm::UNKNOWN });
        }
        let (mut rules, mut last_queue) = (Vec::new(), 0);
        if !bytes.is_empty() {
            last_queue = match u16::from_be_bytes(*take(&mut bytes)?) {
                0 => 0,
                number => Queue::date(number)?.number(),
            };
            let [count] = *take(&mut bytes)?;
            for _ in 0..Some(count).filter(|count| usize::from(*count) <= RULES_MAX + RESERVED_RULES)? {
                rules.push(DateRule::decode(&mut bytes)?);
            }
        }
        let (since, lifecycle) = (BTreeMap::new(), Lifecycle::default());
        let mut policy = Policy { version, default_ttl, cutoffs, rules, last_queue, since, lifecycle };
        if !bytes.is_empty() {
            policy.decode_more(bytes)?;
        }
        Some(policy)
    }

    fn decode_more(&mut self, mut bytes: &[u8]) -> Option<()> {
        for cutoff in &mut self.cutoffs {
            let delay = Millis::from_be_bytes(*take(&mut bytes)?);
            cutoff.term = RuleTerm { delay, since: Moment::decode(&mut bytes)? };
        }
        for _ in 0..u16::from_be_bytes(*take(&mut bytes)?) {
            let queue = Queue::from_number(u16::from_be_bytes(*take(&mut bytes)?))?;
            self.since.insert(queue, Moment::decode(&mut bytes)?);
        }
        if !bytes.is_empty() {
            let settings = Document::from_stored(bytes::Bytes::copy_from_slice(bytes)).ok()?.to_value();
            self.lifecycle = Lifecycle::from_object(settings.as_object()?).ok()?;
        }
        Some(())
    }
}

impl Moment {
    fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.time.to_be_bytes());
        out.extend_from_slice(&self.sequence.0.to_be_bytes());
    }

    fn decode(bytes: &mut &[u8]) -> Option<Moment> {
        let time = Millis::from_be_bytes(*take(bytes)?);
        Some(Moment { time, sequence: Sequence(u64::from_be_bytes(*take(bytes)?)) })
    }
}

impl DateRule {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_be_bytes());
        match self.delay_ms {
            None => out.push(SUSPENDED),
            Some(delay_ms) => {
                out.push(IN_FORCE);
                out.extend_from_slice(&delay_ms.to_be_bytes());
            }
        }
        out.extend_from_slice(&(self.queues.len() as u16).to_be_bytes());
        for queue in &self.queues {
            out.extend_from_slice(&queue.number().to_be_bytes());
        }
    }

    fn decode(bytes: &mut &[u8]) -> Option<DateRule> {
        let id = u32::from_be_bytes(*take(bytes)?);
        let delay_ms = match *take(bytes)? {
            [SUSPENDED] => None,
            [IN_FORCE] => Some(Millis::from_be_bytes(*take(bytes)?)),
            _ => return None,
        };
        let mut queues = Vec::new();
        for _ in 0..u16::from_be_bytes(*take(bytes)?) {
            queues.push(Queue::date(u16::from_be_bytes(*take(bytes)?))?);
        }
        (!queues.is_empty()).then_some(DateRule { id, delay_ms, queues })
    }
}

/// Returns `D` as the number that clients write, and 0, which they cannot write, for off.
fn default_ttl_number(default_ttl: DefaultTtl) -> i32 {
    match default_ttl {
        DefaultTtl::Off => 0,
        DefaultTtl::Never => -1,
        DefaultTtl::Seconds(seconds) => i32::try_from(seconds).expect("a default ttl fits 31 bits"),
    }
}

fn default_ttl_from(number: i32) -> Option<DefaultTtl> {
    match number {
        0 => Some(DefaultTtl::Off),
        -1 => Some(DefaultTtl::Never),
        _ => u32::try_from(number).ok().map(DefaultTtl::Seconds),
    }
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(head)
}
