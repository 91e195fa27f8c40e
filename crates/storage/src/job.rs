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

/// How far a commit must get before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Onto the disk, with all that was written before.
    Synced,
    /// Out of our hands: a crash of the system may undo it, of the process not. It becomes durable with the next commit that is
    /// synced, always before what comes later.
    Written,
}

/// When a job runs, among others that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// In the order of submission.
    Normal,
    /// When no other work waits, so that it uses the writer's idle moments. On a writer that has none it runs after a few
    /// groups, as the last job of one, so that it shares that group's sync.
    Background,
}

/// Work that runs while its lanes are held. It must not call the store it runs in.
pub trait Job: Send {
    /// Reads and writes. A panic counts as [`Verdict::Abort`] and fails this job alone.
    fn run(&mut self, transaction: &mut Transaction<'_>) -> Verdict;

    /// Called once, when the job's group is durable or has failed; also after an abort, since what the
    /// job read may have been written by a neighbour that was not durable yet.
    fn done(self: Box<Self>, outcome: Result<()>);

    /// How far its group must get at least. What need not be synced is found again and done again if a crash undoes it.
    fn extent(&self) -> Extent {
        Extent::Synced
    }

    /// When it runs, among others that wait.
    fn priority(&self) -> Priority {
        Priority::Normal
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
    transact_to(store, lanes, Extent::Synced, run)
}

/// As [`transact`]; `note` is called with what was answered once that is durable, and before the ticket resolves. It runs on the
/// store's writer thread: it must be brief and not call the store.
pub fn transact_noting<R, E>(
    store: &dyn Store,
    lanes: Lanes,
    run: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E> + Send + 'static,
    note: impl FnOnce(&R) + Send + 'static,
) -> Ticket<std::result::Result<R, E>>
where
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    submit(store, lanes, (Extent::Synced, Priority::Normal), run, note)
}

/// As [`transact`]; the ticket resolves once the outcome has got so far.
pub fn transact_to<R, E>(
    store: &dyn Store,
    lanes: Lanes,
    extent: Extent,
    run: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E> + Send + 'static,
) -> Ticket<std::result::Result<R, E>>
where
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    submit(store, lanes, (extent, Priority::Normal), run, |_| ())
}

/// As [`transact_to`], with [background priority](Priority::Background).
pub fn transact_in_background<R, E>(
    store: &dyn Store,
    lanes: Lanes,
    extent: Extent,
    run: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E> + Send + 'static,
) -> Ticket<std::result::Result<R, E>>
where
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    submit(store, lanes, (extent, Priority::Background), run, |_| ())
}

fn submit<R, E>(
    store: &dyn Store,
    lanes: Lanes,
    (extent, priority): (Extent, Priority),
    run: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E> + Send + 'static,
    note: impl FnOnce(&R) + Send + 'static,
) -> Ticket<std::result::Result<R, E>>
where
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let (resolver, ticket) = ticket();
    let job = Function {
        run: Some(run),
        note: Some(note),
        answer: None,
        resolver: Some(resolver),
        extent,
        priority,
    };
    store.submit(lanes, Box::new(job));
    ticket
}

/// A function as a job.
struct Function<F, N, R, E: From<Error>> {
    run: Option<F>,
    note: Option<N>,
    answer: Option<std::result::Result<R, E>>,
    resolver: Option<Resolver<std::result::Result<R, E>>>,
    extent: Extent,
    priority: Priority,
}

impl<F, N, R, E> Job for Function<F, N, R, E>
where
    F: FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E> + Send,
    N: FnOnce(&R) + Send,
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
        if let (Ok(answer), Some(note)) = (&answer, self.note.take()) {
            note(answer);
        }
        if let Some(resolver) = self.resolver.take() {
            resolver.resolve(answer);
        }
    }

    fn extent(&self) -> Extent {
        self.extent
    }

    fn priority(&self) -> Priority {
        self.priority
    }
}

/// Nobody waits for ever: a job that is dropped unanswered, because its store died, says so.
impl<F, N, R, E: From<Error>> Drop for Function<F, N, R, E> {
    fn drop(&mut self) {
        if let Some(resolver) = self.resolver.take() {
            resolver.resolve(Err(E::from(Error::Poisoned { cause: "the store stopped".to_owned() })));
        }
    }
}
