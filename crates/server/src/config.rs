//! Turns settings into a validated configuration.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use account::{EMULATOR_KEY, Entry, Key, KeySource, Keyring, Kind};
use anyhow::{Context, Result, anyhow, bail};
use engine::Burst;
use mongo::{Authentication, Profile};
use nosql::{AccountSettings, Consistency, DirectSettings, Gateway};
use storage::{Durability, TestClock};
use telemetry::{SlowLog, Texts};
use transport::Bounds;

use crate::audit::AuditSettings;
use crate::data_location::DataLocation;
use crate::host;
use crate::host_name;
use crate::key_file::KeyFile;
use crate::key_strength;
use crate::keys;
use crate::scratch::ScratchSpace;
use crate::seed::Seed;
use crate::settings::Settings;

/// The name of the replica set in every connection string of Cosmos DB.
const REPLICA_SET: &str = "globaldb";

/// The account key, as far as it may be printed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ShownKey {
    /// The emulator's key, which is public.
    Public(&'static str),
    /// Any other key, and the setting that it came from.
    Secret(String),
}

/// The configuration of the MongoDB API.
#[derive(Debug)]
pub(crate) struct Mongo {
    pub(crate) listen: SocketAddr,
    pub(crate) advertise: Option<String>,
    pub(crate) profile: Profile,
    pub(crate) authentication: Authentication,
    /// The user whose passwords are the account keys.
    pub(crate) user: String,
    pub(crate) test_commands: bool,
    pub(crate) limits: mongo::Limits,
}

/// The source of the server's certificate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Certificate {
    /// The operator's files.
    Given { certificate: PathBuf, key: PathBuf },
    /// The server's own authority, created at the first start.
    Own,
}

/// The configuration of the server.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) location: DataLocation,
    /// Where sorts and groups of the MongoDB API spill to, if they may.
    pub(crate) scratch: Option<ScratchSpace>,
    pub(crate) listen: SocketAddr,
    /// Whether the explorer is on.
    pub(crate) explorer: bool,
    /// How clients in direct mode are served.
    pub(crate) direct: DirectSettings,
    /// What the account document says.
    pub(crate) account: AccountSettings,
    /// The MongoDB API, unless it is off.
    pub(crate) mongo: Option<Mongo>,
    pub(crate) keys: Keyring,
    /// The file from which the primary key is reloaded, if one was named.
    pub(crate) key_file: Option<KeyFile>,
    /// What the server prints about the key when it starts.
    pub(crate) shown_key: ShownKey,
    pub(crate) certificate: Certificate,
    /// Further names for the server's own certificate.
    pub(crate) tls_names: Vec<String>,
    /// The root of archives, if there may be any (T32).
    pub(crate) archive_root: Option<PathBuf>,
    /// Data to create at the start.
    pub(crate) seed: Option<Arc<Seed>>,
    /// Limits of the NoSQL API.
    pub(crate) limits: nosql::Limits,
    /// Memory for a page of a query of the NoSQL API, in bytes.
    pub(crate) query_memory_bytes: usize,
    /// The limits of admission control, for all front ends together.
    pub(crate) bounds: Bounds,
    /// How files are divided between connections and the store.
    pub(crate) files: Files,
    /// The largest number of threads for blocking work.
    pub(crate) blocking_threads: usize,
    /// Whether the admin API may empty the store.
    pub(crate) allow_reset: bool,
    pub(crate) test_clock: TestClock,
    /// See T34.
    pub(crate) max_clock_jump: Duration,
    /// See T34.
    pub(crate) max_start_gap: Duration,
    pub(crate) durability: Durability,
    /// The size of the store's block cache.
    pub(crate) cache_bytes: u64,
    /// How much of the disk is reserved.
    pub(crate) reserve_bytes: u64,
    /// The part of the writer's time that an old backlog of the purge may use.
    pub(crate) purge_share: f64,
    /// The smallest number of physical partitions of a new container.
    pub(crate) partitions: u32,
    /// Whether requests beyond the provisioned throughput are refused, and whether bursts are allowed.
    pub(crate) enforce_throughput: Option<Burst>,
    /// Which operations are logged as slow.
    pub(crate) slow: SlowLog,
    /// The audit log, if it is on.
    pub(crate) audit: Option<AuditSettings>,
}

