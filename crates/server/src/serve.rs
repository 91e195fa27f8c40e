//! Runs the server: opens the store, listens, announces its addresses, serves, drains and closes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use account::{AuthenticatedKey, Keyring};
use anyhow::{Context, Result};
use bytes::Bytes;
use engine::{Archive, Enforcement, Engine};
use mongo::{Authentication, Profile};
use nosql::{AdminHooks, Commands, InitialData, Reset, Service};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::ServerConfig;
use storage::{
    ClockOptions, EmbeddedOptions, EmbeddedStore, MemoryStore, RealClock, Recovery, Store, WallClock,
};
use telemetry::{AuditOutcome, AuditSink, Registry, SlowLog};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use transport::{Admission, STACK_BYTES};

use crate::admission_metrics::AdmissionMetrics;
use crate::archive::DirectoryArchive;
use crate::audit::{self, AuditLog, AuditSettings};
use crate::background;
use crate::bounded_archive::BoundedArchive;
use crate::config::{Config, Mongo, ShownKey};
use crate::data_location::DataLocation;
use crate::files;
use crate::host;
use crate::mongo_sweep;
use crate::pages::{self, ExplorerPages};
use crate::seed::{Seed, Seeder};
use crate::tls::{self, Root};

/// The number of threads that run requests. A database spends its time in the store, not in HTTP; but a point read,
/// which runs here, may have to wait for a policy change or for the clock's lease, and two such reads must not stop the
/// others.
const WORKERS: usize = 4;

/// Runs the server until SIGTERM or SIGINT.
pub(crate) fn run(config: Config) -> Result<()> {
    let clock = clock();
    let runtime = runtime(config.blocking_threads)?;
    if let Some(seed) = &config.seed {
        runtime.block_on(Seeder::dry_run(seed, Arc::clone(&clock)))?;
    }
    let store = open(&config, Arc::clone(&clock))?;
    let archive = archive(&config)?;
    let enforcement = match config.enforce_throughput {
        Some(burst) => Enforcement::On { clock: Arc::clone(&clock), burst },
        None => Enforcement::Off,
    };
    let options = engine::Options {
        partitions: config.partitions,
        enforcement,
        archive,
        query_memory_bytes: config.query_memory_bytes,
    };
    let engine = Arc::new(Engine::open_with(store, options).context("cannot open the store")?);
    runtime.block_on(serve(config, Arc::clone(&engine), clock))?;
    runtime.shutdown_background();
    engine.close().context("cannot close the store")
}

/// Creates the runtime. Threads for blocking work exist only while there is some. A MongoDB command that scans occupies
/// one while it runs, so there may be more of them than processors.
fn runtime(blocking_threads: usize) -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(blocking_threads)
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

/// Returns the machine's clock.
pub(crate) fn clock() -> Arc<dyn WallClock> {
    Arc::new(RealClock::new())
}

fn archive(config: &Config) -> Result<Option<Arc<dyn Archive>>> {
    let data = match &config.location {
        DataLocation::Directory(path) => Some(path.as_path()),
        DataLocation::Memory => None,
    };
    let Some(root) = &config.archive_root else { return Ok(None) };
    Ok(Some(Arc::new(BoundedArchive::new(DirectoryArchive::open(root, data)?))))
}

/// Opens the store.
pub(crate) fn open(config: &Config, clock: Arc<dyn WallClock>) -> Result<Arc<dyn Store>> {
    let mut clock = ClockOptions::new(clock);
    clock.test_clock = config.test_clock;
    clock.max_clock_jump = config.max_clock_jump;
    clock.max_start_gap = config.max_start_gap;
    Ok(match &config.location {
        DataLocation::Memory => Arc::new(MemoryStore::new(clock).context("cannot open the memory store")?),
        DataLocation::Directory(path) => {
            let mut options = EmbeddedOptions::new(path, clock);
            options.durability = config.durability;
            options.open_files = config.files.tables;
            options.cache_bytes = config.cache_bytes;
            options.reserve_bytes = config.reserve_bytes;
            let store = EmbeddedStore::open(options)
                .with_context(|| format!("cannot open the data directory '{}'", path.display()))?;
            report(store.recovery());
            files::warn_if_public("data directory", path);
            Arc::new(store)
        }
    })
}

/// Logs the result of recovery, unless the store was closed cleanly.
fn report(recovery: &Recovery) {
    let Recovery { clean, commits, dropped_bytes, dropped_file } = recovery;
    if !clean {
        tracing::warn!("the store was not closed cleanly; recovered {commits} commits");
    }
    if let Some(file) = dropped_file {
        let file = file.display();
        tracing::warn!(
            "cut {dropped_bytes} bytes of an incomplete commit off the journal; they are kept in {file}"
        );
    }
}

