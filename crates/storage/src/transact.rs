//! Transactions as functions: the convenient way to hand a store its work.

use crate::ticket::{Resolver, Ticket, ticket};
use crate::{Error, Extent, Job, Lanes, Priority, Result, Store, Transaction, Verdict};

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