/// Resolves settings to a configuration.
pub(crate) fn resolve(settings: &Settings) -> Result<Config> {
    refuse_what_is_missing(settings)?;
    let location = match settings.one_of(&["data", "memory"])? {
        Some(("memory", _)) => DataLocation::Memory,
        _ => DataLocation::Directory(settings.always("data").into()),
    };
    let listen = address("listen", settings.always("listen"))?;
    let mongo_listen = mongo_listen(settings, listen)?;
    let kept = keys::kept(&location)?;
    let text = key_text(settings, &[Some(listen), mongo_listen], &location, &kept)?;
    let mongo = mongo_listen.map(|listen| mongo(settings, listen, &text)).transpose()?;
    let is_in_file = text.key_source == KeySource::Setting(KeyFile::SETTING);
    let reachable = key_strength::reachable(&[Some(listen), mongo_listen]);
    let key_file = settings.given(KeyFile::SETTING).filter(|_| is_in_file);
    let key_file = key_file.map(|path| KeyFile::new(path).reached_at(reachable));
    let primary = Key::parse(&text.key).with_context(|| format!("{} gives no key", text.source))?;
    key_strength::check(&primary, &format!("the key in {}", text.source), reachable)?;
    for Entry { kind, key, .. } in kept.iter().filter(|entry| entry.kind != Kind::Primary) {
        key_strength::check(key, &format!("the {} key in keys.json", kind.name()), reachable)?;
    }
    let primary = Entry { kind: Kind::Primary, key: primary, source: text.key_source };
    let (keys, shown_key) = (keys::ring(&location, kept, primary), text.shown());
    let durability = match settings.always("durability") {
        "buffered" => Durability::Buffered,
        _ => Durability::Sync,
    };
    let files = Files::share_out(host::process().open_files_max);
    let scratch = match &location {
        DataLocation::Directory(data) => ScratchSpace::of(data, settings.number("mongo-scratch-space")),
        DataLocation::Memory => None,
    };
    Ok(Config {
        location,
        scratch,
        listen,
        explorer: settings.always("explorer") == "on",
        direct: direct(settings)?,
        account: account(settings)?,
        mongo,
        keys,
        key_file,
        shown_key,
        certificate: certificate(settings)?,
        tls_names: tls_names(settings)?,
        archive_root: archive_root(settings)?,
        seed: settings.given("seed").map(Seed::read).transpose()?.map(Arc::new),
        limits: limits(settings),
        query_memory_bytes: settings.number("query-memory") as usize,
        bounds: bounds(settings, files)?,
        files,
        blocking_threads: settings.number("blocking-threads") as usize,
        allow_reset: settings.flag("allow-reset") || settings.flag("test-clock"),
        test_clock: test_clock(settings)?,
        max_clock_jump: settings.seconds("max-clock-jump"),
        max_start_gap: settings.seconds("max-start-gap"),
        durability,
        cache_bytes: settings.number("cache-memory"),
        reserve_bytes: settings.number("disk-reserve"),
        purge_share: settings.number("purge-share") as f64 / 100.0,
        partitions: settings.number("partitions") as u32,
        enforce_throughput: enforce_throughput(settings)?,
        slow: slow(settings)?,
        audit: audit(settings)?,
    })
}

fn test_clock(settings: &Settings) -> Result<TestClock> {
    match (settings.flag("test-clock"), settings.flag("stopped-clock")) {
        (on, false) => Ok(TestClock::running(on)),
        (true, true) => Ok(TestClock::Stopped),
        (false, true) => bail!("'stopped-clock' needs 'test-clock'"),
    }
}

fn refuse_what_is_missing(settings: &Settings) -> Result<()> {
    if let Some(url) = settings.given("storage") {
        bail!(
            "'storage' ({}) is not supported yet: use 'data' or 'memory'",
            url.split(':').next().unwrap_or("")
        );
    }
    Ok(())
}

