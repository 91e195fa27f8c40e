//! PostgreSQL with documents as jsonb and an expiry column, over its own wire protocol.
//!
//! Every statement is prepared once for a connection; reads filter by the column, so that they do not see expired items.

mod wire;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use self::wire::Wire;
use super::process::{Process, first_line, free_port, new_folder};
use super::{About, Connection, Measured, Peer};
use crate::documents::{DataSet, Fields, Shape, TTL_SECONDS};
use crate::workload::{Kind, Operation};

const USER: &str = "postgres";
/// How long recovery may take after a start.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Its autovacuum looks for work every second, and not every minute, so that each run pays for its own.
const SETTINGS: [&str; 3] = ["max_connections=300", "synchronous_commit=on", "autovacuum_naptime=1s"];
/// Counts what autovacuum does now, and the tables that it is about to work on, by the thresholds that it goes by.
const PENDING: &str = "select (select count(*) from pg_stat_activity where backend_type = 'autovacuum worker') \
     + (select count(*) from pg_stat_user_tables s join pg_class c on c.oid = s.relid, lateral \
     (select greatest(c.reltuples, 0) as n) t \
     where s.n_dead_tup > current_setting('autovacuum_vacuum_threshold')::float8 \
     + current_setting('autovacuum_vacuum_scale_factor')::float8 * t.n \
     or s.n_ins_since_vacuum > current_setting('autovacuum_vacuum_insert_threshold')::float8 \
     + current_setting('autovacuum_vacuum_insert_scale_factor')::float8 * t.n \
     or s.n_mod_since_analyze > current_setting('autovacuum_analyze_threshold')::float8 \
     + current_setting('autovacuum_analyze_scale_factor')::float8 * t.n)";
const CHANGED_SETTINGS: &str = "select name || ' = ' || current_setting(name) || ' (' || source || ')' \
     from pg_settings where source <> 'default' and setting not like '/%' order by name";
const INDEXES: &str = "select indexdef from pg_indexes where schemaname = 'public' order by indexdef";

pub struct Postgres {
    process: Process,
    programs: PathBuf,
    data: PathBuf,
    cache: String,
    port: u16,
    about: About,
    control: Mutex<Control>,
}

/// A connection that asks for the server's state. What it costs is no part of the figures.
struct Control {
    wire: Wire,
    pid: u32,
}

