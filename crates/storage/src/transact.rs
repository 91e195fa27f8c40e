//! Transactions as functions, the convenient way to submit a job.

use crate::ticket::{Resolver, Ticket, ticket};
use crate::{Durability, Error, Job, Lanes, Priority, Result, Store, Transaction, Verdict};

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
    transact_with(store, lanes, Durability::Sync, run)
}

/// Runs `run` as [`transact`] does, and calls `note` with its answer once that is durable, before the ticket resolves.
/// `note` runs on the store's writer thread: it must be brief and must not call the store.
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
    submit(store, lanes, (Durability::Sync, Priority::Normal), run, note)
}

/// Runs `run` as [`transact`] does, with this durability.
pub fn transact_with<R, E>(
    store: &dyn Store,
    lanes: Lanes,
    durability: Durability,
    run: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E> + Send + 'static,
) -> Ticket<std::result::Result<R, E>>
where
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    submit(store, lanes, (durability, Priority::Normal), run, |_| ())
}

/// Runs `run` as [`transact_with`] does, with [background priority](Priority::Background).
pub fn transact_in_background<R, E>(
    store: &dyn Store,
    lanes: Lanes,
    durability: Durability,
    run: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E> + Send + 'static,
) -> Ticket<std::result::Result<R, E>>
where
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    submit(store, lanes, (durability, Priority::Background), run, |_| ())
}

fn submit<R, E>(
    store: &dyn Store,
    lanes: Lanes,
    (durability, priority): (Durability, Priority),
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
        durability,
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
    durability: Durability,
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

    fn durability(&self) -> Durability {
        self.durability
    }

    fn priority(&self) -> Priority {
        self.priority
    }
}

/// Resolves the ticket of a job that is dropped unanswered because its store has stopped, so that its caller does not
/// wait forever.
impl<F, N, R, E: From<Error>> Drop for Function<F, N, R, E> {
    fn drop(&mut self) {
        if let Some(resolver) = self.resolver.take() {
            resolver.resolve(Err(E::from(Error::Poisoned { cause: "the store stopped".to_owned() })));
        }
    }
}
