//! Settings as validated texts from several sources, the strongest first: command line, environment, the emulators'
//! environment, file, defaults.
//!
//! Every setting has one name: `--test-clock`, `BOLIDE_TEST_CLOCK` and `test-clock = true` are the same. The table
//! validates each text; `config` resolves how several of them combine.

mod emulator;
mod sources;
mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, bail};

pub(crate) use table::{Group, Kind, Setting, TABLE};

/// The source of a setting's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    CommandLine,
    /// The environment variable of this name.
    Variable(String),
    /// The file of this path.
    File(String),
    /// Not set.
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

/// The settings of one source.
#[derive(Debug)]
pub(crate) struct Layer {
    source: &'static str,
    /// Remarks about former names in it.
    remarks: Vec<String>,
    texts: BTreeMap<&'static str, (String, Origin)>,
}

impl Layer {
    pub(crate) fn new(source: &'static str) -> Layer {
        Layer { source, remarks: Vec::new(), texts: BTreeMap::new() }
    }

    pub(crate) fn put(&mut self, name: &'static str, text: String, origin: Origin) {
        self.texts.insert(name, (text, origin));
    }

    /// Sets a setting by its former name, unless its current one is set, too.
    pub(crate) fn put_former(&mut self, former: &str, setting: &Setting, text: String, origin: Origin) {
        self.remarks.push(format!("the setting '{former}' is now called '{}'", setting.name));
        self.texts.entry(setting.name).or_insert((text, origin));
    }

    /// Creates the layer of the command line.
    pub(crate) fn from_command_line(texts: impl IntoIterator<Item = (&'static str, String)>) -> Layer {
        let mut layer = Layer::new("the command line");
        for (name, text) in texts {
            layer.put(name, text, Origin::CommandLine);
        }
        layer
    }
}

/// The settings of all sources. The effective text of each setting is valid for its kind.
#[derive(Debug)]
pub(crate) struct Settings {
    layers: Vec<Layer>,
    /// Remarks for the operator about the sources.
    remarks: Vec<String>,
}

impl Settings {
    /// Loads the command line, the environment, and the file that one of them names. The emulators' variables are
    /// weaker than Bolide's own.
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
        remarks.extend(layers.iter().flat_map(|layer| layer.remarks.iter().cloned()));
        Ok(Settings { remarks, ..Settings::new(layers)? })
    }

    /// Combines these layers, the strongest first.
    pub(crate) fn new(layers: Vec<Layer>) -> Result<Settings> {
        let settings = Settings { layers, remarks: Vec::new() };
        for setting in TABLE {
            let Some((text, origin)) = settings.strongest(setting.name) else { continue };
            if !setting.admits(text) {
                bail!("'{}' must be {}, not '{text}' ({origin})", setting.name, setting.rule());
            }
        }
        Ok(settings)
    }

    /// Returns remarks for the operator.
    pub(crate) fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Returns the text of a setting, if it is set.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.strongest(name).map(|(text, _)| text)
    }

    /// Returns the effective text: the text set, or the default if there is one.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.given(name).or(row(name).default)
    }

    /// Returns the text of a setting that has a default.
    pub(crate) fn always(&self, name: &str) -> &str {
        self.text(name).expect("the table has a default for it")
    }

    /// Returns whether a flag is on.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.given(name).is_some_and(|text| table::parse_flag(text).expect("it was checked"))
    }

    /// Returns a number that has a default.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.always(name).trim().parse().expect("it was checked")
    }

    /// Returns a duration that has a default.
    pub(crate) fn seconds(&self, name: &str) -> Duration {
        Duration::from_secs(self.number(name))
    }

    /// Returns the source of the effective text.
    pub(crate) fn origin(&self, name: &str) -> Origin {
        self.strongest(name).map_or(Origin::Default, |(_, origin)| origin.clone())
    }

    /// Returns the setting set by the strongest source, of several that exclude each other there.
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
                    bail!("'{one}' and '{two}' exclude each other, {} gives both", layer.source)
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

    pub(crate) fn layer(source: &'static str, pairs: &[(&'static str, &str)]) -> Layer {
        let mut layer = Layer::new(source);
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
        assert_eq!(error, "'partitions' must be a number from 1 to 200, not 'many' (command line)");
        assert!(Settings::new(vec![layer("the command line", &[("partitions", "2")]), wrong()]).is_ok());
    }

    #[test]
    fn a_former_name_is_accepted_from_every_source_and_the_current_one_is_stronger() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "max-strangers = 3\n").unwrap();
        let path = file.path().to_str().unwrap();
        let load = |variables: &[(&str, &str)]| {
            let variables: Vec<_> =
                variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
            Settings::load(Layer::from_command_line([("config", path.to_owned())]), &variables).unwrap()
        };
        let number = |settings: &Settings| settings.number("max-unauthenticated-connections");
        let settings = load(&[]);
        assert_eq!(number(&settings), 3);
        let remark = "the setting 'max-strangers' is now called 'max-unauthenticated-connections'";
        assert_eq!(settings.remarks(), [remark]);
        assert_eq!(number(&load(&[("BOLIDE_MAX_STRANGERS", "4")])), 4);
        let both = [("BOLIDE_MAX_UNAUTHENTICATED_CONNECTIONS", "5"), ("BOLIDE_MAX_STRANGERS", "4")];
        assert_eq!(number(&load(&both)), 5);
        assert_eq!(number(&load(&[both[1], both[0]])), 5);
    }

    #[test]
    fn choices_exclude_each_other_only_in_one_source() {
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
