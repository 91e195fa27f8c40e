//! What the settings mean: from texts to a configuration that cannot be wrong.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;
use nosql::MasterKey;
use storage::Durability;

use crate::settings::{self, Layer, Settings};

/// The key that every Cosmos emulator shares. Anybody knows it, so it is good for loopback only.
const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const DEFAULT_LISTEN: &str = "127.0.0.1:8081";
const PARTITIONS_MAX: u32 = 200;
const DEFAULT_DATA: &str = "./bolide-data";

/// A document database that speaks Azure Cosmos DB's protocols and keeps its time-to-live contract.
#[derive(Parser)]
#[command(name = "bolide", version, about, after_help = AFTER_HELP)]
struct Cli {
    /// `serve` is what happens without a command, too.
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    flags: Flags,
}

const AFTER_HELP: &str = "Every option can also be set in the environment (--test-clock is BOLIDE_TEST_CLOCK) or in the \
                          configuration file (test-clock = true). The command line wins, then the environment.";

const LISTEN_HELP: &str = "Address of the NoSQL API; port 0 takes a free one [default: 127.0.0.1:8081]";

#[derive(clap::Subcommand)]
enum Command {
    /// Run the server.
    Serve,
}

#[derive(clap::Args)]
struct Flags {
    /// Keep data in this directory [default: ./bolide-data].
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<String>,
    /// Keep data in memory only; it is gone when the server stops.
    #[arg(long, global = true)]
    memory: bool,
    #[arg(
        long,
        value_name = "URL",
        global = true,
        help = "Keep data in a PostgreSQL cluster (not supported yet)"
    )]
    storage: Option<String>,
    #[arg(long, value_name = "ADDRESS", global = true, help = LISTEN_HELP)]
    listen: Option<String>,
    #[arg(
        long,
        value_name = "ADDRESS",
        global = true,
        help = "Address of the MongoDB API (not supported yet)"
    )]
    mongo_listen: Option<String>,
    /// The account key, base64. On loopback the well-known emulator key is the default.
    #[arg(long, value_name = "KEY", global = true)]
    key: Option<String>,
    /// Read the account key from this file.
    #[arg(long, value_name = "FILE", global = true)]
    key_file: Option<String>,
    /// Let the admin API move the clock forward, for tests.
    #[arg(long, global = true)]
    test_clock: bool,
    /// Answer 429 beyond the provisioned throughput (not supported yet).
    #[arg(long, global = true)]
    enforce_throughput: bool,
    /// How far the wall clock may leap ahead while the server runs, before it is suspect [default: 3600].
    #[arg(long, value_name = "SECONDS", global = true)]
    max_clock_jump: Option<String>,
    /// How far past the last known time the wall clock may be at the start, before it is suspect
    /// [default: 2592000, thirty days].
    #[arg(long, value_name = "SECONDS", global = true)]
    max_start_gap: Option<String>,
    /// The fewest physical partitions of a new container; its throughput may ask for more [default: 1].
    #[arg(long, value_name = "COUNT", global = true)]
    partitions: Option<String>,
    /// When a write counts as done: `sync` on disk, `buffered` in the operating system [default: sync].
    #[arg(long, value_name = "MODE", global = true)]
    durability: Option<String>,
    /// Read settings from this TOML file.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<String>,
}

impl Flags {
    fn layer(self) -> Layer {
        let on = |flag: bool| flag.then(|| "true".to_owned());
        let pairs = [
            ("config", self.config),
            ("data", self.data),
            ("durability", self.durability),
            ("enforce-throughput", on(self.enforce_throughput)),
            ("key", self.key),
            ("key-file", self.key_file),
            ("listen", self.listen),
            ("max-clock-jump", self.max_clock_jump),
            ("max-start-gap", self.max_start_gap),
            ("memory", on(self.memory)),
            ("mongo-listen", self.mongo_listen),
            ("partitions", self.partitions),
            ("storage", self.storage),
            ("test-clock", on(self.test_clock)),
        ];
        pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// Where data lives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a directory.
    Directory(PathBuf),
    /// Nowhere but here.
    Memory,
}

/// The account key, as far as it may be shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ShownKey {
    /// The emulator's, which is no secret.
    Public(&'static str),
    /// Any other, and the setting that it came from.
    Secret(String),
}

/// Everything the server needs to know.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) place: Place,
    pub(crate) listen: SocketAddr,
    pub(crate) key: MasterKey,
    /// What is said about the key when the server starts.
    pub(crate) shown_key: ShownKey,
    pub(crate) test_clock: bool,
    /// The store's own limit if not given (T34).
    pub(crate) max_clock_jump: Option<Duration>,
    /// The store's own limit if not given (T34).
    pub(crate) max_start_gap: Option<Duration>,
    pub(crate) durability: Durability,
    /// The fewest physical partitions of a new container.
    pub(crate) partitions: u32,
}

