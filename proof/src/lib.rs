//! Reliability checks of the real binary under crashes, failures and hostile clients.
//!
//! One file for each check, one row for each in [`CHECKS`]. A check draws everything random from its seed, works in a
//! directory of its own, and fails with an error that names what did not hold; the directory then stays.
//!
//! | file | what |
//! |---|---|
//! | `kills.rs` | the check: kill -9 under load; `disturb.rs` is what else goes on, `verify.rs` what is compared, `backups.rs` what must be in a backup |
//! | `powerloss.rs` | the check: power loss after each sync; `recording.rs` reads what strace saw, `disk.rs` is the disk that is left |
//! | `failures.rs`, `diskfull.rs` | the checks: operations that fail one after the other, and no room on the disk; `tracer.rs` lets them fail |
//! | `ledger.rs`, `times.rs` | what was acknowledged, and what follows from it at which time |
//! | `restarts.rs` | the check: stops in order under load in direct mode |
//! | `world.rs`, `items.rs`, `writer.rs`, `wire_writer.rs` | the items and the writers |
//! | `item_client.rs` | item operations over HTTP and in direct mode |
//! | `linear/` | concurrent operations on few items, judged by a search for an order that explains them |
//! | `overload.rs` | three times the capacity, open loop |
//! | `overload_peers.rs`, `overload_files.rs`, `overload_memory.rs`, `counted_memory.rs` | hostile peers, and the bounds of each resource |
//! | `steady.rs` | a stream of inserts that expire: the purge keeps up |
//! | `hostile.rs` | what peers without a key and greedy users take from the others; `hostile_attacks.rs` is the table of attacks, `hostile_peers.rs` are the peers, as bytes, `hostile_users.rs` the users, `honest.rs` the others |
//! | `hostile_direct.rs` | the same of peers without a key in direct mode |
//! | `idle.rs` | the start time and memory of an idle server |
//! | `refusals.rs` | what can be learnt from the time that refusals take |
//! | `process.rs` | the server as a process: started, killed, stopped, under strace if need be |

pub mod backups;
pub mod counted_memory;
pub mod disk;
pub mod diskfull;
pub mod disturb;
pub mod failures;
pub mod honest;
pub mod hostile;
pub mod hostile_attacks;
pub mod hostile_direct;
pub mod hostile_peers;
pub mod hostile_users;
pub mod idle;
pub mod item_client;
pub mod items;
pub mod kills;
pub mod ledger;
pub mod linear;
pub mod overload;
pub mod overload_files;
pub mod overload_memory;
pub mod overload_peers;
pub mod powerloss;
pub mod process;
pub mod recording;
pub mod refusals;
pub mod restarts;
pub mod shown;
pub mod steady;
pub mod times;
pub mod tracer;
pub mod verify;
pub mod wire_writer;
pub mod world;
pub mod writer;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// How much of a check to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Seconds: part of the test suite.
    Quick,
    /// A minute or two.
    Ordinary,
    /// As long as it takes to be sure.
    Long,
}

/// How a check ended, if nothing was found.
pub enum Outcome {
    /// The figures of a check.
    Held(String),
    /// The reason why this machine cannot run the check.
    Skipped(String),
}

/// A row of the table of checks.
pub struct Check {
    pub name: &'static str,
    pub what: &'static str,
    /// The least effort at which `all` includes it.
    pub from: Effort,
    pub run: fn(&Setting, &Path) -> Result<Outcome>,
}

