//! Concurrent item operations against a live server are linearizable: a server that runs one operation after the other
//! could have given the same answers, with each operation at some instant between its request and its answer (T13, T15 and
//! conditions on versions included).
//!
//! | file | what |
//! |---|---|
//! | `search.rs` | whether a history is linearizable |
//! | `items.rs` | what item operations do, one after the other, and how the clock lets items expire |
//! | `clients.rs` | the operations of both APIs; of the NoSQL API by HTTP and in direct mode |
//! | `false_histories.rs` | histories that must be refused |
//!
//! A history is short, a few clients on a few items, because many short ones show more than a long one. Moving the test
//! clock is one of the operations, so expiry has its place among the writes. Each history is also judged with one of its
//! answers falsified (`false_histories.rs`): a checker that accepts that would accept anything.

mod clients;
mod false_histories;
pub mod items;
pub mod search;

use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;

use crate::process::{Launch, Server};
use crate::{Outcome, Setting};
use clients::{Client, Nosql, Wire};
use items::{Answer, Call, Items, Tag};
use search::{Operation, Verdict, search};

const CLIENTS: usize = 5;
const KEYS: usize = 2;
const OPERATIONS: usize = 14;

/// Within so many rounds each way to falsify a history was possible once: in about one history in seven two clients replace
/// the same version.
const FALSIFIED_WITHIN: u64 = 200;

type History = Vec<Operation<Call, Answer>>;

/// Records histories of both APIs and judges them.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    let launch = Launch::new(&setting.server, place);
    let server = launch.start()?;
    Nosql::prepare(&server)?;
    Wire::prepare(&server)?;
    let rounds = setting.rounds(8, 100, 2000);
    let mut sums = Sums::default();
    for round in 0..rounds.max(FALSIFIED_WITHIN) {
        // Which clients meet is chance: a short run may need more rounds than it asked for.
        if round >= rounds && sums.is_falsified_in_each_way() {
            break;
        }
        let seed = setting.seed.wrapping_mul(1_000_003).wrapping_add(round);
        sums.judge(&record::<Nosql>(&server, round, seed)?, seed, place)?;
        sums.judge(&record::<Wire>(&server, round, seed)?, seed, place)?;
    }
    ensure!(sums.is_falsified_in_each_way(), "no history could be falsified in each way");
    ensure!(server.stop(std::time::Duration::from_secs(30))?.success(), "the server did not end in order");
    launch.inspect()?;
    Ok(Outcome::Held(format!(
        "{} histories of {} operations, {} of them beside another one, {} steps of the clock; refused were {} with a stale \
         read and {} with two winners of one version",
        sums.histories, sums.operations, sums.overlapping, sums.clock_steps, sums.stale, sums.second_winners
    )))
}

/// The figures of a check.
#[derive(Default)]
struct Sums {
    histories: u64,
    operations: usize,
    overlapping: usize,
    clock_steps: usize,
    /// Falsified histories that were refused.
    stale: u64,
    second_winners: u64,
}

impl Sums {
    /// Whether the checker has refused each kind of falsified history.
    fn is_falsified_in_each_way(&self) -> bool {
        self.stale > 0 && self.second_winners > 0
    }

    fn add(&mut self, history: &History) {
        self.histories += 1;
        self.operations += history.len();
        let beside = |one: &&Operation<Call, Answer>| {
            history.iter().any(|other| {
                other.client != one.client && other.began <= one.ended && one.began <= other.ended
            })
        };
        self.overlapping += history.iter().filter(beside).count();
        self.clock_steps += history.iter().filter(|one| one.call == Call::MoveClock).count();
    }

    /// Adds a history if it is linearizable, and no longer is once falsified.
    fn judge(&mut self, history: &History, seed: u64, place: &Path) -> Result<()> {
        is_linear(history, seed, place)?;
        self.add(history);
        for (lie, count) in [
            (false_histories::stale_read(history), &mut self.stale),
            (false_histories::second_winner(history), &mut self.second_winners),
        ] {
            let Some(lie) = lie else { continue };
            let verdict = search(&Items { keys: KEYS }, &lie);
            ensure!(matches!(verdict, Verdict::Broken { .. }), "the checker believes a lie: {lie:?}");
            *count += 1;
        }
        Ok(())
    }
}