fn enforce_throughput(settings: &Settings) -> Result<Option<Burst>> {
    match (settings.flag("enforce-throughput"), settings.flag("burst-capacity")) {
        (false, true) => bail!("'burst-capacity' needs 'enforce-throughput'"),
        (false, false) => Ok(None),
        (true, burst) => Ok(Some(if burst { Burst::On } else { Burst::Off })),
    }
}

fn audit(settings: &Settings) -> Result<Option<AuditSettings>> {
    match settings.given("audit-log") {
        Some("") => bail!("'audit-log' must name a file"),
        path => Ok(path.map(|path| AuditSettings {
            path: path.into(),
            file_bytes: settings.number("audit-log-size"),
            files: settings.number("audit-log-files"),
        })),
    }
}

/// The largest value of `slow-ms`: an hour.
const SLOW_MS_MAX: u64 = 3_600_000;

fn slow(settings: &Settings) -> Result<SlowLog> {
    let texts = if settings.flag("slow-log-texts") { Texts::Whole } else { Texts::Shapes };
    match settings.always("slow-ms").trim() {
        "off" => Ok(SlowLog::off()),
        text => match text.parse() {
            Ok(millis) if millis <= SLOW_MS_MAX => Ok(SlowLog::new(Duration::from_millis(millis), texts)),
            _ => bail!("'slow-ms' must be a number from 0 to {SLOW_MS_MAX} or 'off', it is '{text}'"),
        },
    }
}

fn archive_root(settings: &Settings) -> Result<Option<PathBuf>> {
    match settings.given("archive-root") {
        Some("") => bail!("'archive-root' must name a directory"),
        root => Ok(root.map(PathBuf::from)),
    }
}

fn certificate(settings: &Settings) -> Result<Certificate> {
    match (settings.given("tls-cert"), settings.given("tls-key")) {
        (Some(certificate), Some(key)) => {
            Ok(Certificate::Given { certificate: certificate.into(), key: key.into() })
        }
        (None, None) => Ok(Certificate::Own),
        _ => bail!("'tls-cert' and 'tls-key' need each other"),
    }
}

fn tls_names(settings: &Settings) -> Result<Vec<String>> {
    let Some(text) = settings.given("tls-name") else { return Ok(Vec::new()) };
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    if let Some(wrong) = names.iter().find(|name| !host_name::is_valid(name)) {
        bail!("'tls-name' must be host names or addresses with commas between them, '{wrong}' is none");
    }
    Ok(names)
}

fn address(name: &str, text: &str) -> Result<SocketAddr> {
    let mut found = text.to_socket_addrs().with_context(|| {
        format!("'{name}' must be an address and a port such as 127.0.0.1:8081, it is '{text}'")
    })?;
    found.next().ok_or_else(|| anyhow!("'{name}' names no address: '{text}'"))
}

/// Returns the address of the MongoDB API; with port 0 in 'listen' it uses a free port, too.
fn mongo_listen(settings: &Settings, listen: SocketAddr) -> Result<Option<SocketAddr>> {
    match settings.given("mongo-listen") {
        Some("off") => Ok(None),
        Some(text) => address("mongo-listen", text).map(Some),
        None => {
            let mut default = address("mongo-listen", settings.always("mongo-listen"))?;
            if listen.port() == 0 {
                default.set_port(0);
            }
            Ok(Some(default))
        }
    }
}

fn direct(settings: &Settings) -> Result<DirectSettings> {
    Ok(DirectSettings {
        is_off: settings.always("direct") == "off",
        public_address: public_address(settings)?,
    })
}

fn account(settings: &Settings) -> Result<AccountSettings> {
    Ok(AccountSettings {
        public_address: public_address(settings)?,
        default_consistency: settings.given("default-consistency").and_then(Consistency::parse),
        gateway: if settings.flag("strict-gateway") { Gateway::Strict } else { Gateway::Lenient },
    })
}

