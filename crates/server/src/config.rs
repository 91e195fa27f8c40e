//! What the settings mean: from texts to a configuration that cannot be wrong.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;
use engine::Burst;
use mongo::{Account, Authentication, Profile};
use nosql::MasterKey;
use storage::Durability;

use crate::settings::{self, Layer, Settings};
use crate::verify_log;

/// The key that every Cosmos emulator shares. Anybody knows it, so it is good for loopback only.
const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const DEFAULT_LISTEN: &str = "127.0.0.1:8081";
const DEFAULT_MONGO_LISTEN: &str = "127.0.0.1:10255";
const DEFAULT_MONGO_USER: &str = "bolide";
/// The name of the replica set in every connection string of Cosmos DB.
const REPLICA_SET: &str = "globaldb";
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

const MONGO_LISTEN_HELP: &str = "Address of the MongoDB API, or 'off'; port 0 takes a free one [default: 127.0.0.1:10255; a \
                                 free port if 'listen' has port 0]";
const MONGO_AUTH_HELP: &str =
    "Require authentication on the MongoDB API also on loopback [default: when a key is given]";
const MONGO_PROFILE_HELP: &str =
    "What the MongoDB API says it is: replica-set, standalone or sharded [default: replica-set]";
const MONGO_TEST_HELP: &str = "Offer the commands of MongoDB's test suites, fail points above all";
const TLS_CERT_HELP: &str = "The certificate for TLS, PEM, with its chain [default: a self-signed one, made at the first start, in the data directory]";
const LISTEN_HELP: &str = "Address of the NoSQL API; port 0 takes a free one [default: 127.0.0.1:8081]";

#[derive(clap::Subcommand)]
enum Command {
    /// Run the server.
    Serve,
    /// Verify a deletion record: an exported one, or those of a data directory that is named with --data.
    VerifyLog(verify_log::Request),
}

/// What this process is to do.
pub(crate) enum Task {
    /// Run the server.
    Serve(Box<Config>),
    /// Verify a deletion record, perhaps with the help of a data directory.
    VerifyLog(verify_log::Request, Option<Box<Config>>),
}

#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "a flag of the command line is on or off")]
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
    #[arg(long, value_name = "ADDRESS", global = true, help = MONGO_LISTEN_HELP)]
    mongo_listen: Option<String>,
    /// The host and port under which MongoDB clients reach this server [default: the address they reached].
    #[arg(long, value_name = "HOST:PORT", global = true)]
    mongo_advertise: Option<String>,
    #[arg(long, value_name = "PROFILE", global = true, help = MONGO_PROFILE_HELP)]
    mongo_profile: Option<String>,
    /// The MongoDB user whose password is the account key [default: bolide].
    #[arg(long, value_name = "NAME", global = true)]
    mongo_user: Option<String>,
    #[arg(long, global = true, help = MONGO_AUTH_HELP)]
    mongo_auth: bool,
    #[arg(long, global = true, help = MONGO_TEST_HELP)]
    mongo_test_commands: bool,
    /// The account key, base64. On loopback the well-known emulator key is the default.
    #[arg(long, value_name = "KEY", global = true)]
    key: Option<String>,
    /// Read the account key from this file.
    #[arg(long, value_name = "FILE", global = true)]
    key_file: Option<String>,
    #[arg(long, value_name = "FILE", global = true, help = TLS_CERT_HELP)]
    tls_cert: Option<String>,
    /// The private key of that certificate, PEM.
    #[arg(long, value_name = "FILE", global = true)]
    tls_key: Option<String>,
    /// Let containers archive what expires before it is purged, in directories below this one [default: none].
    #[arg(long, value_name = "DIR", global = true)]
    archive_root: Option<String>,
    /// Let the admin API move the clock forward, for tests.
    #[arg(long, global = true)]
    test_clock: bool,
    /// Refuse requests beyond the provisioned throughput: 429 on the NoSQL API, error 16500 on the MongoDB API.
    #[arg(long, global = true)]
    enforce_throughput: bool,
    /// With it, keep up to five minutes of unused throughput for bursts of up to 3000 units a second.
    #[arg(long, global = true)]
    burst_capacity: bool,
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
            ("archive-root", self.archive_root),
            ("burst-capacity", on(self.burst_capacity)),
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
            ("mongo-advertise", self.mongo_advertise),
            ("mongo-auth", on(self.mongo_auth)),
            ("mongo-listen", self.mongo_listen),
            ("mongo-profile", self.mongo_profile),
            ("mongo-test-commands", on(self.mongo_test_commands)),
            ("mongo-user", self.mongo_user),
            ("partitions", self.partitions),
            ("storage", self.storage),
            ("test-clock", on(self.test_clock)),
            ("tls-cert", self.tls_cert),
            ("tls-key", self.tls_key),
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