/// Why there is no configuration.
pub(crate) enum Exit {
    /// Help or version was shown, or the command line is wrong and clap has said so.
    Help(ExitCode),
    /// A setting is wrong.
    Wrong(anyhow::Error),
}

/// The configuration of this process.
pub(crate) fn load() -> Result<Config, Exit> {
    let cli = Cli::try_parse().map_err(|error| {
        let _ = error.print();
        Exit::Help(if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS })
    })?;
    let (None | Some(Command::Serve)) = cli.command;
    let environment = settings::from_environment(|name| std::env::var(name).ok());
    read(cli.flags.layer(), environment).map_err(Exit::Wrong)
}

fn read(flags: Layer, environment: Layer) -> Result<Config> {
    let mut settings = Settings(vec![("the command line", flags), ("the environment", environment)]);
    if let Some(path) = settings.get("config") {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the configuration '{path}'"))?;
        let layer = settings::from_toml(&text).with_context(|| format!("in the configuration '{path}'"))?;
        settings.0.push(("the configuration file", layer));
    }
    resolve(&settings)
}

fn resolve(settings: &Settings) -> Result<Config> {
    refuse_what_is_missing(settings)?;
    let place = match settings.choice(&["data", "memory"])? {
        Some(("memory", _)) if settings.flag("memory")? => Place::Memory,
        Some(("data", directory)) => Place::Directory(directory.into()),
        _ => Place::Directory(DEFAULT_DATA.into()),
    };
    let listen = address(settings.get("listen").unwrap_or(DEFAULT_LISTEN))?;
    let (key, shown_key) = key(settings, listen)?;
    let durability = match settings.get("durability").unwrap_or("sync") {
        "sync" => Durability::Sync,
        "buffered" => Durability::Buffered,
        other => bail!("'durability' must be sync or buffered, it is '{other}'"),
    };
    Ok(Config {
        place,
        listen,
        key,
        shown_key,
        test_clock: settings.flag("test-clock")?,
        max_clock_jump: settings.seconds("max-clock-jump")?,
        max_start_gap: settings.seconds("max-start-gap")?,
        durability,
        partitions: settings.count("partitions", PARTITIONS_MAX)?.unwrap_or(1),
    })
}

fn refuse_what_is_missing(settings: &Settings) -> Result<()> {
    if let Some(url) = settings.get("storage") {
        bail!(
            "'storage' ({}) is not supported yet: use 'data' or 'memory'",
            url.split(':').next().unwrap_or("")
        );
    }
    if settings.get("mongo-listen").is_some() {
        bail!("'mongo-listen' is not supported yet: the MongoDB API is to come");
    }
    if settings.flag("enforce-throughput")? {
        bail!("'enforce-throughput' is not supported yet: throughput is stored and shown, not enforced");
    }
    Ok(())
}

fn address(text: &str) -> Result<SocketAddr> {
    let mut found = text.to_socket_addrs().with_context(|| {
        format!("'listen' must be an address and a port such as {DEFAULT_LISTEN}, it is '{text}'")
    })?;
    found.next().ok_or_else(|| anyhow!("'listen' names no address: '{text}'"))
}