/// All checks, cheap ones first.
pub const CHECKS: &[Check] = &[
    Check {
        name: "idle",
        what: "on an empty store the server starts fast and uses little memory",
        from: Effort::Quick,
        run: idle::run,
    },
    Check {
        name: "refusals",
        what: "the duration of a refusal reveals nothing about keys and users",
        from: Effort::Ordinary,
        run: refusals::run,
    },
    Check {
        name: "files",
        what: "few file descriptors, and then none: connections are refused, the store keeps its own",
        from: Effort::Quick,
        run: overload_files::run,
    },
    Check {
        name: "connections",
        what: "ten thousand connections use little memory and do not disturb other clients",
        from: Effort::Quick,
        run: overload_peers::connections,
    },
    Check {
        name: "half-open",
        what: "connections of peers that vanish or fall silent are closed in time",
        from: Effort::Ordinary,
        run: overload_peers::half_open,
    },
    Check {
        name: "slow-readers",
        what: "peers that do not read their answers hold a bounded amount of memory",
        from: Effort::Ordinary,
        run: overload_peers::slow_readers,
    },
    Check {
        name: "memory",
        what: "the process stays below a memory limit, whatever peers request",
        from: Effort::Ordinary,
        run: overload_memory::run,
    },
    Check {
        name: "counted-memory",
        what: "the bytes counted for peers match the memory of the process",
        from: Effort::Quick,
        run: counted_memory::run,
    },
    Check {
        name: "hostile",
        what: "peers without a key, and a greedy user, take nothing that honest clients need",
        from: Effort::Ordinary,
        run: hostile_attacks::run,
    },
    Check {
        name: "hostile-direct",
        what: "peers without a key in direct mode take nothing that honest clients need",
        from: Effort::Ordinary,
        run: hostile_direct::run,
    },
    Check {
        name: "overload",
        what: "three times the capacity: no collapse, bounded waits, full recovery",
        from: Effort::Ordinary,
        run: overload::run,
    },
    Check {
        name: "steady",
        what: "items expire as fast as they are inserted: the purge keeps up, and writers hardly notice",
        from: Effort::Ordinary,
        run: steady::run,
    },
    Check {
        name: "linear",
        what: "concurrent operations on an item are answered as if they ran one after the other",
        from: Effort::Quick,
        run: linear::run,
    },
    Check {
        name: "sabotage",
        what: "the harness notices when acknowledged writes are taken away",
        from: Effort::Quick,
        run: kills::sabotage,
    },
    Check {
        name: "kills",
        what: "kill -9 under load: no acknowledged write is lost, no expired item returns, no write is half done",
        from: Effort::Quick,
        run: kills::run,
    },
    Check {
        name: "restarts",
        what: "a server that stops in order has done nothing in direct mode that it does not answer",
        from: Effort::Quick,
        run: restarts::run,
    },
    Check {
        name: "powerloss",
        what: "power loss after each sync: every acknowledged write is there, whatever is left of the rest",
        from: Effort::Quick,
        run: powerloss::run,
    },
    Check {
        name: "failures",
        what: "writes, syncs and renames fail one after the other: no acknowledged write is lost, and the reason is reported",
        from: Effort::Quick,
        run: failures::run,
    },
    Check {
        name: "diskfull",
        what: "a full disk: reads go on, writes fail with the reason, with room again nothing is missing",
        from: Effort::Quick,
        run: diskfull::run,
    },
];

/// The settings of a check.
pub struct Setting {
    /// The server's binary.
    pub server: PathBuf,
    pub seed: u64,
    /// Rounds, in place of the check's own number.
    pub count: Option<u64>,
    pub effort: Effort,
    /// Where checks make their directories.
    pub directory: PathBuf,
}

impl Setting {
    pub fn new(server: impl Into<PathBuf>) -> Setting {
        Setting {
            server: server.into(),
            seed: fastrand::u64(..1_000_000_000),
            count: None,
            effort: Effort::Ordinary,
            directory: std::env::temp_dir().join(format!("bolide-proof-{}", std::process::id())),
        }
    }

    /// Returns how many rounds to do.
    pub fn rounds(&self, quick: u64, ordinary: u64, long: u64) -> u64 {
        self.count.unwrap_or(match self.effort {
            Effort::Quick => quick,
            Effort::Ordinary => ordinary,
            Effort::Long => long,
        })
    }

    /// Returns the directory of a check.
    pub fn place(&self, check: &Check) -> PathBuf {
        self.directory.join(check.name)
    }

    /// Runs a check in its directory, which is removed if everything held.
    pub fn within(&self, check: &Check) -> Result<Outcome> {
        let place = self.place(check);
        std::fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
        let outcome = (check.run)(self, &place)?;
        std::fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
        // It stays as long as another check has left something in it.
        let _ = std::fs::remove_dir(&self.directory);
        Ok(outcome)
    }
}