async fn serve(config: Config, engine: Arc<Engine>, clock: Arc<dyn WallClock>) -> Result<()> {
    let tls = tls::open(&config, clock.wall().seconds())?;
    let (listener, address) = bind("listen", config.listen)?;
    let mongo = match config.mongo {
        Some(mongo) => Some((bind("mongo-listen", mongo.listen)?, mongo)),
        None => None,
    };
    let seeder = planted(config.seed, &engine).await?;
    let shutdown = signals()?;
    let renewal = tokio::spawn(tls.renewal.keep(Arc::clone(&clock), hangups()?));
    let (registry, audit) = registry(config.slow, config.audit, &clock)?;
    if let Some(file) = config.key_file {
        tokio::spawn(file.keep(config.keys.clone(), audit.clone(), hangups()?));
    }
    let wall = Arc::clone(&clock);
    let wall_seconds = Arc::new(move || wall.wall().seconds());
    let admission = Arc::new(Admission::new(config.bounds));
    let figures = Arc::new(AdmissionMetrics(Arc::clone(&admission)));
    registry.add_source(Arc::downgrade(&figures) as _);
    warn_of_few_files(config.limits.connections, config.files.connections);
    announce(
        address,
        mongo.as_ref().map(|((_, address), mongo)| (*address, mongo)),
        config.explorer,
        &config.shown_key,
        &tls.root,
    );
    let scratch = config.scratch.map(|scratch| scratch.open(&engine)).transpose()?;
    let mongo = mongo.map(|((listener, _), mongo)| {
        let settings = front_end(mongo, config.keys.clone(), &tls.config, &registry, &admission, scratch);
        (listener, mongo::Service::new(Arc::clone(&engine), settings))
    });
    let commands = mongo.as_ref().map(|(_, mongo)| Arc::new(Inside(Arc::clone(mongo))) as Arc<dyn Commands>);
    let service = Service::new(
        Arc::clone(&engine),
        config.keys.clone(),
        wall_seconds,
        config.limits,
        Arc::clone(&registry),
    )
    .with_admission(admission)
    .with_host_names(config.tls_names)
    .with_direct(config.direct)
    .with_account(config.account)
    .with_tls(nosql::Tls { config: tls.config, root: tls.root.pem.into() })
    .with_admin_hooks(AdminHooks { reset: reset(config.allow_reset, seeder), commands });
    let service = if config.explorer {
        let shell = mongo.as_ref().map(|(_, mongo)| Arc::clone(mongo));
        with_explorer(service, &engine, config.keys, shell, registry)
    } else {
        service
    };
    let background = tokio::spawn(background::run(engine, clock, config.purge_share));
    let mongo = async {
        if let Some((listener, service)) = mongo {
            let sweep = tokio::spawn(mongo_sweep::run(Arc::clone(&service)));
            mongo::serve(listener, service, until(shutdown.clone())).await;
            sweep.abort();
        }
    };
    tokio::join!(nosql::serve(listener, Arc::new(service), until(shutdown.clone())), mongo);
    renewal.abort();
    background.abort();
    let _ = background.await;
    if let Some(audit) = audit {
        audit.record(audit::of_server("stop", None, AuditOutcome::Success));
        audit.flush();
    }
    Ok(())
}

/// Adds the explorer's pages.
fn with_explorer(
    service: Service,
    engine: &Arc<Engine>,
    keys: Keyring,
    shell: Option<Arc<mongo::Service>>,
    registry: Arc<Registry>,
) -> Service {
    let open = pages::count_of(service.connections());
    let pages = ExplorerPages::new(Arc::clone(engine), keys, shell, registry, open);
    service.with_pages(Arc::new(pages))
}

/// Applies a seed, if there is one; returns a seeder that can apply it again.
async fn planted(seed: Option<Arc<Seed>>, engine: &Arc<Engine>) -> Result<Option<Arc<Seeder>>> {
    let Some(seed) = seed else { return Ok(None) };
    let seeder = Arc::new(Seeder::new(seed, Arc::clone(engine)));
    let outcome = seeder.apply().await?;
    tracing::info!("seed: {outcome}");
    Ok(Some(seeder))
}

fn warn_of_few_files(wanted: usize, granted: usize) {
    if granted < wanted {
        tracing::warn!(
            "the limit of open files allows only {granted} connections, not max-connections {wanted} (ulimit -Hn)"
        );
    }
}

/// Creates the registry of metrics, with the slow log and the audit log.
fn registry(
    slow: SlowLog,
    audit: Option<AuditSettings>,
    clock: &Arc<dyn WallClock>,
) -> Result<(Arc<Registry>, Option<Arc<AuditLog>>)> {
    let registry = Registry::new(Some(host::process), slow);
    let Some(settings) = audit else { return Ok((Arc::new(registry), None)) };
    let audit = Arc::new(AuditLog::open(settings, Arc::clone(clock))?);
    audit.record(audit::of_server("start", None, AuditOutcome::Success));
    let registry = registry.with_audit(Arc::clone(&audit) as _);
    registry.add_source(Arc::downgrade(&audit) as _);
    Ok((Arc::new(registry), Some(audit)))
}