/// The MongoDB API.
#[derive(Debug)]
pub(crate) struct Mongo {
    pub(crate) listen: SocketAddr,
    pub(crate) advertise: Option<String>,
    pub(crate) profile: Profile,
    pub(crate) authentication: Authentication,
    pub(crate) account: Account,
    pub(crate) test_commands: bool,
}

/// Where the server's certificate comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Certificate {
    /// From the operator's files.
    Given { certificate: PathBuf, key: PathBuf },
    /// Self-signed, made at the first start.
    Own,
}

/// Everything the server needs to know.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) place: Place,
    pub(crate) listen: SocketAddr,
    /// The MongoDB API, unless it is off.
    pub(crate) mongo: Option<Mongo>,
    pub(crate) key: MasterKey,
    /// What is said about the key when the server starts.
    pub(crate) shown_key: ShownKey,
    pub(crate) certificate: Certificate,
    /// Where archives lie, if there may be any (T32).
    pub(crate) archive_root: Option<PathBuf>,
    pub(crate) test_clock: bool,
    /// The store's own limit if not given (T34).
    pub(crate) max_clock_jump: Option<Duration>,
    /// The store's own limit if not given (T34).
    pub(crate) max_start_gap: Option<Duration>,
    pub(crate) durability: Durability,
    /// The fewest physical partitions of a new container.
    pub(crate) partitions: u32,
    /// Whether requests beyond the provisioned throughput are refused, and how bursts are dealt with.
    pub(crate) enforce_throughput: Option<Burst>,
}

/// Why there is no configuration.
pub(crate) enum Exit {
    /// Help or version was shown, or the command line is wrong and clap has said so.
    Help(ExitCode),
    /// A setting is wrong.
    Wrong(anyhow::Error),
}

/// What this process is to do, and with which configuration.
pub(crate) fn load() -> Result<Task, Exit> {
    let cli = Cli::try_parse().map_err(|error| {
        let _ = error.print();
        Exit::Help(if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS })
    })?;
    let environment = settings::from_environment(|name| std::env::var(name).ok());
    let names_data = cli.flags.data.is_some();
    let config = || read(cli.flags.layer(), environment).map(Box::new).map_err(Exit::Wrong);
    match cli.command {
        None | Some(Command::Serve) => Ok(Task::Serve(config()?)),
        Some(Command::VerifyLog(request)) => {
            let config = names_data.then(config).transpose()?;
            Ok(Task::VerifyLog(request, config))
        }
    }
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
    let listen = address("listen", settings.get("listen").unwrap_or(DEFAULT_LISTEN))?;
    let mongo_listen = mongo_listen(settings, listen)?;
    let text = key_text(settings, &[Some(listen), mongo_listen])?;
    let mongo = mongo_listen.map(|listen| mongo(settings, listen, &text)).transpose()?;
    let (key, shown_key) = (MasterKey::parse(&text.key)?, text.shown());
    let durability = match settings.get("durability").unwrap_or("sync") {
        "sync" => Durability::Sync,
        "buffered" => Durability::Buffered,
        other => bail!("'durability' must be sync or buffered, it is '{other}'"),
    };
    Ok(Config {
        place,
        listen,
        mongo,
        key,
        shown_key,
        certificate: certificate(settings)?,
        archive_root: archive_root(settings)?,
        test_clock: settings.flag("test-clock")?,
        max_clock_jump: settings.seconds("max-clock-jump")?,
        max_start_gap: settings.seconds("max-start-gap")?,
        durability,
        partitions: settings.count("partitions", PARTITIONS_MAX)?.unwrap_or(1),
        enforce_throughput: enforce_throughput(settings)?,
    })
}

