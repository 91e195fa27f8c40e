//! The effect of peers without a key, and of a greedy user, on other users: how an attack is run and judged.
//!
//! Each attack (`hostile_attacks.rs`, `hostile_direct.rs`) goes on while honest clients of both APIs and of direct mode work,
//! with a connection that stays and with new ones. An attack fails the check if an honest request or a new connection is
//! refused, if `/ready` does not succeed, asked also without a key on a connection of its own, if honest latency grows beyond
//! [`SLOWER_MOST`], or if memory grows by more than [`CONSTANT_MIB`], and by what the attacker may hold beside:
//!
//! | attacker | MiB |
//! |---|---|
//! | peers without a key | 160 |
//! | a key | 288: 160, and `request-memory` (128) |
//! | a user of the MongoDB API | 416: 288, and `mongo-idle-memory` (128) |
//!
//! Latency is judged for each kind of honest requests by itself, against the same server before the attack. It leaves out the
//! seconds in which other machines took the processors; where too few are left it is not judged, and the check says so.
//! Attackers run only while a processor is idle: they stand for other machines, so their own work must not take the processors
//! that the server and honest clients share.
//!
//! The environment variable `BOLIDE_ATTACKS` chooses attacks by a part of their names.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use bolide_bench::client::{Client, resident_kib_of};

use crate::honest::{ClientFigures, Kind, work};
use crate::hostile_attacks::prepare;
use crate::process::{Launch, Server};
use crate::{Outcome, Setting};

/// What requests and answers of authenticated clients may have,
const ROOM_MIB: u64 = 128;
/// and what may rest in cursors and transactions.
const IDLE_MIB: u64 = 128;
/// What the server may grow by beside: the budget of unauthenticated clients, connections, what was stored meanwhile, what the allocator keeps.
const CONSTANT_MIB: u64 = 160;
/// How much of honest latency (p99) there may be during an attack, of that before.
const SLOWER_MOST: f64 = 1.5;
/// Below these latencies are the scheduler's, on two processors that the server shares with all its clients: kernels that
/// preempt at ticks do so every 4 ms. A brief request may wait for one of them and a half; others wake more threads.
const FLOOR_BRIEF: Duration = Duration::from_millis(6);
const FLOOR_LONGER: Duration = Duration::from_millis(10);
/// An attack is tried so often until honest latency can be judged and is small enough.
const TRIES: usize = 3;
/// An attack is there before the first honest request of it.
const LEAD: Duration = Duration::from_secs(3);
/// The time limit of a user's attack.
const IDLE_USER_MAX_WAIT: Duration = Duration::from_mins(2);

/// An attack: runs until it is stopped or finished, and returns how much it did.
#[derive(Clone, Copy)]
pub struct Attack {
    name: &'static str,
    run: fn(&Server, &AtomicBool) -> Result<u64>,
    by: By,
    /// Further options of the server.
    options: &'static [&'static str],
    /// A metric that is above zero at some time of the attack: an attack that does something else than was meant does not get there.
    sign: &'static str,
}

impl Attack {
    pub const fn new(
        name: &'static str,
        by: By,
        sign: &'static str,
        run: fn(&Server, &AtomicBool) -> Result<u64>,
    ) -> Attack {
        Attack { name, run, by, options: &[], sign }
    }

    pub const fn named(self, name: &'static str) -> Attack {
        Attack { name, ..self }
    }

    pub const fn with_options(self, options: &'static [&'static str]) -> Attack {
        Attack { options, ..self }
    }
}

/// The attacker, which decides the bounds that apply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Peers without a key: nothing that is meant for others.
    Unauthenticated,
    /// A key holder, which may use idle processors.
    KeyHolder,
    /// A user that takes what it can get as long as it lasts.
    User,
    /// A user that runs its attack once.
    IdleUser,
}

impl By {
    /// Returns what the server may grow by.
    fn most_mib(self) -> u64 {
        CONSTANT_MIB
            + match self {
                By::Unauthenticated => 0,
                By::KeyHolder => ROOM_MIB,
                By::User | By::IdleUser => ROOM_MIB + IDLE_MIB,
            }
    }
}