/// Returns whether operators may empty the store, and how its initial data is created again.
fn reset(is_allowed: bool, seeder: Option<Arc<Seeder>>) -> Reset {
    if is_allowed {
        Reset::Allowed { initial_data: seeder.map(|seeder| seeder as Arc<dyn InitialData>) }
    } else {
        Reset::Refused
    }
}

/// The MongoDB API, for the admin API.
struct Inside(Arc<mongo::Service>);

impl Commands for Inside {
    fn run<'a>(
        &'a self,
        holder: &'a AuthenticatedKey,
        command: Bytes,
    ) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send + 'a>> {
        Box::pin(self.0.perform_as_account(holder, command))
    }
}

/// Connections that may wait to be accepted: beyond them a client's first packet is dropped, and it tries again a second
/// later. The system may allow fewer (`net.core.somaxconn`).
const BACKLOG: u32 = 4096;

fn bind(name: &str, wanted: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let listen = || {
        let socket = if wanted.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // A port that old connections still use in the system can be bound again at once.
        socket.set_reuseaddr(true)?;
        socket.bind(wanted)?;
        socket.listen(BACKLOG)
    };
    let listener = listen().with_context(|| format!("cannot listen on {wanted} ('{name}')"))?;
    let address = listener.local_addr().context("cannot find out the address listened on")?;
    Ok((listener, address))
}

/// Returns a signal that becomes true at the first SIGTERM or SIGINT.
fn signals() -> Result<watch::Receiver<bool>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("shutting down");
        let _ = stop.send(true);
        stop.closed().await;
    });
    Ok(stopped)
}

/// Returns the SIGHUPs from now on.
fn hangups() -> Result<Signal> {
    signal(SignalKind::hangup()).context("cannot listen for SIGHUP")
}

async fn until(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}

fn front_end(
    mongo: Mongo,
    keys: Keyring,
    tls: &Arc<ServerConfig>,
    registry: &Arc<Registry>,
    admission: &Arc<Admission>,
    scratch: Option<Arc<dyn mongo::scratch::Scratch>>,
) -> mongo::Settings {
    mongo::Settings {
        profile: mongo.profile,
        advertise: mongo.advertise,
        authentication: mongo.authentication,
        account: mongo::Account { user: mongo.user, keys },
        test_commands: mongo.test_commands,
        tls: Some(Arc::clone(tls)),
        host: host::describe(),
        arguments: host::arguments(),
        limits: mongo.limits,
        scratch,
        admission: Arc::clone(admission),
        registry: Arc::clone(registry),
    }
}

/// Prints the addresses for scripts, clients and browsers. Logs keep this output, so it never includes a secret key.
/// The last line, except for a hint, means that the server is ready.
fn announce(
    address: SocketAddr,
    mongo: Option<(SocketAddr, &Mongo)>,
    explorer: bool,
    key: &ShownKey,
    root: &Root,
) {
    println!("Bolide {} listens on {address}", env!("CARGO_PKG_VERSION"));
    if let Some((address, mongo)) = mongo {
        println!("{}", mongo_connection_string(dialable(address), mongo));
    }
    let trusted = match &root.path {
        Some(path) => format!("{}, see bolide cert", path.display()),
        None => "/_explorer/emulator.pem".to_owned(),
    };
    println!("With TLS: https://{}/ (clients trust {trusted})", dialable(address));
    let endpoint = format!("http://{}/", dialable(address));
    if explorer {
        println!("Explorer: {endpoint}_explorer/");
    }
    match key {
        ShownKey::Public(key) => println!("AccountEndpoint={endpoint};AccountKey={key};"),
        ShownKey::Secret(source) => {
            println!("AccountEndpoint={endpoint};");
            println!("The account key is that of {source}.");
        }
    }
}

/// Returns the address at which a client on this machine reaches a listener.
fn dialable(address: SocketAddr) -> SocketAddr {
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(host, address.port())
}

/// Returns the connection string, with the user's name if one is needed; the password is the account key.
fn mongo_connection_string(address: SocketAddr, mongo: &Mongo) -> String {
    let user = match mongo.authentication {
        Authentication::Required => {
            format!("{}@", utf8_percent_encode(&mongo.user, NON_ALPHANUMERIC))
        }
        Authentication::Optional => String::new(),
    };
    let host = mongo.advertise.clone().unwrap_or_else(|| address.to_string());
    let options = match &mongo.profile {
        Profile::ReplicaSet { name } => format!("?replicaSet={name}"),
        Profile::Standalone | Profile::Sharded => String::new(),
    };
    format!("mongodb://{user}{host}/{options}")
}
