//! Settings as text from three places, in order of precedence: command line, environment, file.
//!
//! Every setting has one name: `--test-clock`, `BOLIDE_TEST_CLOCK` and `test-clock = true` are the same one. What
//! the texts mean is decided in `config`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use toml::de::{DeTable, DeValue};

/// Every setting's name. `config` itself cannot stand in the file.
pub(crate) const NAMES: [&str; 23] = [
    "archive-root",
    "burst-capacity",
    "config",
    "data",
    "durability",
    "enforce-throughput",
    "key",
    "key-file",
    "listen",
    "max-clock-jump",
    "max-start-gap",
    "memory",
    "mongo-advertise",
    "mongo-auth",
    "mongo-listen",
    "mongo-profile",
    "mongo-test-commands",
    "mongo-user",
    "partitions",
    "storage",
    "test-clock",
    "tls-cert",
    "tls-key",
];

/// The settings of one place.
pub(crate) type Layer = BTreeMap<&'static str, String>;

/// All places, the strongest first.
pub(crate) struct Settings(pub(crate) Vec<(&'static str, Layer)>);

impl Settings {
    /// The text of a setting.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|(_, layer)| layer.get(name)).map(String::as_str)
    }

    /// A setting that is on or off.
    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        self.get(name).map_or(Ok(false), |text| parse_flag(name, text))
    }

    /// A setting that is a time in whole seconds.
    pub(crate) fn seconds(&self, name: &str) -> Result<Option<Duration>> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let seconds = text.trim().parse::<u32>().ok().filter(|seconds| *seconds > 0);
        let seconds = seconds
            .ok_or_else(|| anyhow!("'{name}' must be a positive number of seconds, it is '{text}'"))?;
        Ok(Some(Duration::from_secs(seconds.into())))
    }

    /// A setting that is a number from 1 to `most`.
    pub(crate) fn count(&self, name: &str, most: u32) -> Result<Option<u32>> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let count = text.trim().parse::<u32>().ok().filter(|count| (1..=most).contains(count));
        count.map(Some).ok_or_else(|| anyhow!("'{name}' must be a number from 1 to {most}, it is '{text}'"))
    }

    /// The strongest place that says anything about one of these settings, which exclude each other there.
    pub(crate) fn choice(&self, names: &[&'static str]) -> Result<Option<(&'static str, &str)>> {
        for (place, layer) in &self.0 {
            let is_set = |name: &&&'static str| layer.get(**name).is_some_and(|text| text != "false");
            let given: Vec<&&'static str> = names.iter().filter(is_set).collect();
            match given.as_slice() {
                [] => {}
                [one] => return Ok(Some((**one, layer.get(**one).map_or("", String::as_str)))),
                [one, two, ..] => bail!("'{one}' and '{two}' exclude each other, {place} gives both"),
            }
        }
        Ok(None)
    }
}

fn parse_flag(name: &str, text: &str) -> Result<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" | "" => Ok(false),
        _ => Err(anyhow!("'{name}' must be true or false, it is '{text}'")),
    }
}

/// The environment's settings.
pub(crate) fn from_environment(read: impl Fn(&str) -> Option<String>) -> Layer {
    let variable = |name: &str| format!("BOLIDE_{}", name.to_ascii_uppercase().replace('-', "_"));
    NAMES.iter().filter_map(|name| Some((*name, read(&variable(name))?))).collect()
}

/// A configuration file's settings.
pub(crate) fn from_toml(text: &str) -> Result<Layer> {
    let table = DeTable::parse(text)?;
    let mut layer = Layer::new();
    for (key, value) in table.get_ref() {
        let key = key.get_ref();
        let known = NAMES.iter().find(|name| **name == key.replace('_', "-") && **name != "config");
        let Some(name) = known else { bail!("unknown setting '{key}'{}", suggestion(key)) };
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Integer(number) => number.to_string(),
            other => bail!("the setting '{key}' must be text or true/false, it is {}", other.type_str()),
        };
        layer.insert(name, text);
    }
    Ok(layer)
}

fn suggestion(key: &str) -> String {
    let distance = |name: &&&str| edits(&key.to_lowercase().replace('_', "-"), name);
    match NAMES.iter().filter(|name| **name != "config").min_by_key(distance) {
        Some(name) if distance(&name) <= 3 => format!("; did you mean '{name}'?"),
        _ => format!("; known settings: {}", NAMES[1..].join(", ")),
    }
}

/// Levenshtein distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_beats_the_environment_beats_the_file() {
        let layer =
            |pairs: &[(&'static str, &str)]| pairs.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
        let settings = Settings(vec![
            ("the command line", layer(&[("listen", "a")])),
            ("the environment", layer(&[("listen", "b"), ("durability", "b")])),
            ("the file", layer(&[("listen", "c"), ("durability", "c"), ("data", "c")])),
        ]);
        assert_eq!(settings.get("listen"), Some("a"));
        assert_eq!(settings.get("durability"), Some("b"));
        assert_eq!(settings.get("data"), Some("c"));
        assert_eq!(settings.get("key"), None);
    }

    #[test]
    fn choices_exclude_each_other_only_in_one_place() {
        let layer =
            |pairs: &[(&'static str, &str)]| pairs.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
        let settings =
            Settings(vec![("flags", layer(&[("memory", "true")])), ("file", layer(&[("data", "d")]))]);
        assert_eq!(settings.choice(&["data", "memory"]).unwrap(), Some(("memory", "true")));
        let settings = Settings(vec![("flags", layer(&[("memory", "true"), ("data", "d")]))]);
        assert!(settings.choice(&["data", "memory"]).unwrap_err().to_string().contains("exclude each other"));
        let settings = Settings(vec![("flags", layer(&[("memory", "false"), ("data", "d")]))]);
        assert_eq!(settings.choice(&["data", "memory"]).unwrap(), Some(("data", "d")));
    }

    #[test]
    fn unknown_keys_in_the_file_are_refused_with_a_suggestion() {
        let error = from_toml("lisen = \"x\"").unwrap_err().to_string();
        assert!(error.contains("'lisen'") && error.contains("did you mean 'listen'"), "{error}");
        let error = from_toml("completely_other = 1").unwrap_err().to_string();
        assert!(error.contains("known settings: ") && error.contains(" listen, "), "{error}");
        assert!(from_toml("config = \"x\"").is_err());
        assert!(from_toml("listen = [1]").is_err());
        assert!(from_toml("listen = ").is_err());
        let layer = from_toml("test_clock = true\nlisten = \"127.0.0.1:0\"").unwrap();
        assert_eq!(layer.get("test-clock").map(String::as_str), Some("true"));
    }

    #[test]
    fn environment_names_follow_the_flags() {
        let layer = from_environment(|name| (name == "BOLIDE_TEST_CLOCK").then(|| "1".to_owned()));
        assert_eq!(layer.len(), 1);
        assert!(Settings(vec![("environment", layer)]).flag("test-clock").unwrap());
    }
}