fn key(settings: &Settings, listen: SocketAddr) -> Result<(MasterKey, ShownKey)> {
    let loopback = listen.ip().is_loopback();
    let (text, source) = match settings.choice(&["key", "key-file"])? {
        Some(("key-file", path)) => {
            let text = std::fs::read_to_string(path);
            (
                text.with_context(|| format!("cannot read the key file '{path}'"))?,
                format!("the file '{path}'"),
            )
        }
        Some((_, key)) => (key.to_owned(), "the setting 'key'".to_owned()),
        None if loopback => (EMULATOR_KEY.to_owned(), String::new()),
        None => bail!("listening on {listen}, which others can reach, needs a key: give 'key' or 'key-file'"),
    };
    let text = text.trim();
    let is_public = text == EMULATOR_KEY;
    if is_public && !loopback {
        bail!(
            "everybody knows the emulator's key, so it is refused on {listen}: give another 'key' or 'key-file'"
        );
    }
    let shown = if is_public { ShownKey::Public(EMULATOR_KEY) } else { ShownKey::Secret(source) };
    Ok((MasterKey::parse(text)?, shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&'static str, &str)]) -> Result<Config> {
        let layer = pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        resolve(&Settings(vec![("the command line", layer)]))
    }

    fn refusal(pairs: &[(&'static str, &str)]) -> String {
        format!("{:#}", config(pairs).unwrap_err())
    }

    #[test]
    fn nothing_given_is_a_safe_local_server() {
        let config = config(&[]).unwrap();
        assert_eq!(config.place, Place::Directory(DEFAULT_DATA.into()));
        assert_eq!(config.listen.to_string(), DEFAULT_LISTEN);
        assert_eq!(config.shown_key, ShownKey::Public(EMULATOR_KEY));
        assert_eq!((config.max_clock_jump, config.max_start_gap), (None, None));
        assert_eq!(config.durability, Durability::Sync);
        assert!(!config.test_clock);
    }

    #[test]
    fn the_emulator_key_stays_on_loopback() {
        assert!(refusal(&[("listen", "0.0.0.0:8081")]).contains("needs a key"));
        assert!(refusal(&[("listen", "0.0.0.0:8081"), ("key", EMULATOR_KEY)]).contains("refused"));
        assert!(config(&[("listen", "0.0.0.0:8081"), ("key", "c2VjcmV0")]).is_ok());
        assert!(config(&[("listen", "[::1]:0")]).is_ok());
    }

    #[test]
    fn only_the_emulator_key_is_shown() {
        let shown = |key| config(&[("key", key)]).unwrap().shown_key;
        assert_eq!(shown(EMULATOR_KEY), ShownKey::Public(EMULATOR_KEY));
        assert_eq!(shown("c2VjcmV0"), ShownKey::Secret("the setting 'key'".to_owned()));
    }

    #[test]
    fn the_limits_of_the_guarded_clock_are_seconds_t34() {
        let config = config(&[("max-clock-jump", "60"), ("max-start-gap", "86400")]).unwrap();
        assert_eq!(config.max_clock_jump, Some(Duration::from_mins(1)));
        assert_eq!(config.max_start_gap, Some(Duration::from_hours(24)));
    }

    #[test]
    fn wrong_settings_are_named() {
        assert!(refusal(&[("listen", "nonsense")]).contains("'listen'"));
        assert!(refusal(&[("durability", "maybe")]).contains("sync or buffered"));
        for bad in ["0", "-1", "1h", "1.5", "99999999999", ""] {
            assert!(refusal(&[("max-clock-jump", bad)]).contains("'max-clock-jump'"), "{bad}");
            assert!(refusal(&[("max-start-gap", bad)]).contains("'max-start-gap'"), "{bad}");
        }
        for bad in ["0", "-1", "201", "many", ""] {
            assert!(refusal(&[("partitions", bad)]).contains("from 1 to 200"), "{bad}");
        }
        assert!(refusal(&[("key", "!!")]).contains("base64"));
        assert!(refusal(&[("key", "c2VjcmV0"), ("key-file", "f")]).contains("exclude"));
        assert!(refusal(&[("memory", "perhaps")]).contains("'memory'"));
        assert!(refusal(&[("storage", "postgres://u:secret@h")]).contains("not supported yet"));
        assert!(!refusal(&[("storage", "postgres://u:secret@h")]).contains("secret"));
        assert!(refusal(&[("mongo-listen", "127.0.0.1:0")]).contains("not supported yet"));
        assert!(refusal(&[("enforce-throughput", "true")]).contains("not supported yet"));
    }
}