fn refuse_what_is_missing(settings: &Settings) -> Result<()> {
    if let Some(url) = settings.get("storage") {
        bail!(
            "'storage' ({}) is not supported yet: use 'data' or 'memory'",
            url.split(':').next().unwrap_or("")
        );
    }
    Ok(())
}

fn enforce_throughput(settings: &Settings) -> Result<Option<Burst>> {
    match (settings.flag("enforce-throughput")?, settings.flag("burst-capacity")?) {
        (false, true) => bail!("'burst-capacity' needs 'enforce-throughput'"),
        (false, false) => Ok(None),
        (true, burst) => Ok(Some(if burst { Burst::On } else { Burst::Off })),
    }
}

fn archive_root(settings: &Settings) -> Result<Option<PathBuf>> {
    match settings.get("archive-root") {
        Some("") => bail!("'archive-root' must name a directory"),
        root => Ok(root.map(PathBuf::from)),
    }
}

fn certificate(settings: &Settings) -> Result<Certificate> {
    match (settings.get("tls-cert"), settings.get("tls-key")) {
        (Some(certificate), Some(key)) => {
            Ok(Certificate::Given { certificate: certificate.into(), key: key.into() })
        }
        (None, None) => Ok(Certificate::Own),
        _ => bail!("'tls-cert' and 'tls-key' need each other"),
    }
}

fn address(name: &str, text: &str) -> Result<SocketAddr> {
    let mut found = text.to_socket_addrs().with_context(|| {
        format!("'{name}' must be an address and a port such as {DEFAULT_LISTEN}, it is '{text}'")
    })?;
    found.next().ok_or_else(|| anyhow!("'{name}' names no address: '{text}'"))
}

/// Where the MongoDB API listens; whoever asks for any free port gets one here, too.
fn mongo_listen(settings: &Settings, listen: SocketAddr) -> Result<Option<SocketAddr>> {
    match settings.get("mongo-listen") {
        Some("off") => Ok(None),
        Some(text) => address("mongo-listen", text).map(Some),
        None => {
            let mut default = address("mongo-listen", DEFAULT_MONGO_LISTEN)?;
            if listen.port() == 0 {
                default.set_port(0);
            }
            Ok(Some(default))
        }
    }
}

/// On loopback with the key that everybody knows, a password would protect nothing, and tools connect without one.
fn mongo(settings: &Settings, listen: SocketAddr, text: &KeyText) -> Result<Mongo> {
    let required = settings.flag("mongo-auth")? || !text.is_public() || !listen.ip().is_loopback();
    let profile = match settings.get("mongo-profile").unwrap_or("replica-set") {
        "replica-set" => Profile::ReplicaSet { name: REPLICA_SET.to_owned() },
        "standalone" => Profile::Standalone,
        "sharded" => Profile::Sharded,
        other => bail!("'mongo-profile' must be replica-set, standalone or sharded, it is '{other}'"),
    };
    let advertise = settings.get("mongo-advertise").map(str::to_owned);
    if let Some(wrong) = advertise.as_deref().filter(|text| !is_host_and_port(text)) {
        bail!("'mongo-advertise' must be a host and a port such as db.example.org:10255, it is '{wrong}'");
    }
    let user = settings.get("mongo-user").unwrap_or(DEFAULT_MONGO_USER);
    if user.is_empty() {
        bail!("'mongo-user' must not be empty");
    }
    Ok(Mongo {
        listen,
        advertise,
        profile,
        authentication: if required { Authentication::Required } else { Authentication::Optional },
        account: Account { user: user.to_owned(), password: text.key.clone() },
        test_commands: settings.flag("mongo-test-commands")?,
    })
}

