//! The policy's bytes; `docs/file-format.md` tells the same in prose.
//!
//! What belongs to date rules follows only where there is or was one, so that other partitions' records are as they were
//! before there were date rules.

use document::Sequence;

use super::change::RULES_MAX;
use super::{Cutoff, DateRule, Millis, Policy, Queue};
use crate::definition::DefaultTtl;
use crate::error::{Error, Result};

const SUSPENDED: u8 = 0;
const IN_FORCE: u8 = 1;

impl Policy {
    /// The stored form.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.version.to_be_bytes().to_vec();
        out.extend_from_slice(&default_ttl_number(self.default_ttl).to_be_bytes());
        out.extend_from_slice(&(self.cutoffs.len() as u16).to_be_bytes());
        for cutoff in &self.cutoffs {
            out.extend_from_slice(&cutoff.queue.number().to_be_bytes());
            out.extend_from_slice(&cutoff.through.to_be_bytes());
            out.extend_from_slice(&cutoff.before.0.to_be_bytes());
        }
        if self.last_queue != 0 {
            out.extend_from_slice(&self.last_queue.to_be_bytes());
            out.push(self.rules.len() as u8);
            for rule in &self.rules {
                rule.encode(&mut out);
            }
        }
        out
    }

    /// The stored form read back.
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
            cutoffs.push(Cutoff { queue, through, before });
        }
        let (mut rules, mut last_queue) = (Vec::new(), 0);
        if !bytes.is_empty() {
            last_queue = Queue::date(u16::from_be_bytes(*take(&mut bytes)?))?.number();
            let [count] = *take(&mut bytes)?;
            for _ in 0..Some(count).filter(|count| usize::from(*count) <= RULES_MAX)? {
                rules.push(DateRule::decode(&mut bytes)?);
            }
        }
        bytes.is_empty().then_some(Policy { version, default_ttl, cutoffs, rules, last_queue })
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

/// `D` as the number that clients write, and 0, which they cannot, for off.
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