fn is_linear(history: &History, seed: u64, place: &Path) -> Result<()> {
    if let Verdict::Broken { explained, stuck } = search(&Items { keys: KEYS }, history) {
        let file = place.join(format!("history-{seed}.txt"));
        std::fs::write(&file, told(history, &explained, &stuck))?;
        bail!(
            "a history is not linearizable: {} of {} operations are explained, see {}",
            explained.len(),
            history.len(),
            file.display()
        );
    }
    Ok(())
}

/// Returns a history as text: the explained operations in their order, then the rest in the order of their beginnings.
fn told(history: &History, explained: &[usize], stuck: &[usize]) -> String {
    let line = |mark: &str, operation: &Operation<Call, Answer>| {
        let Operation { client, call, answer, began, ended } = operation;
        format!("{mark} {began:>12} {ended:>12} client {client}: {call:?} -> {answer:?}\n")
    };
    let mut rest: Vec<usize> = (0..history.len()).filter(|at| !explained.contains(at)).collect();
    rest.sort_by_key(|at| history[*at].began);
    let done = explained.iter().map(|at| line("explained", &history[*at]));
    let open =
        rest.iter().map(|at| line(if stuck.contains(at) { "stuck    " } else { "later    " }, &history[*at]));
    done.chain(open).collect()
}

/// Runs clients on new items and records the answers.
fn record<C: Client>(server: &Server, round: u64, seed: u64) -> Result<History> {
    let (begin, ready) = (Instant::now(), Barrier::new(CLIENTS));
    let (begin, ready) = (&begin, &ready);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                scope.spawn(move || -> Result<History> {
                    let client = C::connect(server, round, number);
                    ready.wait();
                    perform(client?, number, Rng::with_seed(seed ^ (number as u64) << 48), begin)
                })
            })
            .collect();
        let mut history = History::new();
        for client in clients {
            history.extend(client.join().map_err(|_| anyhow::anyhow!("a client's thread panicked"))??);
        }
        Ok(history)
    })
}

fn perform(mut client: impl Client, number: usize, mut random: Rng, begin: &Instant) -> Result<History> {
    let mut seen: Vec<Option<Tag>> = vec![None; KEYS];
    let mut history = History::new();
    for turn in 0..OPERATIONS {
        // No other client writes it.
        let value = (number * OPERATIONS + turn) as u64 * 1000;
        let call = draw(&mut random, value, &seen);
        let began = begin.elapsed().as_nanos() as u64;
        let answer = client.perform(&call).with_context(|| format!("client {number}: {call:?}"))?;
        let ended = begin.elapsed().as_nanos() as u64;
        if let (Some(key), Answer::Value { tag, .. } | Answer::Written { tag, .. }) = (key_of(&call), &answer)
        {
            seen[key] = Some(tag.clone());
        }
        history.push(Operation { client: number, call, answer, began, ended });
    }
    Ok(history)
}

/// Returns the next operation; conditions name the version that the client saw last.
fn draw(random: &mut Rng, value: u64, seen: &[Option<Tag>]) -> Call {
    let key = random.usize(..KEYS);
    let at = seen[key].clone().filter(|_| random.u8(..4) > 0);
    match random.u8(..100) {
        0..30 => Call::Read { key },
        30..44 => Call::Create { key, value },
        44..56 => Call::Put { key, value },
        56..74 => Call::Replace { key, value, at },
        74..84 => Call::Add { key },
        84..96 => Call::Delete { key, at },
        _ => Call::MoveClock,
    }
}

fn key_of(call: &Call) -> Option<usize> {
    match call {
        Call::Create { key, .. }
        | Call::Put { key, .. }
        | Call::Replace { key, .. }
        | Call::Delete { key, .. }
        | Call::Read { key }
        | Call::Add { key } => Some(*key),
        Call::MoveClock => None,
    }
}