fn public_address(settings: &Settings) -> Result<Option<String>> {
    let given = settings.given("public-address").map(str::to_owned);
    let fits = |text: &&str| is_host_and_port(text) && !text.starts_with('[');
    if let Some(wrong) = given.as_deref().filter(|text| !fits(text)) {
        bail!(
            "'public-address' must be a host name or an IPv4 address, and a port, such as db.example.org:8081, it is '{wrong}'"
        );
    }
    Ok(given)
}

/// On loopback with the public key a password would protect nothing, and tools connect without one.
fn mongo(settings: &Settings, listen: SocketAddr, text: &KeyText) -> Result<Mongo> {
    let required = settings.flag("mongo-auth") || !text.is_public() || !listen.ip().is_loopback();
    let profile = match settings.always("mongo-profile") {
        "standalone" => Profile::Standalone,
        "sharded" => Profile::Sharded,
        _ => Profile::ReplicaSet { name: REPLICA_SET.to_owned() },
    };
    let advertise = settings.given("mongo-advertise").map(str::to_owned);
    if let Some(wrong) = advertise.as_deref().filter(|text| !is_host_and_port(text)) {
        bail!("'mongo-advertise' must be a host and a port such as db.example.org:10255, it is '{wrong}'");
    }
    let user = settings.always("mongo-user");
    if user.is_empty() {
        bail!("'mongo-user' must not be empty");
    }
    Ok(Mongo {
        listen,
        advertise,
        profile,
        authentication: if required { Authentication::Required } else { Authentication::Optional },
        user: user.to_owned(),
        test_commands: settings.flag("mongo-test-commands"),
        limits: mongo_limits(settings),
    })
}

fn limits(settings: &Settings) -> nosql::Limits {
    nosql::Limits {
        connections: settings.number("max-connections") as usize,
        body_bytes: settings.number("max-body-bytes") as usize,
        header_bytes: settings.number("max-header-bytes") as usize,
        head_timeout: settings.seconds("idle-timeout"),
        body_timeout: settings.seconds("body-timeout"),
        query_timeout: settings.seconds("max-query-time"),
        drain_timeout: settings.seconds("drain-timeout"),
        ..nosql::Limits::default()
    }
}

/// How the files that the process may open are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    /// Tables that the store keeps open for reading.
    pub(crate) tables: usize,
    /// Connections, all front ends together.
    pub(crate) connections: usize,
}

impl Files {
    /// The largest number of tables.
    const TABLES_MAX: usize = 900;
    /// Files reserved for the journal, tables being written, archives, backups and listeners.
    const SPARE: usize = 128;

    /// A quarter for tables, the rest, except for the reserve, for connections. Zero stands for a system that does not
    /// report its limit.
    fn share_out(files: u64) -> Files {
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        if files == 0 {
            return Files { tables: Files::TABLES_MAX, connections: usize::MAX };
        }
        let tables = (files / 4).clamp(16, Files::TABLES_MAX);
        Files { tables, connections: files.saturating_sub(tables + Files::SPARE).max(16) }
    }
}

/// Divides the threads so that each kind of work leaves some to the others.
fn bounds(settings: &Settings, files: Files) -> Result<Bounds> {
    let threads = settings.number("blocking-threads") as usize;
    let share = threads / 2;
    Ok(Bounds {
        brief: settings.number("max-requests") as usize,
        statements: Bounds::default().statements.min(share),
        queries: queries(settings, threads, share)?,
        max_wait: settings.seconds("max-queue-wait"),
        held_bytes: settings.number("request-memory") as usize,
        connections: files.connections,
        unauthenticated_per_address: settings.number("max-unauthenticated-connections") as usize,
        ..Bounds::default()
    })
}

/// Returns the configured number of queries, if there are threads for them; otherwise a number that suits the
/// processors.
fn queries(settings: &Settings, threads: usize, share: usize) -> Result<usize> {
    if settings.given("max-queries").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        return Ok((4 * cores).max(8).min(share));
    }
    let wanted = settings.number("max-queries") as usize;
    if wanted > share {
        bail!(
            "'max-queries' may be half of 'blocking-threads', which is {threads}, and it is {wanted}: give {share} at most, or \
             {} 'blocking-threads'",
            2 * wanted
        );
    }
    Ok(wanted)
}