/// Runs one attack after the other.
pub fn run_attacks(setting: &Setting, place: &Path, attacks: &[Attack]) -> Result<Outcome> {
    let length = Duration::from_secs(setting.rounds(4, 12, 60));
    let mut launch = Launch::new(&setting.server, place);
    let [room, idle] = [ROOM_MIB, IDLE_MIB].map(|mib| (mib << 20).to_string());
    let bounds = ["--request-memory", &room, "--mongo-idle-memory", &idle];
    let (mut told, mut failed, mut unjudged) = (Vec::new(), Vec::new(), Vec::new());
    let chosen = std::env::var("BOLIDE_ATTACKS").unwrap_or_default();
    let selected: Vec<&Attack> = attacks.iter().filter(|attack| attack.name.contains(&chosen)).collect();
    ensure!(!selected.is_empty(), "no attack has '{chosen}' (BOLIDE_ATTACKS) in its name");
    for &attack in &selected {
        // A client without a key is unauthenticated for the MongoDB API, too.
        let options = bounds.iter().chain(&["--mongo-auth"]).chain(attack.options);
        launch.options = options.map(|&word| word.to_owned()).collect();
        match attempts(&launch, attack, length)? {
            Verdict::Held(figures) => {
                println!("  held: {}: {figures}", attack.name);
                told.push(format!("{}: {figures}", attack.name));
            }
            Verdict::Unjudged(figures) => {
                println!("  held, latency not judged: {}: {figures}", attack.name);
                unjudged.push(attack.name);
            }
            Verdict::Slow(error) | Verdict::Failed(error) => {
                println!("  FAILED: {}: {error:#}", attack.name);
                failed.push(attack.name);
            }
        }
    }
    ensure!(failed.is_empty(), "{} of {} attacks: {}", failed.len(), selected.len(), failed.join("; "));
    if selected.len() < attacks.len() {
        told.insert(0, format!("only {} of {} attacks (BOLIDE_ATTACKS)", selected.len(), attacks.len()));
    }
    if !unjudged.is_empty() {
        return Ok(Outcome::Skipped(format!(
            "other machines took the processors, so latency was not judged of: {}; all else held",
            unjudged.join("; ")
        )));
    }
    Ok(Outcome::Held(told.join("; ")))
}

/// What came of an attack.
enum Verdict {
    Held(String),
    /// All but the latency held, which could not be judged.
    Unjudged(String),
    /// All but the latency held.
    Slow(anyhow::Error),
    Failed(anyhow::Error),
}

impl Verdict {
    /// Returns what holds after another try. One that could not be judged says nothing against an earlier one that was slow.
    fn or_later(self, next: Verdict) -> Verdict {
        match (&self, &next) {
            (Verdict::Slow(_), Verdict::Unjudged(_)) => self,
            _ => next,
        }
    }
}

/// Tries an attack until its latency can be judged and is small: a machine that is busy with something else makes it large by
/// chance, an attack each time.
fn attempts(launch: &Launch, attack: &Attack, length: Duration) -> Result<Verdict> {
    let mut verdict = Verdict::Unjudged("not tried".to_owned());
    for _ in 0..TRIES {
        // Each begins with a server that is calm.
        let server = launch.start()?;
        prepare(&server)?;
        work(&server, || Duration::from_secs(1))?;
        let before = work(&server, || length)?;
        let memory = resident_kib_of(server.id())?.0 / 1024;
        let next = judge(&server, attack, &before, memory, length).unwrap_or_else(Verdict::Failed);
        verdict = verdict.or_later(next);
        server.kill()?;
        std::fs::remove_dir_all(&launch.data).context("cannot remove the data")?;
        if matches!(verdict, Verdict::Held(_) | Verdict::Failed(_)) {
            break;
        }
    }
    Ok(verdict)
}

