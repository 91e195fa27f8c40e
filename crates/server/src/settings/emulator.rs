//! The environment variables of the Cosmos DB emulators, so that configurations written for them start Bolide as well.
//!
//! The older emulator's variables have a unique prefix and are always read. Those of the newer one (`PORT`,
//! `LOG_LEVEL`) are common names, and are read with the setting `emulator-env` only (decision 0017).

use anyhow::{Context, Result, bail};

use super::{Layer, Origin, Settings, sources, table};

/// A variable.
struct Name {
    variable: &'static str,
    meaning: Meaning,
}

/// The meaning of a variable.
enum Meaning {
    /// Equivalent to this setting.
    Setting(&'static str),
    /// Translated by this function; `Settings` are those of the weaker sources.
    Translated(fn(&str, &Settings) -> Result<Texts>),
    /// Windows-style switches, each translated by a row of [`SWITCHES`].
    Switches,
    /// No effect, for this reason.
    Nothing(&'static str),
}

/// Texts of settings, by name.
type Texts = Vec<(&'static str, String)>;

use Meaning::{Nothing, Setting, Switches, Translated};

const NO_PFX: &str = "PKCS #12 files are not read: give PEM files with 'tls-cert' and 'tls-key'";
const ONE_PORT: &str = "the explorer is at /_explorer/ on the port of the NoSQL API";
const BOTH: &str = "every port answers with and without TLS";
const NO_PARTITIONS: &str = "the number of containers is not limited by partitions";
const ALWAYS_MONGO: &str = "the MongoDB API is on unless 'mongo-listen' is off";
const NOTHING_SENT: &str = "nothing is sent anywhere; see GET /metrics";

/// The prefix of the older emulator's variables.
const CLASSIC_PREFIX: &str = "AZURE_COSMOS_EMULATOR_";

/// Variables of the older emulator.
const CLASSIC: &[Name] = &[
    Name { variable: "AZURE_COSMOS_EMULATOR_KEY", meaning: Setting("key") },
    Name { variable: "AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE", meaning: Translated(persistence) },
    Name { variable: "AZURE_COSMOS_EMULATOR_ARGS", meaning: Switches },
    Name { variable: "AZURE_COSMOS_EMULATOR_PARTITION_COUNT", meaning: Nothing(NO_PARTITIONS) },
    Name { variable: "AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE", meaning: Setting("tls-name") },
    Name { variable: "AZURE_COSMOS_EMULATOR_ENABLE_MONGODB_ENDPOINT", meaning: Nothing(ALWAYS_MONGO) },
    Name { variable: "AZURE_COSMOS_EMULATOR_CERTIFICATE", meaning: Nothing(NO_PFX) },
];

/// Variables of the newer emulator.
const NEXT: &[Name] = &[
    Name { variable: "PORT", meaning: Translated(port) },
    Name { variable: "KEY_FILE", meaning: Setting("key-file") },
    Name { variable: "DATA_PATH", meaning: Setting("data") },
    Name { variable: "LOG_LEVEL", meaning: Translated(log_level) },
    Name { variable: "PROTOCOL", meaning: Nothing(BOTH) },
    Name { variable: "ENABLE_EXPLORER", meaning: Translated(explorer) },
    Name { variable: "EXPLORER_PORT", meaning: Nothing(ONE_PORT) },
    Name { variable: "EXPLORER_PROTOCOL", meaning: Nothing(ONE_PORT) },
    Name { variable: "GATEWAY_PUBLIC_ENDPOINT", meaning: Setting("tls-name") },
    Name { variable: "CERT_PATH", meaning: Nothing(NO_PFX) },
    Name { variable: "CERT_SECRET", meaning: Nothing(NO_PFX) },
    Name { variable: "ENABLE_OTLP_EXPORTER", meaning: Nothing(NOTHING_SENT) },
    Name { variable: "ENABLE_TELEMETRY", meaning: Nothing(NOTHING_SENT) },
    Name { variable: "ENABLE_CONSOLE", meaning: Nothing("the log goes to standard error") },
];

/// Switches of the older emulator's command line that have an equivalent.
const SWITCHES: &[(&str, Meaning)] = &[
    ("port", Translated(port)),
    ("mongoport", Translated(mongo_port)),
    ("key", Setting("key")),
    ("keyfile", Setting("key-file")),
    ("datapath", Setting("data")),
    ("enableratelimiting", Translated(|_, _| Ok(vec![("enforce-throughput", "true".to_owned())]))),
    ("disableratelimiting", Translated(|_, _| Ok(vec![("enforce-throughput", "false".to_owned())]))),
    ("partitioncount", Nothing(NO_PARTITIONS)),
    ("enablemongodbendpoint", Nothing(ALWAYS_MONGO)),
    ("alternativenames", Setting("tls-name")),
    ("consistency", Translated(consistency)),
    ("noexplorer", Translated(|_, _| Ok(vec![("explorer", "off".to_owned())]))),
];

/// Reads the emulators' variables over weaker sources; returns remarks about those without effect.
pub(super) fn from_environment(
    variables: &[(String, String)],
    weaker: &Settings,
    reads_next: bool,
) -> Result<(Layer, Vec<String>)> {
    let names = CLASSIC.iter().chain(NEXT.iter().filter(|_| reads_next));
    let (mut layer, mut remarks) = (Layer::new("the environment of an emulator"), Vec::new());
    for Name { variable, meaning } in names {
        let Some((_, text)) = variables.iter().find(|(name, text)| name == variable && !text.is_empty())
        else {
            continue;
        };
        let mut reading = Reading { variable, weaker, layer: &mut layer, remarks: &mut remarks };
        reading.read(variable, meaning, text).with_context(|| format!("in the variable {variable}"))?;
    }
    remarks.extend(unknown(variables));
    Ok((layer, remarks))
}

/// Returns remarks about variables with the older emulator's prefix that are not known.
fn unknown(variables: &[(String, String)]) -> impl Iterator<Item = String> {
    let known = || CLASSIC.iter().map(|name| name.variable.to_owned());
    let names = variables.iter().map(|(name, _)| name).filter(|name| name.starts_with(CLASSIC_PREFIX));
    names
        .filter(move |name| known().all(|known| known != **name))
        .map(move |name| sources::unknown_variable(name, known()))
}

/// The state of reading variables into a layer.
struct Reading<'a> {
    variable: &'static str,
    weaker: &'a Settings,
    layer: &'a mut Layer,
    remarks: &'a mut Vec<String>,
}

impl Reading<'_> {
    fn read(&mut self, what: &str, meaning: &Meaning, text: &str) -> Result<()> {
        match meaning {
            Nothing(reason) => self.remarks.push(format!("{what} has no meaning here: {reason}")),
            Setting(name) => self.put(name, text.to_owned()),
            Translated(translate) => {
                for (name, text) in translate(text, self.weaker)? {
                    self.put(name, text);
                }
            }
            Switches => {
                for switch in text.split_whitespace() {
                    self.read_switch(switch)?;
                }
            }
        }
        Ok(())
    }

    /// Reads `/Name` or `/Name=text`; unknown switches are reported and ignored, as they may matter to the emulator
    /// alone.
    fn read_switch(&mut self, switch: &str) -> Result<()> {
        let (name, text) = switch.split_once('=').unwrap_or((switch, ""));
        let (what, bare) = (format!("{} of {}", name, self.variable), name.trim_start_matches(['/', '-']));
        let known = SWITCHES.iter().find(|(known, _)| bare.eq_ignore_ascii_case(known));
        match known {
            Some((_, meaning)) => self.read(&what, meaning, text),
            None => self.read(&what, &Nothing("it is not known"), text),
        }
    }

    fn put(&mut self, name: &'static str, text: String) {
        self.layer.put(name, text, Origin::Variable(self.variable.to_owned()));
    }
}

fn persistence(text: &str, _: &Settings) -> Result<Texts> {
    match table::parse_flag(text) {
        Some(true) => Ok(Vec::new()),
        Some(false) => Ok(vec![("memory", "true".to_owned())]),
        None => bail!("it must be true or false, not '{text}'"),
    }
}

fn consistency(text: &str, _: &Settings) -> Result<Texts> {
    let level = match text.to_ascii_lowercase().as_str() {
        "strong" => "strong",
        "boundedstaleness" => "bounded-staleness",
        "session" => "session",
        "consistentprefix" => "consistent-prefix",
        "eventual" => "eventual",
        _ => {
            bail!("it must be Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual, not '{text}'")
        }
    };
    Ok(vec![("default-consistency", level.to_owned())])
}

fn explorer(text: &str, _: &Settings) -> Result<Texts> {
    match table::parse_flag(text) {
        Some(on) => Ok(vec![("explorer", if on { "on" } else { "off" }.to_owned())]),
        None => bail!("it must be true or false, not '{text}'"),
    }
}

fn port(text: &str, weaker: &Settings) -> Result<Texts> {
    with_port("listen", text, weaker)
}

fn mongo_port(text: &str, weaker: &Settings) -> Result<Texts> {
    with_port("mongo-listen", text, weaker)
}

/// Returns the effective address with another port.
fn with_port(name: &'static str, text: &str, weaker: &Settings) -> Result<Texts> {
    let Ok(port) = text.trim().parse::<u16>() else { bail!("it must be a port, not '{text}'") };
    let host = weaker.always(name).rsplit_once(':').map_or("127.0.0.1", |(host, _)| host);
    Ok(vec![(name, format!("{host}:{port}"))])
}

fn log_level(text: &str, _: &Settings) -> Result<Texts> {
    let level = match text.to_ascii_lowercase().as_str() {
        "quiet" => "off",
        "error" => "error",
        "warn" | "warning" => "warn",
        "info" => "info",
        "debug" => "debug",
        "trace" => "trace",
        _ => bail!("it must be quiet, error, warn, info, debug or trace, not '{text}'"),
    };
    Ok(vec![("log", level.to_owned())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::tests::layer;

    fn read(
        variables: &[(&str, &str)],
        weaker: &[(&'static str, &str)],
        next: bool,
    ) -> (Settings, Vec<String>) {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let variables: Vec<_> = variables.iter().map(owned).collect();
        let weaker = Settings::new(vec![layer("the file", weaker)]).unwrap();
        let (layer, remarks) = from_environment(&variables, &weaker, next).unwrap();
        (Settings::new(vec![layer]).unwrap(), remarks)
    }

    #[test]
    fn names_with_a_meaning_become_settings() {
        for (variable, text, name, meant) in [
            ("AZURE_COSMOS_EMULATOR_KEY", "c2VjcmV0", "key", "c2VjcmV0"),
            ("AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE", "false", "memory", "true"),
            ("AZURE_COSMOS_EMULATOR_ARGS", "/Port=9000", "listen", "127.0.0.1:9000"),
            ("AZURE_COSMOS_EMULATOR_ARGS", "/x -mongoport=9001", "mongo-listen", "127.0.0.1:9001"),
            ("AZURE_COSMOS_EMULATOR_ARGS", "/EnableRateLimiting", "enforce-throughput", "true"),
            ("AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE", "10.0.0.7", "tls-name", "10.0.0.7"),
            ("GATEWAY_PUBLIC_ENDPOINT", "db", "tls-name", "db"),
            ("PORT", "9000", "listen", "127.0.0.1:9000"),
            ("KEY_FILE", "/run/key", "key-file", "/run/key"),
            ("DATA_PATH", "/data", "data", "/data"),
            ("LOG_LEVEL", "Quiet", "log", "off"),
            ("ENABLE_EXPLORER", "false", "explorer", "off"),
            ("ENABLE_EXPLORER", "true", "explorer", "on"),
            ("AZURE_COSMOS_EMULATOR_ARGS", "/NoExplorer", "explorer", "off"),
            ("AZURE_COSMOS_EMULATOR_ARGS", "/Consistency=Strong", "default-consistency", "strong"),
            (
                "AZURE_COSMOS_EMULATOR_ARGS",
                "/Consistency=BoundedStaleness",
                "default-consistency",
                "bounded-staleness",
            ),
        ] {
            let (settings, _) = read(&[(variable, text)], &[], true);
            assert_eq!(settings.given(name), Some(meant), "{variable}={text}");
            assert_eq!(settings.origin(name), Origin::Variable(variable.to_owned()));
        }
        let (settings, remarks) =
            read(&[("AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE", "true")], &[], false);
        assert!(!settings.flag("memory") && remarks.is_empty());
    }

    #[test]
    fn a_port_is_that_of_the_address_which_holds_otherwise() {
        let (settings, _) = read(&[("PORT", "9000")], &[("listen", "[::]:8081")], true);
        assert_eq!(settings.given("listen"), Some("[::]:9000"));
    }

    #[test]
    fn public_names_are_read_only_when_told() {
        let everybodys =
            [("PORT", "3000"), ("LOG_LEVEL", "trace"), ("PROTOCOL", "https"), ("DATA_PATH", "/x")];
        let (settings, remarks) = read(&everybodys, &[], false);
        assert!(["listen", "log", "data"].iter().all(|name| settings.given(name).is_none()));
        assert!(remarks.is_empty(), "{remarks:?}");
    }

    #[test]
    fn names_without_a_meaning_are_said_and_empty_ones_are_not_there() {
        let (_, remarks) = read(
            &[
                ("AZURE_COSMOS_EMULATOR_PARTITION_COUNT", "3"),
                ("AZURE_COSMOS_EMULATOR_ARGS", "/NoUI /NoFirewall"),
                ("CERT_SECRET", "hunter2"),
                ("EXPLORER_PORT", ""),
            ],
            &[],
            true,
        );
        assert_eq!(
            remarks,
            [
                "/NoUI of AZURE_COSMOS_EMULATOR_ARGS has no meaning here: it is not known",
                "/NoFirewall of AZURE_COSMOS_EMULATOR_ARGS has no meaning here: it is not known",
                &format!("AZURE_COSMOS_EMULATOR_PARTITION_COUNT has no meaning here: {NO_PARTITIONS}"),
                &format!("CERT_SECRET has no meaning here: {NO_PFX}"),
            ]
        );
    }

    #[test]
    fn names_that_look_like_the_emulators_and_are_not_known_are_said() {
        let odd = [("AZURE_COSMOS_EMULATOR_ARG", "/Port=1"), ("AZURE_COSMOS_EMULATOR_TELEPATHY", "on")];
        let (_, remarks) = read(&odd, &[], false);
        assert_eq!(
            remarks,
            [
                "the variable AZURE_COSMOS_EMULATOR_ARG is not a setting and is ignored; did you mean \
                 AZURE_COSMOS_EMULATOR_ARGS?",
                "the variable AZURE_COSMOS_EMULATOR_TELEPATHY is not a setting and is ignored",
            ]
        );
    }

    #[test]
    fn texts_that_mean_nothing_are_refused_with_the_variable() {
        let weaker = Settings::new(Vec::new()).unwrap();
        for (variable, text) in [
            ("PORT", "http"),
            ("LOG_LEVEL", "loud"),
            ("ENABLE_EXPLORER", "perhaps"),
            ("AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE", "maybe"),
            ("AZURE_COSMOS_EMULATOR_ARGS", "/Port"),
            ("AZURE_COSMOS_EMULATOR_ARGS", "/Consistency=Linearizable"),
        ] {
            let error =
                from_environment(&[(variable.to_owned(), text.to_owned())], &weaker, true).unwrap_err();
            assert!(format!("{error:#}").contains(variable), "{error:#}");
        }
    }

    #[test]
    fn the_documentation_lists_every_name() {
        let page = include_str!("../../../../docs/configuration.md");
        for Name { variable, .. } in CLASSIC.iter().chain(NEXT) {
            assert!(page.contains(&format!("`{variable}`")), "{variable}");
        }
    }
}
