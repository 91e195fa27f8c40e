//! From configuration to a running server and back: open, listen, announce, serve, drain, close.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result};
use engine::Engine;
use nosql::{Limits, Service};
use storage::{ClockOptions, EmbeddedOptions, EmbeddedStore, MemoryStore, Recovery, Store, WallClock};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::background;
use crate::clock::RealClock;
use crate::config::{Config, Place, ShownKey};

/// Threads that run requests. A database's time goes into its store, not into HTTP; but a point read, which runs
/// here, may have to wait for a policy change or for the clock's lease, and two such must not stop the others.
const WORKERS: usize = 4;

/// Threads for work that blocks. They exist only while there is such work.
const BLOCKING_THREADS: usize = 16;

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(config: Config) -> Result<()> {
    let clock: Arc<dyn WallClock> = Arc::new(RealClock::new());
    let store = open(&config, Arc::clone(&clock))?;
    let options = engine::Options { partitions: config.partitions };
    let engine = Arc::new(Engine::open_with(store, options).context("cannot open the store")?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(config, Arc::clone(&engine), clock))?;
    runtime.shutdown_background();
    engine.close().context("cannot close the store")
}

fn open(config: &Config, clock: Arc<dyn WallClock>) -> Result<Arc<dyn Store>> {
    let mut clock = ClockOptions::new(clock);
    clock.test_clock = config.test_clock;
    clock.max_clock_jump = config.max_clock_jump.unwrap_or(clock.max_clock_jump);
    clock.max_start_gap = config.max_start_gap.unwrap_or(clock.max_start_gap);
    Ok(match &config.place {
        Place::Memory => Arc::new(MemoryStore::new(clock).context("cannot open the memory store")?),
        Place::Directory(path) => {
            let mut options = EmbeddedOptions::new(path, clock);
            options.durability = config.durability;
            let store = EmbeddedStore::open(options)
                .with_context(|| format!("cannot open the data directory '{}'", path.display()))?;
            report(store.recovery());
            Arc::new(store)
        }
    })
}

/// Tells the operator what opening the store found, unless all was in order.
fn report(recovery: &Recovery) {
    let Recovery { clean, commits, dropped_bytes, dropped_file } = recovery;
    if !clean {
        tracing::warn!("the store was not closed in order; recovered {commits} commits");
    }
    if let Some(file) = dropped_file {
        let file = file.display();
        tracing::warn!(
            "cut {dropped_bytes} bytes off the journal that were no whole commit; they are kept in {file}"
        );
    }
}

async fn serve(config: Config, engine: Arc<Engine>, clock: Arc<dyn WallClock>) -> Result<()> {
    let listener = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("cannot listen on {}", config.listen))?;
    let address = listener.local_addr().context("cannot find out the address listened on")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let shutdown = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("shutting down");
    };
    let wall_seconds = Arc::new(move || clock.wall().seconds());
    let service = Service::new(Arc::clone(&engine), config.key, wall_seconds, Limits::default());
    let purge = tokio::spawn(background::purge(engine));
    announce(address, &config.shown_key);
    nosql::serve(listener, Arc::new(service), shutdown).await;
    purge.abort();
    let _ = purge.await;
    Ok(())
}

/// What scripts wait for and what people paste into their client. Logs keep what is printed here, so a secret key is
/// not.
fn announce(address: SocketAddr, key: &ShownKey) {
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let endpoint = format!("http://{}/", SocketAddr::new(host, address.port()));
    println!("Bolide {} listens on {address}", env!("CARGO_PKG_VERSION"));
    match key {
        ShownKey::Public(key) => println!("AccountEndpoint={endpoint};AccountKey={key};"),
        ShownKey::Secret(source) => {
            println!("AccountEndpoint={endpoint};");
            println!("The account key is the one that {source} gives.");
        }
    }
}