fn is_host_and_port(text: &str) -> bool {
    text.rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// The account key as text, and where it came from.
struct KeyText {
    key: String,
    source: String,
}

impl KeyText {
    fn is_public(&self) -> bool {
        self.key == EMULATOR_KEY
    }

    fn shown(&self) -> ShownKey {
        if self.is_public() { ShownKey::Public(EMULATOR_KEY) } else { ShownKey::Secret(self.source.clone()) }
    }
}

fn key_text(settings: &Settings, listen: &[Option<SocketAddr>]) -> Result<KeyText> {
    let reachable = listen.iter().flatten().find(|address| !address.ip().is_loopback());
    let (text, source) = match (settings.choice(&["key", "key-file"])?, reachable) {
        (Some(("key-file", path)), _) => {
            let text = std::fs::read_to_string(path);
            (
                text.with_context(|| format!("cannot read the key file '{path}'"))?,
                format!("the file '{path}'"),
            )
        }
        (Some((_, key)), _) => (key.to_owned(), "the setting 'key'".to_owned()),
        (None, None) => (EMULATOR_KEY.to_owned(), String::new()),
        (None, Some(listen)) => {
            bail!("listening on {listen}, which others can reach, needs a key: give 'key' or 'key-file'")
        }
    };
    let text = KeyText { key: text.trim().to_owned(), source };
    if let Some(listen) = reachable.filter(|_| text.is_public()) {
        bail!(
            "everybody knows the emulator's key, so it is refused on {listen}: give another 'key' or 'key-file'"
        );
    }
    Ok(text)
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
    fn the_mongodb_api_asks_for_a_password_unless_everybody_knows_it() {
        let mongo = |pairs: &[(&'static str, &str)]| config(pairs).unwrap().mongo.unwrap();
        let local = mongo(&[]);
        assert_eq!(local.listen.to_string(), DEFAULT_MONGO_LISTEN);
        assert_eq!(local.authentication, Authentication::Optional);
        assert_eq!((local.account.user.as_str(), local.account.password.as_str()), ("bolide", EMULATOR_KEY));
        assert_eq!(local.profile, Profile::ReplicaSet { name: "globaldb".into() });
        assert_eq!(mongo(&[("listen", "127.0.0.1:0")]).listen.port(), 0);
        for required in [("mongo-auth", "true"), ("key", "c2VjcmV0")] {
            assert_eq!(mongo(&[required]).authentication, Authentication::Required);
        }
        let open = [("key", "c2VjcmV0"), ("mongo-listen", "0.0.0.0:1")];
        assert_eq!(mongo(&open).authentication, Authentication::Required);
        assert!(refusal(&[("mongo-listen", "0.0.0.0:10255")]).contains("needs a key"));
        assert!(config(&[("mongo-listen", "off")]).unwrap().mongo.is_none());
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
        assert!(refusal(&[("mongo-listen", "nonsense")]).contains("'mongo-listen'"));
        assert!(refusal(&[("mongo-profile", "cluster")]).contains("'mongo-profile'"));
        assert!(refusal(&[("mongo-advertise", "host")]).contains("'mongo-advertise'"));
        assert!(refusal(&[("tls-cert", "c.pem")]).contains("need each other"));
        assert!(refusal(&[("archive-root", "")]).contains("'archive-root'"));
        assert!(refusal(&[("mongo-user", "")]).contains("'mongo-user'"));
        assert!(refusal(&[("burst-capacity", "true")]).contains("needs 'enforce-throughput'"));
    }
}