impl Control {
    /// Connects as soon as the server, which listens first, lets users in.
    fn connect(port: u16) -> Result<Control> {
        let began = Instant::now();
        let mut wire = loop {
            match Wire::connect(port) {
                Ok(wire) => break wire,
                Err(error) => ensure!(began.elapsed() < START_TIMEOUT, "PostgreSQL is not ready: {error:#}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let rows = wire.rows_of("select pg_backend_pid()")?;
        let pid = rows.first().and_then(|row| row.first()).context("no number of a process")?.parse()?;
        Ok(Control { wire, pid })
    }
}

impl Postgres {
    /// Starts it; `programs` is the folder with `initdb` and `postgres`, `cache_mib` the size of its cache.
    pub fn start(programs: &Path, cache_mib: u64) -> Result<Postgres> {
        let (folder, port) = (new_folder("postgres"), free_port()?);
        std::fs::create_dir(&folder)?;
        let data = folder.join("data");
        own(&folder)?;
        let mut initialise = as_user(programs.join("initdb"));
        initialise.arg("-D").arg(&data).args(["-U", USER, "--auth=trust", "--no-instructions"]);
        let made = initialise.stdout(Stdio::null()).status().context("cannot start initdb")?;
        ensure!(made.success(), "initdb failed");
        let cache = format!("shared_buffers={cache_mib}MB");
        let process = Process::start(&mut server(programs, &data, &cache, port), folder, port)?;
        let about = About {
            version: first_line(Command::new(programs.join("postgres")).arg("--version"))?,
            settings: format!(
                "{cache}, {}; prepared statements; indexes on id, (doc->>'group'), (pk, n), expires",
                SETTINGS.join(", ")
            ),
            durability: "synced to disk (fsync and synchronous_commit on)".to_owned(),
        };
        let control = Mutex::new(Control::connect(port)?);
        Ok(Postgres { process, programs: programs.to_owned(), data, cache, port, about, control })
    }

    /// Stops it in order and starts it again on the same data, after `between`.
    pub fn restart(&mut self, between: impl FnOnce()) -> Result<()> {
        let mut command = server(&self.programs, &self.data, &self.cache, self.port);
        self.process.restart(&mut command, self.port, between)?;
        self.control = Mutex::new(Control::connect(self.port)?);
        Ok(())
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the folder in which Debian installs the programs.
    pub fn installed() -> Option<PathBuf> {
        let folder = PathBuf::from("/usr/lib/postgresql/15/bin");
        folder.join("initdb").exists().then_some(folder)
    }
}

/// Returns the command of the server.
fn server(programs: &Path, data: &Path, cache: &str, port: u16) -> Command {
    let mut command = as_user(programs.join("postgres"));
    command.arg("-D").arg(data).args(["-p", &port.to_string()]);
    if let Some(folder) = data.parent() {
        command.arg("-k").arg(folder);
    }
    for setting in SETTINGS.into_iter().chain([cache]) {
        command.args(["-c", setting]);
    }
    command
}

/// Returns a command as another user: PostgreSQL refuses to run as root.
fn as_user(program: PathBuf) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(program);
    command
}

fn own(folder: &Path) -> Result<()> {
    if is_root() {
        let done = Command::new("chown").arg(format!("{USER}:{USER}")).arg(folder).status()?;
        ensure!(done.success(), "cannot give the folder to {USER}");
    }
    Ok(())
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

impl Measured for Postgres {
    fn cpu_seconds(&self) -> Result<f64> {
        self.process.cpu_seconds_without(self.control().pid)
    }

    fn processes(&self) -> Result<Vec<u32>> {
        let own = self.control().pid;
        Ok(self.process.all()?.into_iter().filter(|pid| *pid != own).collect())
    }

    fn has_deferred_work(&self) -> Result<bool> {
        Ok(self.control().wire.rows_of(PENDING)? != [["0"]])
    }

    fn resident_mib(&self) -> Result<u64> {
        self.process.resident_mib()
    }

    fn disk_bytes(&self) -> Result<u64> {
        self.process.disk_bytes()
    }
}

impl Peer for Postgres {
    fn name(&self) -> &str {
        "postgresql"
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn supports(&self, kind: Kind) -> bool {
        kind != Kind::Tail
    }

    fn prepare(&self, set: &DataSet) -> Result<()> {
        let name = &set.name;
        let mut wire = Wire::connect(self.port)?;
        wire.simple(&format!(
            "create table {name} (id text primary key, pk text not null, doc jsonb not null, expires timestamptz);\
             create index on {name} ((doc->>'group'));\
             create index on {name} (pk, ((doc->>'n')::int));\
             create index on {name} (expires) where expires is not null"
        ))
    }

    fn connect(&self, set: &DataSet) -> Result<Box<dyn Connection>> {
        let mut wire = Wire::connect(self.port)?;
        for (name, text) in statements(&set.name, set.shape) {
            wire.prepare(name, &text)?;
        }
        Ok(Box::new(PostgresConnection { wire, shape: set.shape, document: String::new() }))
    }

    fn measured(&self) -> &dyn Measured {
        self
    }

    fn write_out(&self) -> Result<()> {
        self.control().wire.simple("checkpoint")
    }

    fn configuration(&self) -> Result<Vec<String>> {
        let mut control = self.control();
        let mut lines = control.wire.rows_of(CHANGED_SETTINGS)?;
        lines.extend(control.wire.rows_of(INDEXES)?);
        Ok(lines.into_iter().flatten().collect())
    }
}

fn statements(table: &str, shape: Shape) -> [(&'static str, String); 11] {
    let middle = shape.middle();
    let living = "(expires is null or expires > now())";
    [
        ("insert", format!("insert into {table} (id, pk, doc) values ($1, $2, $3)")),
        (
            "expiring",
            format!(
                "insert into {table} (id, pk, doc, expires) \
                 values ($1, $2, $3, now() + interval '{TTL_SECONDS} seconds')"
            ),
        ),
        ("read", format!("select doc from {table} where id = $1 and {living}")),
        ("replace", format!("update {table} set doc = $2 where id = $1 and {living}")),
        (
            "upsert",
            format!(
                "insert into {table} (id, pk, doc) values ($1, $2, $3) \
                 on conflict (id) do update set doc = excluded.doc, expires = null"
            ),
        ),
        (
            "patch",
            format!("update {table} set doc = jsonb_set(doc, '{{price}}', $2) where id = $1 and {living}"),
        ),
        ("query", format!("select doc from {table} where doc->>'group' = $1 and {living}")),
        ("scoped", format!("select doc from {table} where pk = $1 and doc->>'group' = $2 and {living}")),
        (
            "top",
            format!(
                "select doc from {table} where pk = $1 and {living} order by (doc->>'n')::int desc limit 10"
            ),
        ),
        (
            "count",
            format!(
                "select count(*) from {table} where pk = $1 and (doc->>'n')::int < {middle} and {living}"
            ),
        ),
        ("contains", format!("select doc from {table} where doc->>'name' like '%x%' and {living}")),
    ]
}

struct PostgresConnection {
    wire: Wire,
    shape: Shape,
    document: String,
}

impl PostgresConnection {
    fn whole(&mut self, statement: &str, id: u64, version: u64) -> Result<()> {
        self.document.clear();
        Fields::new(id, version, self.shape).json(&mut self.document);
        let (id, pk) = (id.to_string(), self.shape.partition(id).to_string());
        if statement == "replace" {
            return self.wire.execute(statement, &[&id, &self.document]);
        }
        self.wire.execute(statement, &[&id, &pk, &self.document])
    }
}

impl Connection for PostgresConnection {
    fn run(&mut self, operation: Operation) -> Result<()> {
        match operation {
            Operation::Insert(id) => self.whole("insert", id, 0),
            Operation::InsertExpiring(id) => self.whole("expiring", id, 0),
            Operation::Replace(id, version) => self.whole("replace", id, version),
            Operation::Upsert(id, version) => self.whole("upsert", id, version),
            Operation::Read(id) => self.wire.execute("read", &[&id.to_string()]),
            Operation::Patch(id, version) => {
                self.wire.execute("patch", &[&id.to_string(), &version.to_string()])
            }
            Operation::Query(group) => self.wire.execute("query", &[&format!("g{group}")]),
            Operation::Scoped(group) => {
                let pk = self.shape.partition_of_group(group).to_string();
                self.wire.execute("scoped", &[&pk, &format!("g{group}")])
            }
            Operation::Top(pk) => self.wire.execute("top", &[&pk.to_string()]),
            Operation::Count(pk) => self.wire.execute("count", &[&pk.to_string()]),
            Operation::Contains => self.wire.execute("contains", &[]),
            Operation::Tail => bail!("PostgreSQL has no feed"),
        }?;
        ensure!(self.wire.rows > 0, "nothing for {operation:?}");
        Ok(())
    }

    /// A connection reports what it has changed, which autovacuum goes by, only every few seconds.
    fn finish(&mut self) -> Result<()> {
        self.wire.simple("select pg_stat_force_next_flush()")
    }

    fn rows(&self) -> Result<usize> {
        Ok(self.wire.number.unwrap_or(self.wire.rows))
    }
}
