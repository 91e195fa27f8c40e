//! Transactions as functions: what a store runs, and the convenient way to hand it over.

use crate::ticket::{Resolver, Ticket, ticket};
use crate::{Error, Lanes, Result, Store, Transaction};

/// Whether a job's writes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Commit them.
    Commit,
    /// Forget them, and the sequences taken.
    Abort,
}

/// Work that runs while its lanes are held. It must not call the store it runs in.
pub trait Job: Send {
    /// Reads and writes. A panic counts as [`Verdict::Abort`] and fails this job alone.
    fn run(&mut self, transaction: &mut Transaction<'_>) -> Verdict;

    /// Called once, when the job's group is durable or has failed; also after an abort, since what the
    /// job read may have been written by a neighbour that was not durable yet.
    fn done(self: Box<Self>, outcome: Result<()>);

    /// Whether a crash may undo it after it was answered: it would be found again and done again. A group of nothing else is
    /// written but not synced, and becomes durable with the next one that is: always before what comes later.
    fn may_be_undone(&self) -> bool {
        false
    }
}

/// Runs `run` as a transaction; an `Err` aborts it. The ticket resolves once the outcome is durable.
pub fn transact<R, E>(
    store: &dyn Store,
    lanes: Lanes,
    run: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E> + Send + 'static,
) -> Ticket<std::result::Result<R, E>>
where
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    hand_over(store, lanes, run, false)
}

/// As [`transact`], for work of which a crash leaves either all to do again or nothing: nobody waits for the disk.
pub fn transact_lazily<R, E>(
    store: &dyn Store,
    lanes: Lanes,
    run: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E> + Send + 'static,
) -> Ticket<std::result::Result<R, E>>
where
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    hand_over(store, lanes, run, true)
}

fn hand_over<R, E>(
    store: &dyn Store,
    lanes: Lanes,
    run: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E> + Send + 'static,
    may_be_undone: bool,
) -> Ticket<std::result::Result<R, E>>
where
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let (resolver, ticket) = ticket();
    let job = Function { run: Some(run), answer: None, resolver: Some(resolver), may_be_undone };
    store.submit(lanes, Box::new(job));
    ticket
}

/// A function as a job.
struct Function<F, R, E: From<Error>> {
    may_be_undone: bool,
    run: Option<F>,
    answer: Option<std::result::Result<R, E>>,
    resolver: Option<Resolver<std::result::Result<R, E>>>,
}

impl<F, R, E> Job for Function<F, R, E>
where
    F: FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E> + Send,
    R: Send,
    E: From<Error> + Send,
{
    fn run(&mut self, transaction: &mut Transaction<'_>) -> Verdict {
        let run = self.run.take().expect("a job runs once");
        let answer = run(transaction);
        let verdict = if answer.is_ok() { Verdict::Commit } else { Verdict::Abort };
        self.answer = Some(answer);
        verdict
    }

    fn done(mut self: Box<Self>, outcome: Result<()>) {
        let answer = match (outcome, self.answer.take()) {
            (Err(error), _) => Err(E::from(error)),
            (Ok(()), Some(answer)) => answer,
            (Ok(()), None) => Err(E::from(Error::Internal { message: "a job was not run".to_owned() })),
        };
        if let Some(resolver) = self.resolver.take() {
            resolver.resolve(answer);
        }
    }

    fn may_be_undone(&self) -> bool {
        self.may_be_undone
    }
}

/// Nobody waits for ever: a job that is dropped unanswered, because its store died, says so.
impl<F, R, E: From<Error>> Drop for Function<F, R, E> {
    fn drop(&mut self) {
        if let Some(resolver) = self.resolver.take() {
            resolver.resolve(Err(E::from(Error::Poisoned { cause: "the store stopped".to_owned() })));
        }
    }
}