fn mongo_limits(settings: &Settings) -> mongo::Limits {
    mongo::Limits {
        connections: settings.number("mongo-max-connections") as usize,
        idle_timeout: settings.seconds("mongo-idle-timeout"),
        cursors: settings.number("mongo-max-cursors") as usize,
        idle_bytes: settings.number("mongo-idle-memory") as usize,
        cursor_idle_timeout: settings.seconds("mongo-cursor-timeout"),
        transactions: settings.number("mongo-max-transactions") as usize,
        transaction_lifetime: settings.seconds("mongo-transaction-lifetime"),
        stage_bytes: settings.number("mongo-stage-memory") as usize,
        query_time: settings.given("mongo-max-query-time").map(|_| settings.seconds("mongo-max-query-time")),
        drain_timeout: settings.seconds("drain-timeout"),
        ..mongo::Limits::default()
    }
}

fn is_host_and_port(text: &str) -> bool {
    text.rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// The primary key as text, and its source.
struct KeyText {
    key: String,
    /// The source, for messages.
    source: String,
    key_source: KeySource,
}

impl KeyText {
    fn is_public(&self) -> bool {
        self.key == EMULATOR_KEY
    }

    fn shown(&self) -> ShownKey {
        if self.is_public() { ShownKey::Public(EMULATOR_KEY) } else { ShownKey::Secret(self.source.clone()) }
    }
}

/// Returns the account key that a tool sends to a server.
pub(crate) fn key(settings: &Settings) -> Result<String> {
    Ok(key_text(settings, &[], &DataLocation::Memory, &[])?.key)
}

/// Returns the operator's key, the generated one, or the public one where only this machine can connect.
fn key_text(
    settings: &Settings,
    listen: &[Option<SocketAddr>],
    location: &DataLocation,
    kept: &[Entry],
) -> Result<KeyText> {
    let reachable = key_strength::reachable(listen);
    let made = kept.iter().find(|entry| entry.kind == Kind::Primary);
    let (text, source, key_source) = match (settings.one_of(&["key", "key-file"])?, made) {
        (Some(("key-file", path)), _) => {
            (KeyFile::new(path).text()?, format!("the file '{path}'"), KeySource::Setting(KeyFile::SETTING))
        }
        (Some((_, key)), _) => (key.to_owned(), "the setting 'key'".to_owned(), KeySource::Setting("key")),
        (None, Some(made)) => {
            let file = keys::file(location).unwrap_or_default();
            (made.key.reveal().to_owned(), format!("the file '{}'", file.display()), KeySource::Generated)
        }
        (None, None) => match reachable {
            None => (EMULATOR_KEY.to_owned(), String::new(), KeySource::WellKnown),
            Some(listen) => {
                bail!(
                    "listening on {listen}, which others can reach, needs a key: give 'key' or 'key-file'; make one with \
                     'openssl rand -base64 32'"
                )
            }
        },
    };
    let text = KeyText { key: text.trim().to_owned(), source, key_source };
    if let Some(listen) = reachable.filter(|_| text.is_public()) {
        bail!("the emulator's key is public and is refused on {listen}: set another 'key' or 'key-file'");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::tests::layer;

    /// 256 bits.
    const STRONG: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn config(pairs: &[(&'static str, &str)]) -> Result<Config> {
        resolve(&Settings::new(vec![layer("the command line", pairs)])?)
    }

    fn refusal(pairs: &[(&'static str, &str)]) -> String {
        format!("{:#}", config(pairs).unwrap_err())
    }

    #[test]
    fn nothing_given_is_a_safe_local_server() {
        let config = config(&[]).unwrap();
        assert_eq!(config.location, DataLocation::Directory("./bolide-data".into()));
        assert_eq!(config.listen.to_string(), "127.0.0.1:8081");
        assert_eq!(config.shown_key, ShownKey::Public(EMULATOR_KEY));
        let clock = storage::ClockOptions::new(crate::serve::clock());
        assert_eq!(
            (config.max_clock_jump, config.max_start_gap),
            (clock.max_clock_jump, clock.max_start_gap)
        );
        assert_eq!(config.durability, Durability::Sync);
        assert_eq!(config.limits, nosql::Limits::default(), "the table has the front end's own limits");
        assert_eq!(config.query_memory_bytes, engine::Options::default().query_memory_bytes);
        assert_eq!(config.mongo.unwrap().limits, mongo::Limits::default());
        assert_eq!(config.test_clock, TestClock::Off);
    }

    #[test]
    fn the_gateway_is_as_strict_as_the_services_where_that_is_asked_for() {
        let gateway = |pairs: &[(&'static str, &str)]| config(pairs).unwrap().account.gateway;
        assert_eq!(gateway(&[]), Gateway::Lenient);
        assert_eq!(gateway(&[("strict-gateway", "false")]), Gateway::Lenient);
        assert_eq!(gateway(&[("strict-gateway", "true")]), Gateway::Strict);
    }

    #[test]
    fn files_are_left_to_the_store_however_few_there_are() {
        let share = Files::share_out;
        assert_eq!(share(1024), Files { tables: 256, connections: 640 });
        assert_eq!(share(65_536), Files { tables: 900, connections: 64_508 });
        assert_eq!(share(64), Files { tables: 16, connections: 16 });
        assert_eq!(share(0), Files { tables: 900, connections: usize::MAX });
        for files in 200..5_000 {
            let Files { tables, connections } = share(files);
            assert!(tables + connections + Files::SPARE <= files as usize, "{files}");
        }
    }

    #[test]
    fn what_is_done_at_once_leaves_threads_to_others() {
        let bounds = |pairs: &[(&'static str, &str)]| config(pairs).unwrap().bounds;
        let usual = bounds(&[]);
        let inner = Bounds { queries: usual.queries, connections: usual.connections, ..Bounds::default() };
        assert_eq!(usual, inner, "the table has the front ends' own bounds");
        assert!(usual.queries >= 8);
        let few = bounds(&[("blocking-threads", "8")]);
        assert_eq!((few.queries, few.statements), (4, 4));
        assert_eq!(bounds(&[("max-queries", "3")]).queries, 3);
        assert_eq!(bounds(&[("max-queries", "4"), ("blocking-threads", "8")]).queries, 4);
        let refusal = refusal(&[("max-queries", "5"), ("blocking-threads", "8")]);
        assert!(refusal.contains("'max-queries'") && refusal.contains("'blocking-threads'"), "{refusal}");
        assert!(refusal.contains("4 at most") && refusal.contains("10 'blocking"), "{refusal}");
    }

    #[test]
    fn the_emulator_key_stays_on_loopback() {
        assert!(refusal(&[("listen", "0.0.0.0:8081")]).contains("needs a key"));
        assert!(refusal(&[("listen", "0.0.0.0:8081"), ("key", EMULATOR_KEY)]).contains("refused"));
        assert!(config(&[("listen", "0.0.0.0:8081"), ("key", STRONG)]).is_ok());
        assert!(config(&[("listen", "[::1]:0")]).is_ok());
    }

    #[test]
    fn a_key_below_256_bits_stays_on_loopback_wherever_it_comes_from() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        std::fs::write(&file, "AA==").unwrap();
        let file = file.to_str().unwrap().to_owned();
        for listen in
            [("listen", "0.0.0.0:8081"), ("listen", "[::]:8081"), ("mongo-listen", "192.0.2.1:10255")]
        {
            for given in [("key", "AA=="), ("key", "c2VjcmV0"), ("key-file", file.as_str())] {
                let text = refusal(&[listen, given]);
                assert!(text.contains(" bits") && text.contains("openssl rand -base64 32"), "{text}");
                assert!(
                    text.contains(listen.1) && text.contains(given.0.trim_end_matches("-file")),
                    "{text}"
                );
                assert!(!text.contains("AA==") && !text.contains("c2VjcmV0"), "{text}");
                assert!(config(&[given]).is_ok(), "on loopback any key does");
            }
            assert!(config(&[listen, ("key", STRONG)]).is_ok());
        }
        // Other keys of the account, too.
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join("keys.json"), r#"{"secondaryReadonly":"AA=="}"#).unwrap();
        let open = [("data", data.path().to_str().unwrap()), ("key", STRONG), ("listen", "0.0.0.0:8081")];
        let text = refusal(&open);
        assert!(text.contains("the secondaryReadonly key in keys.json has 8 bits"), "{text}");
    }

    #[test]
    fn the_mongodb_api_asks_for_a_password_unless_the_key_is_public() {
        let mongo = |pairs: &[(&'static str, &str)]| config(pairs).unwrap().mongo.unwrap();
        let local = mongo(&[]);
        assert_eq!(local.listen.to_string(), "127.0.0.1:10255");
        assert_eq!(local.authentication, Authentication::Optional);
        assert_eq!(local.user, "bolide");
        assert_eq!(local.profile, Profile::ReplicaSet { name: "globaldb".into() });
        assert_eq!(mongo(&[("listen", "127.0.0.1:0")]).listen.port(), 0);
        for required in [("mongo-auth", "true"), ("key", "c2VjcmV0")] {
            assert_eq!(mongo(&[required]).authentication, Authentication::Required);
        }
        let open = [("key", STRONG), ("mongo-listen", "0.0.0.0:1")];
        assert_eq!(mongo(&open).authentication, Authentication::Required);
        assert!(refusal(&[("mongo-listen", "0.0.0.0:10255")]).contains("needs a key"));
        assert!(config(&[("mongo-listen", "off")]).unwrap().mongo.is_none());
    }

    #[test]
    fn a_primary_key_that_was_made_here_counts_unless_one_is_given() {
        let data = tempfile::tempdir().unwrap();
        let directory = ("data", data.path().to_str().unwrap());
        let made = config(&[directory]).unwrap().keys.regenerate(Kind::Primary).unwrap();
        let later = config(&[directory, ("listen", "0.0.0.0:8081")]).unwrap();
        assert!(
            later.keys.authenticate(made.reveal()).is_some()
                && later.keys.authenticate(EMULATOR_KEY).is_none()
        );
        assert!(matches!(&later.shown_key, ShownKey::Secret(file) if file.contains("keys.json")));
        assert_eq!(later.mongo.unwrap().authentication, Authentication::Required);
        let given = config(&[directory, ("key", "c2VjcmV0")]).unwrap();
        assert!(
            given.keys.authenticate("c2VjcmV0").is_some() && given.keys.authenticate(made.reveal()).is_none()
        );
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
        assert_eq!(config.max_clock_jump, Duration::from_mins(1));
        assert_eq!(config.max_start_gap, Duration::from_hours(24));
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
        for bad in ["host", "[::1]:8081", "host:port", ""] {
            assert!(refusal(&[("public-address", bad)]).contains("'public-address'"), "{bad}");
        }
        assert!(refusal(&[("direct", "maybe")]).contains("'direct'"));
        assert!(refusal(&[("default-consistency", "linearizable")]).contains("'default-consistency'"));
        assert!(refusal(&[("tls-cert", "c.pem")]).contains("need each other"));
        for bad in ["", "a,,b", "http://x", "a b"] {
            assert!(refusal(&[("tls-name", bad)]).contains("'tls-name'"), "{bad}");
        }
        assert!(refusal(&[("archive-root", "")]).contains("'archive-root'"));
        assert!(refusal(&[("mongo-user", "")]).contains("'mongo-user'"));
        for wrong in ["-1", "never", "3600001", ""] {
            assert!(refusal(&[("slow-ms", wrong)]).contains("'slow-ms'"), "{wrong}");
        }
        assert!(refusal(&[("burst-capacity", "true")]).contains("needs 'enforce-throughput'"));
        assert!(refusal(&[("stopped-clock", "true")]).contains("needs 'test-clock'"));
    }
}
