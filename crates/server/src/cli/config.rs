//! `bolide config`: the effective configuration as a TOML file, with the origin of each value.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;

use crate::config;
use crate::settings::{Group, Kind, Setting, Settings, TABLE};

/// The text shown in place of a secret.
const HIDDEN: &str = "<hidden>";

/// Arguments of the command: none.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {}

/// Prints the configuration, and then what is wrong with it.
pub(crate) fn run(_request: &Request, settings: &Settings) -> Result<ExitCode> {
    super::remark(settings);
    print!("{}", describe(settings));
    config::resolve(settings)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a file with the same settings, except for secrets. Settings without a value are comments.
fn describe(settings: &Settings) -> String {
    let mut text = String::new();
    for group in Group::ALL {
        let _ = writeln!(text, "{}# {}", if text.is_empty() { "" } else { "\n" }, group.title());
        for setting in TABLE.iter().filter(|setting| setting.group == group) {
            let _ = writeln!(text, "{}", line(setting, settings));
        }
    }
    text
}

fn line(setting: &Setting, settings: &Settings) -> String {
    let (name, origin) = (setting.name, settings.origin(setting.name));
    let value = match setting.kind {
        Kind::Flag => Some(settings.flag(name).to_string()),
        Kind::Number { .. } | Kind::Seconds => settings.text(name).map(|text| text.trim().to_owned()),
        Kind::Secret(_) => settings.text(name).map(|_| quoted(HIDDEN)),
        Kind::Text(_) | Kind::Choice(_) => settings.text(name).map(quoted),
    };
    match value {
        None => format!("# {name} is not set"),
        Some(value) if !setting.is_for_files() => format!("# {name} = {value}  # {origin}"),
        Some(value) => format!("{name} = {value}  # {origin}"),
    }
}

/// Formats a TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::tests::layer;

    #[test]
    fn what_is_printed_is_a_file_that_says_the_same() {
        let odd = "a \"b\" \\ \u{7} # ü\nx";
        let pairs = [("mongo-user", odd), ("memory", "on"), ("partitions", " 7 "), ("key", "c2VjcmV0")];
        let settings = Settings::new(vec![layer("the command line", &pairs)]).unwrap();
        let text = describe(&settings);
        assert!(!text.contains("c2VjcmV0"), "{text}");
        let table = toml::de::DeTable::parse(&text).unwrap();
        let value = |name: &str| table.get_ref().get(name).map(|value| value.get_ref().clone());
        let string = |name: &str| value(name).and_then(|value| value.as_str().map(str::to_owned));
        assert_eq!(string("mongo-user").as_deref(), Some(odd));
        assert_eq!(string("key").as_deref(), Some(HIDDEN));
        assert_eq!(string("data").as_deref(), Some("./bolide-data"));
        assert_eq!(value("memory").and_then(|value| value.as_bool()), Some(true));
        assert_eq!(
            value("partitions").map(|value| value.as_integer().unwrap().to_string()).as_deref(),
            Some("7")
        );
        assert!(text.contains("\ndurability = \"sync\"  # default\n"), "{text}");
        assert!(text.contains("\nmemory = true  # command line\n"), "{text}");
        assert!(text.contains("\n# key-file is not set\n"), "{text}");
    }
}
