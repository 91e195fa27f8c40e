//! Results that are not available yet: a thread waits for one, or a task of any runtime awaits it.

use crate::sync::{Condvar, Mutex};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The receipt for a submitted transaction. It resolves once the transaction is durable or has failed.
#[must_use = "a transaction is known to be durable only when its ticket resolves"]
pub struct Ticket<T>(Arc<Shared<T>>);

/// The sending end of a ticket.
pub(crate) struct Resolver<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    resolved: Condvar,
}

enum State<T> {
    Waiting(Option<Waker>),
    Resolved(T),
    Taken,
}

/// Creates a ticket and its resolver.
pub(crate) fn ticket<T>() -> (Resolver<T>, Ticket<T>) {
    let shared = Arc::new(Shared { state: Mutex::new(State::Waiting(None)), resolved: Condvar::new() });
    (Resolver(Arc::clone(&shared)), Ticket(shared))
}

impl<T> Resolver<T> {
    pub(crate) fn resolve(self, value: T) {
        let before = std::mem::replace(&mut *self.0.state.lock(), State::Resolved(value));
        self.0.resolved.notify_all();
        if let State::Waiting(Some(waker)) = before {
            waker.wake();
        }
    }
}

impl<T> Ticket<T> {
    /// Creates a ticket with a known result, for a request refused before it was submitted.
    pub fn ready(value: T) -> Self {
        Self(Arc::new(Shared { state: Mutex::new(State::Resolved(value)), resolved: Condvar::new() }))
    }

    /// Blocks this thread until the result is available. Never call it inside a job.
    pub fn wait(self) -> T {
        let mut state = self.0.state.lock();
        loop {
            if let Some(value) = take(&mut state) {
                return value;
            }
            self.0.resolved.wait(&mut state);
        }
    }
}

impl<T> Future for Ticket<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.0.state.lock();
        if let Some(value) = take(&mut state) {
            return Poll::Ready(value);
        }
        *state = State::Waiting(Some(context.waker().clone()));
        Poll::Pending
    }
}

/// Takes the result, if available; only a future polled after completion finds it taken.
fn take<T>(state: &mut State<T>) -> Option<T> {
    match std::mem::replace(state, State::Taken) {
        State::Resolved(value) => Some(value),
        State::Waiting(waker) => {
            *state = State::Waiting(waker);
            None
        }
        State::Taken => panic!("a ticket is asked again after it gave its result"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Ticket, ticket};
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_ticket_wakes_the_task_that_awaits_it() {
        let count = Arc::new(Count::default());
        let waker = Arc::clone(&count).into();
        let mut context = Context::from_waker(&waker);
        let (resolver, ticket) = ticket();
        let mut ticket = pin!(ticket);
        assert_eq!(ticket.as_mut().poll(&mut context), Poll::Pending);
        resolver.resolve(7);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(ticket.as_mut().poll(&mut context), Poll::Ready(7));
    }

    #[test]
    fn a_ticket_can_be_waited_for_from_another_thread() {
        let (resolver, ticket) = ticket();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| ticket.wait());
            resolver.resolve("done");
            assert_eq!(waiting.join().unwrap(), "done");
        });
        assert_eq!(Ticket::ready(1).wait(), 1);
    }
}
