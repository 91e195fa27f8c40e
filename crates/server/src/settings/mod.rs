//! Settings as checked texts from several places, the strongest first: command line, environment, the emulators'
//! environment, file, defaults.
//!
//! Every setting has one name: `--test-clock`, `BOLIDE_TEST_CLOCK` and `test-clock = true` are the same one. The
//! table says what each text must look like; what several of them mean together is decided in `config`.

mod emulator;
mod sources;
mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, bail};

pub(crate) use table::{Group, Kind, Setting, TABLE};

/// Where the text of a setting was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    CommandLine,
    /// The environment variable of this name.
    Variable(String),
    /// The file of this path.
    File(String),
    /// Nobody said anything.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::CommandLine => f.write_str("command line"),
            Origin::Variable(name) => write!(f, "environment {name}"),
            Origin::File(path) => write!(f, "file {}", path.escape_debug()),
            Origin::Default => f.write_str("default"),
        }
    }
}

/// What one place says.
#[derive(Debug)]
pub(crate) struct Layer {
    place: &'static str,
    texts: BTreeMap<&'static str, (String, Origin)>,
}

impl Layer {
    pub(crate) fn new(place: &'static str) -> Layer {
        Layer { place, texts: BTreeMap::new() }
    }

    pub(crate) fn put(&mut self, name: &'static str, text: String, origin: Origin) {
        self.texts.insert(name, (text, origin));
    }

    /// What the command line says.
    pub(crate) fn from_command_line(texts: impl IntoIterator<Item = (&'static str, String)>) -> Layer {
        let mut layer = Layer::new("the command line");
        for (name, text) in texts {
            layer.put(name, text, Origin::CommandLine);
        }
        layer
    }
}

/// All places together. What holds of each setting is of the kind that the table asks for.
#[derive(Debug)]
pub(crate) struct Settings {
    layers: Vec<Layer>,
    /// What the operator should be told about where the settings come from.
    remarks: Vec<String>,
}

impl Settings {
    /// The command line with the environment and the file that one of them names. What the environment says in the
    /// names of the emulators is weaker than in ours.
    pub(crate) fn load(command_line: Layer, variables: &[(String, String)]) -> Result<Settings> {
        let (environment, mut remarks) = sources::from_environment(variables);
        let mut layers = vec![command_line, environment];
        let named = layers.iter().find_map(|layer| layer.texts.get("config")).map(|(path, _)| path.clone());
        let file = named.map(|path| file(&path)).transpose()?;
        let reads_next = |layer: &Layer| layer.texts.get("emulator-env").map(|(text, _)| text.clone());
        let reads_next = layers.iter().chain(&file).find_map(reads_next);
        let weaker = Settings::new(file.into_iter().collect())?;
        let (emulator, meaningless) = emulator::from_environment(
            variables,
            &weaker,
            reads_next.is_some_and(|text| table::parse_flag(&text) == Some(true)),
        )?;
        layers.push(emulator);
        layers.extend(weaker.layers);
        remarks.extend(meaningless);
        Ok(Settings { remarks, ..Settings::new(layers)? })
    }

    /// These places, the strongest first.
    pub(crate) fn new(layers: Vec<Layer>) -> Result<Settings> {
        let settings = Settings { layers, remarks: Vec::new() };
        for setting in TABLE {
            let Some((text, origin)) = settings.strongest(setting.name) else { continue };
            if !setting.admits(text) {
                bail!("'{}' must be {}, it is '{text}' ({origin})", setting.name, setting.rule());
            }
        }
        Ok(settings)
    }

    /// What the operator should be told.
    pub(crate) fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// What somebody has said about a setting.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.strongest(name).map(|(text, _)| text)
    }

