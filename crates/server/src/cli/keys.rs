//! `bolide keys`: lists the account keys of a running server, and generates new ones.

use std::fmt::Write;
use std::process::ExitCode;

use account::Kind;
use anyhow::{Context, Result};
use document::{Object, Value};

use crate::client::{Client, Endpoint};
use crate::settings::Settings;

const PATH: &str = "/_bolide/keys";

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// Generate a new key of this kind and print it; it is not shown again. The old one is refused from then on
    #[arg(long, value_name = "KIND", value_parser = Kind::ALL.map(Kind::name))]
    regenerate: Option<String>,
}

/// Lists the keys, or replaces one.
pub(crate) fn run(request: &Request, settings: &Settings) -> Result<ExitCode> {
    let mut client = Client::new(&Endpoint::from_settings(settings)?)?;
    match &request.regenerate {
        Some(kind) => {
            let mut body = Object::new();
            body.insert("regenerate", kind.as_str());
            let made = client.post_json(PATH, &Value::Object(body))?;
            let key = made.get("key").and_then(Value::as_str).context("the server returned no key")?;
            println!("{key}");
        }
        None => print!("{}", listed(&client.get_json(PATH)?)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats a line for each kind of key.
fn listed(keys: &Value) -> String {
    let mut text = format!("{:<19}{:<11}{:<24}FINGERPRINT\n", "KEY", "RIGHT", "ORIGIN");
    for kind in Kind::ALL {
        let member = |name: &str| keys.get(kind.name()).and_then(|key| key.get(name)).and_then(Value::as_str);
        let origin = match (member("origin"), member("setting")) {
            (Some(_), Some(setting)) => format!("setting {setting}"),
            (Some("wellKnown"), None) => "public".to_owned(),
            (Some(_), None) => "generated".to_owned(),
            (None, _) => "not set".to_owned(),
        };
        let (right, fingerprint) = (member("right").unwrap_or("-"), member("fingerprint").unwrap_or("-"));
        let _ = writeln!(text, "{:<19}{right:<11}{origin:<24}{fingerprint}", kind.name());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_line() {
        let keys = r#"{"primary":{"right":"readWrite","origin":"setting","setting":"key-file","fingerprint":"1c1185e0"},
            "secondary":{"right":"readWrite","origin":"made","setting":null,"fingerprint":"aabbccdd"},
            "primaryReadonly":null,"secondaryReadonly":null}"#;
        let text = listed(&document::parse_json(keys.as_bytes()).unwrap());
        let expected = "\
KEY                RIGHT      ORIGIN                  FINGERPRINT
primary            readWrite  setting key-file        1c1185e0
secondary          readWrite  generated               aabbccdd
primaryReadonly    -          not set                 -
secondaryReadonly  -          not set                 -
";
        assert_eq!(text, expected);
    }
}