fn judge(
    server: &Server,
    attack: &Attack,
    before: &ClientFigures,
    memory_mib: u64,
    length: Duration,
) -> Result<Verdict> {
    let over = AtomicBool::new(false);
    let (during, made, peak_mib) = std::thread::scope(|scope| -> Result<_> {
        let crowd = scope.spawn(|| {
            only_use_idle_processors()?;
            (attack.run)(server, &over)
        });
        let peak = scope.spawn(|| peak_mib(server, &over));
        let seen = scope.spawn(|| peak_of_metric(server, attack.sign, &over));
        if attack.by != By::IdleUser {
            // The attack is there before the first honest request of it.
            std::thread::sleep(LEAD);
        }
        let max_wait = || match attack.by {
            By::IdleUser if !crowd.is_finished() => IDLE_USER_MAX_WAIT,
            _ => length,
        };
        let during = work(server, max_wait);
        over.store(true, Ordering::Relaxed);
        let made = crowd.join().expect("it does not panic");
        let seen = seen.join().expect("it does not panic")?;
        ensure!(seen > 0.0, "{} is {seen}: there was no such attack", attack.sign);
        Ok((during?, made?, peak.join().expect("it does not panic")?))
    })?;
    ensure!(made > 0, "no connection was made, which is no attack");
    let grown = peak_mib.saturating_sub(memory_mib);
    let figures = format!(
        "{} honest requests, {} refused; {}; {made} attempts; {grown} MiB more",
        during.requests,
        during.refused.len(),
        Kind::ALL.map(|kind| latencies(kind, before, &during)).join(", "),
    );
    ensure!(during.refused.is_empty(), "{figures}: {:?}", during.refused.first());
    ensure!(during.is_ready, "{figures}: /ready did not say that honest work goes on");
    let most = attack.by.most_mib();
    ensure!(grown <= most, "{figures}: memory grew by {grown} MiB, {most} MiB would do");
    let mut is_judged = true;
    for kind in Kind::ALL {
        let (Some(before_us), Some(during_us)) = (before.latency_us(kind), during.latency_us(kind)) else {
            is_judged = false;
            continue;
        };
        // Users that fill memory store or group large documents, which occupies a processor for longer than a tick at a time.
        let is_brief = kind == Kind::Brief && attack.by != By::IdleUser;
        let floor = if is_brief { FLOOR_BRIEF } else { FLOOR_LONGER };
        let limit = (before_us * SLOWER_MOST).max(floor.as_micros() as f64);
        if during_us > limit {
            let (what, _) = kind.judged();
            return Ok(Verdict::Slow(anyhow!("{figures}: {:.1} ms would do for {what}", limit / 1e3)));
        }
    }
    Ok(if is_judged { Verdict::Held(figures) } else { Verdict::Unjudged(figures) })
}

/// Returns the latencies of a kind of requests before and during an attack, as text.
fn latencies(kind: Kind, before: &ClientFigures, during: &ClientFigures) -> String {
    let (what, percent) = kind.judged();
    let [before, during] = [before, during].map(|figures| shown(figures.latency_us(kind)));
    format!("p{percent} of {what} {before} before and {during} during")
}

/// Lets this thread, and those that it starts, run only where no other thread wants to.
fn only_use_idle_processors() -> Result<()> {
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let status = Command::new("chrt").args(["--idle", "--pid", "0", &thread]).status();
    ensure!(status.context("cannot run chrt")?.success(), "chrt refuses to change a policy");
    Ok(())
}

fn shown(latency_us: Option<f64>) -> String {
    latency_us.map_or_else(|| "of too few latencies".to_owned(), |us| format!("{:.1} ms", us / 1e3))
}

/// Returns the sum of a metric over its labels. It is asked for with the key: without one the scrape would be a peer without a
/// key, too, and its page larger than what one of the attackers holds, so that its connection would be the first to be closed.
/// What an operator without a key sees during an attack, `/ready`, honest clients ask for.
fn metric(server: &Server, name: &str) -> Result<f64> {
    let page = Client::connect(&server.address)?.admin("GET", "/metrics", "")?.expect(200)?.body;
    let values = page.lines().filter_map(|line| {
        let (found, value) = line.rsplit_once(' ')?;
        (found.split('{').next() == Some(name)).then(|| value.parse::<f64>().ok())?
    });
    Ok(values.sum())
}

/// Returns the largest value that a metric has from the time when the attack is there: at its end it may have nothing left of
/// what it had.
fn peak_of_metric(server: &Server, name: &str, over: &AtomicBool) -> Result<f64> {
    std::thread::sleep(LEAD);
    let mut peak = 0_f64;
    loop {
        let is_last = over.load(Ordering::Relaxed);
        match metric(server, name) {
            Ok(value) => peak = peak.max(value),
            Err(error) if is_last => return Err(error),
            Err(_) => {}
        }
        if is_last {
            return Ok(peak);
        }
        std::thread::sleep(Duration::from_millis(250));
    }
}

fn peak_mib(server: &Server, over: &AtomicBool) -> Result<u64> {
    let mut peak = 0;
    while !over.load(Ordering::Relaxed) {
        peak = peak.max(resident_kib_of(server.id())?.0 / 1024);
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(peak)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
        verdicts.into_iter().fold(Verdict::Unjudged(String::new()), Verdict::or_later)
    }

    #[test]
    fn a_try_that_cannot_be_judged_excuses_no_slow_one() {
        let slow = || Verdict::Slow(anyhow!("slow"));
        let unjudged = || Verdict::Unjudged(String::new());
        let held = || Verdict::Held(String::new());
        assert!(matches!(tried([slow(), unjudged()]), Verdict::Slow(_)));
        assert!(matches!(tried([unjudged(), slow(), unjudged()]), Verdict::Slow(_)));
        assert!(matches!(tried([slow(), unjudged(), held()]), Verdict::Held(_)));
        assert!(matches!(tried([unjudged()]), Verdict::Unjudged(_)));
    }
}
