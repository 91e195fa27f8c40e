//! Reads settings from the environment and from a TOML file, and reports unknown names.

use anyhow::{Result, bail};
use toml::de::{DeTable, DeValue};

use super::table::{Setting, TABLE};
use super::{Layer, Origin};

/// Reads the environment; returns remarks about unknown variables with Bolide's prefix.
///
/// They are not errors: Kubernetes gives every pod variables that begin with the name of each service, so that a
/// service called `bolide` would keep its own server from starting.
pub(crate) fn from_environment(variables: &[(String, String)]) -> (Layer, Vec<String>) {
    let (mut layer, mut remarks) = (Layer::new("the environment"), Vec::new());
    for (variable, text) in variables.iter().filter(|(variable, _)| variable.starts_with("BOLIDE_")) {
        let (text, origin) = (text.clone(), Origin::Variable(variable.clone()));
        if let Some(setting) = TABLE.iter().find(|setting| setting.variable() == *variable) {
            layer.put(setting.name, text, origin);
        } else if let Some(setting) = former(|setting| setting.former_variable().as_ref() == Some(variable)) {
            layer.put_former(setting.former_name().unwrap_or_default(), setting, text, origin);
        } else {
            remarks.push(unknown_variable(variable, for_files().map(Setting::variable)));
        }
    }
    (layer, remarks)
}

/// Returns the remark about an unknown variable.
pub(super) fn unknown_variable(variable: &str, known: impl Iterator<Item = String>) -> String {
    let hint = nearest(variable, known).map(|name| format!("; did you mean {name}?"));
    format!("the variable {variable} is not a setting and is ignored{}", hint.unwrap_or_default())
}

/// Reads a configuration file.
pub(crate) fn from_toml(path: &str, text: &str) -> Result<Layer> {
    let table = DeTable::parse(text)?;
    let mut layer = Layer::new("the configuration file");
    for (key, value) in table.get_ref() {
        let key = key.get_ref();
        let name = key.replace('_', "-");
        let known = TABLE.iter().find(|setting| setting.name == name && setting.is_for_files());
        let known = known.or_else(|| former(|setting| setting.former_name() == Some(&*name)));
        let Some(setting) = known else { bail!("unknown setting '{key}'{}", suggestion(key)) };
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Integer(number) => number.to_string(),
            other => {
                bail!("the setting '{key}' must be text, a number or true/false, not {}", other.type_str())
            }
        };
        let origin = Origin::File(path.to_owned());
        if setting.name == name {
            layer.put(setting.name, text, origin);
        } else {
            layer.put_former(&name, setting, text, origin);
        }
    }
    Ok(layer)
}

/// Returns the setting whose former name is accepted by `is_it`.
fn former(is_it: impl Fn(&Setting) -> bool) -> Option<&'static Setting> {
    TABLE.iter().find(|setting| setting.former_name().is_some() && is_it(setting))
}

fn suggestion(key: &str) -> String {
    let names = for_files().map(|setting| setting.name.to_owned());
    let meant = nearest(&key.to_lowercase().replace('_', "-"), names);
    if let Some(name) = meant {
        return format!("; did you mean '{name}'?");
    }
    let known = for_files().map(|setting| setting.name);
    format!("; known settings: {}", known.collect::<Vec<_>>().join(", "))
}

fn for_files() -> impl Iterator<Item = &'static Setting> {
    TABLE.iter().filter(|setting| setting.is_for_files())
}

/// Returns the most similar name, if it is similar enough.
fn nearest(given: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let (distance, name) = names.map(|name| (edits(given, &name), name)).min_by_key(|(edits, _)| *edits)?;
    (distance <= 3).then_some(name)
}

/// Returns the Levenshtein distance.
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
    use crate::settings::Settings;

    #[test]
    fn unknown_keys_in_the_file_are_refused_with_a_suggestion() {
        let error = |text: &str| from_toml("f", text).unwrap_err().to_string();
        let near = error("lisen = \"x\"");
        assert!(near.contains("'lisen'") && near.contains("did you mean 'listen'"), "{near}");
        let far = error("completely_other = 1");
        assert!(far.contains("known settings: ") && far.contains(" listen, "), "{far}");
        for bad in ["config = \"x\"", "listen = [1]", "listen = ", "[listen]\nx = 1"] {
            assert!(from_toml("f", bad).is_err(), "{bad}");
        }
        let layer = from_toml("f", "test_clock = true\nlisten = \"127.0.0.1:0\"").unwrap();
        let settings = Settings::new(vec![layer]).unwrap();
        assert!(settings.flag("test-clock"));
        assert_eq!(settings.origin("listen"), Origin::File("f".into()));
    }

    #[test]
    fn environment_names_follow_the_flags_and_unknown_ones_are_remarked_upon() {
        let variables =
            [("BOLIDE_TEST_CLOCK", "1"), ("BOLIDE_LISTN", "x"), ("HOME", "y"), ("BOLIDE_PORT_8081_TCP", "z")];
        let variables = variables.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let (layer, remarks) = from_environment(&variables);
        let settings = Settings::new(vec![layer]).unwrap();
        assert!(settings.flag("test-clock"));
        assert_eq!(settings.origin("test-clock"), Origin::Variable("BOLIDE_TEST_CLOCK".into()));
        assert_eq!(
            remarks,
            [
                "the variable BOLIDE_LISTN is not a setting and is ignored; did you mean BOLIDE_LISTEN?",
                "the variable BOLIDE_PORT_8081_TCP is not a setting and is ignored",
            ]
        );
    }
}
