//! Short names: `#1` for the first item of a script, `v1` for its first version, `+10s` for the time since its start.
//! Numbers themselves depend on how many commits a store has made, which a script must not depend on.

use std::collections::BTreeMap;

use storage::Time;

/// When every script begins: a whole hour, so that a counter's first bucket begins at `+0s`.
pub(super) const START_SECONDS: u64 = 1_700_002_800;

/// The names given so far.
#[derive(Default)]
pub(super) struct Labels {
    items: BTreeMap<u64, usize>,
    versions: BTreeMap<u64, usize>,
}

impl Labels {
    pub(super) fn item(&mut self, number: u64) -> String {
        let next = self.items.len() + 1;
        format!("#{}", self.items.entry(number).or_insert(next))
    }

    /// A message of the engine, in which items are named by their numbers.
    pub(super) fn rename(&self, line: &str) -> String {
        let number = line.split_once("item '#").and_then(|(_, rest)| rest.split_once('\''));
        let label = number.and_then(|(digits, _)| Some((digits, self.items.get(&digits.parse().ok()?)?)));
        match label {
            Some((digits, label)) => line.replacen(&format!("'#{digits}'"), &format!("'#{label}'"), 1),
            None => line.to_owned(),
        }
    }

    pub(super) fn version(&mut self, sequence: u64) -> String {
        let next = self.versions.len() + 1;
        format!("v{}", self.versions.entry(sequence).or_insert(next))
    }

    /// The sequence behind a version's name.
    pub(super) fn sequence(&self, label: &str) -> u64 {
        let number: usize = label.strip_prefix('v').and_then(|digits| digits.parse().ok()).unwrap_or(0);
        let found = self.versions.iter().find(|(_, known)| **known == number);
        *found.unwrap_or_else(|| panic!("no version {label}")).0
    }

    /// The number behind an item's name.
    pub(super) fn number(&self, label: &str) -> u64 {
        let number: usize = label.strip_prefix('#').and_then(|digits| digits.parse().ok()).unwrap_or(0);
        let found = self.items.iter().find(|(_, known)| **known == number);
        *found.unwrap_or_else(|| panic!("no item {label}")).0
    }
}

/// An instant, counted from the script's start.
pub(super) fn instant(millis: i64) -> String {
    let since = millis - START_SECONDS as i64 * 1000;
    let sign = if since < 0 { '-' } else { '+' };
    let (seconds, rest) = (since.unsigned_abs() / 1000, since.unsigned_abs() % 1000);
    if rest == 0 { format!("{sign}{seconds}s") } else { format!("{sign}{seconds}.{rest:03}s") }
}

pub(super) fn time(time: Time) -> String {
    instant(time.millis() as i64)
}

/// A number of things.
pub(super) fn count(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// `30s`, `500ms`, `2m`, `1h`, `1d`, in milliseconds.
pub(super) fn duration(text: &str) -> u64 {
    let split = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let unit = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => panic!("no duration: {text}"),
    };
    digits.parse::<u64>().unwrap_or_else(|_| panic!("no duration: {text}")) * unit
}
