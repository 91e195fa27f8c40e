//! A future that turns a panic into an error, so that one bad request costs one answer and not a connection.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Polls `inner`; a panic ends it with the panic's payload.
pub struct CatchPanic<F> {
    inner: F,
}

impl<F: Future + Unpin> CatchPanic<F> {
    /// Wraps a future.
    pub fn new(inner: F) -> Self {
        Self { inner }
    }
}

impl<F: Future + Unpin> Future for CatchPanic<F> {
    type Output = Result<F::Output, Box<dyn Any + Send>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A handler that panicked is never polled again; its shared state is protected by the engine, whose transactions
        // survive a panic.
        match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut self.inner).poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Err(payload) => Poll::Ready(Err(payload)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut fine = CatchPanic::new(Box::pin(async { 1 }));
        assert!(matches!(Pin::new(&mut fine).poll(&mut context), Poll::Ready(Ok(1))));
        let mut bad = CatchPanic::new(Box::pin(async {
            assert!(std::hint::black_box(false), "as the test wants");
        }));
        assert!(matches!(Pin::new(&mut bad).poll(&mut context), Poll::Ready(Err(_))));
    }
}