    /// The text that holds: what somebody has said, or the default if there is one.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.given(name).or(row(name).default)
    }

    /// The text of a setting that has a default.
    pub(crate) fn always(&self, name: &str) -> &str {
        self.text(name).expect("the table has a default for it")
    }

    /// Whether a flag is on.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.given(name).is_some_and(|text| table::parse_flag(text).expect("it was checked"))
    }

    /// A number that has a default.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.always(name).trim().parse().expect("it was checked")
    }

    /// A time that has a default.
    pub(crate) fn seconds(&self, name: &str) -> Duration {
        Duration::from_secs(self.number(name))
    }

    /// Where the text that holds was found.
    pub(crate) fn origin(&self, name: &str) -> Origin {
        self.strongest(name).map_or(Origin::Default, |(_, origin)| origin.clone())
    }

    /// The strongest place that says anything about one of these settings, which exclude each other there.
    pub(crate) fn one_of(&self, names: &[&'static str]) -> Result<Option<(&'static str, &str)>> {
        for layer in &self.layers {
            let set = |name: &&'static str| {
                let (text, _) = layer.texts.get(name)?;
                let is_off = row(name).kind == Kind::Flag && table::parse_flag(text) != Some(true);
                (!is_off).then_some((*name, text.as_str()))
            };
            let given: Vec<(&'static str, &str)> = names.iter().filter_map(set).collect();
            match given.as_slice() {
                [] => {}
                [one] => return Ok(Some(*one)),
                [(one, _), (two, _), ..] => {
                    bail!("'{one}' and '{two}' exclude each other, {} gives both", layer.place)
                }
            }
        }
        Ok(None)
    }

    fn strongest(&self, name: &str) -> Option<(&str, &Origin)> {
        let found = self.layers.iter().find_map(|layer| layer.texts.get(row(name).name));
        found.map(|(text, origin)| (text.as_str(), origin))
    }
}

fn file(path: &str) -> Result<Layer> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read the configuration '{path}'"))?;
    sources::from_toml(path, &text).with_context(|| format!("in the configuration '{path}'"))
}

fn row(name: &str) -> &'static Setting {
    table::find(name).unwrap_or_else(|| panic!("the table of settings has no '{name}'"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn layer(place: &'static str, pairs: &[(&'static str, &str)]) -> Layer {
        let mut layer = Layer::new(place);
        for (name, text) in pairs {
            layer.put(name, (*text).to_owned(), Origin::CommandLine);
        }
        layer
    }

    #[test]
    fn the_stronger_place_wins_and_defaults_come_last() {
        let settings = Settings::new(vec![
            layer("the command line", &[("listen", "a")]),
            layer("the environment", &[("listen", "b"), ("mongo-user", "b")]),
            layer("the file", &[("listen", "c"), ("mongo-user", "c"), ("data", "c")]),
        ])
        .unwrap();
        assert_eq!(settings.text("listen"), Some("a"));
        assert_eq!(settings.text("mongo-user"), Some("b"));
        assert_eq!(settings.text("data"), Some("c"));
        assert_eq!(settings.text("durability"), Some("sync"));
        assert_eq!(settings.given("durability"), None);
        assert_eq!(settings.origin("durability"), Origin::Default);
        assert_eq!(settings.text("key"), None);
    }

    #[test]
    fn the_emulators_names_stand_between_our_own_and_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "listen = \"[::1]:1\"\nemulator-env = true\nlog = \"error\"\n").unwrap();
        let path = file.path().to_str().unwrap();
        let load = |variables: &[(&str, &str)]| {
            let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
            let variables: Vec<_> = variables.iter().map(own).collect();
            Settings::load(Layer::from_command_line([("config", path.to_owned())]), &variables).unwrap()
        };
        let settings = load(&[("PORT", "2"), ("LOG_LEVEL", "info"), ("BOLIDE_LOG", "debug")]);
        assert_eq!(settings.given("listen"), Some("[::1]:2"));
        assert_eq!(settings.given("log"), Some("debug"));
        let settings = load(&[("PORT", "2"), ("BOLIDE_EMULATOR_ENV", "false")]);
        assert_eq!(settings.given("listen"), Some("[::1]:1"));
    }

    #[test]
    fn only_what_holds_must_be_right() {
        let wrong = || layer("the environment", &[("partitions", "many")]);
        let error = Settings::new(vec![wrong()]).unwrap_err().to_string();
        assert_eq!(error, "'partitions' must be a number from 1 to 200, it is 'many' (command line)");
        assert!(Settings::new(vec![layer("the command line", &[("partitions", "2")]), wrong()]).is_ok());
    }

    #[test]
    fn choices_exclude_each_other_only_in_one_place() {
        let one = |layers: Vec<Layer>| {
            let settings = Settings::new(layers).unwrap();
            settings
                .one_of(&["data", "memory"])
                .map(|found| found.map(|(name, text)| (name, text.to_owned())))
        };
        let found = one(vec![layer("flags", &[("memory", "true")]), layer("file", &[("data", "d")])]);
        assert_eq!(found.unwrap(), Some(("memory", "true".to_owned())));
        let found = one(vec![layer("flags", &[("memory", "true"), ("data", "d")])]);
        assert!(found.unwrap_err().to_string().contains("exclude each other"));
        let found = one(vec![layer("flags", &[("memory", "off"), ("data", "d")])]);
        assert_eq!(found.unwrap(), Some(("data", "d".to_owned())));
    }
}
