//! Locks, counters and threads of the writer and its tickets, defined in one place: `proof/model` replaces them with
//! those of a model checker, which tries different orders of threads.

#[cfg(not(feature = "shuttle"))]
pub(crate) use real::{AtomicU64, Condvar, JoinHandle, Mutex, spawn};

#[cfg(feature = "shuttle")]
pub(crate) use modelled::{AtomicU64, Condvar, JoinHandle, Mutex, spawn};

#[cfg(not(feature = "shuttle"))]
mod real {
    pub(crate) use parking_lot::{Condvar, Mutex};
    pub(crate) use std::sync::atomic::AtomicU64;
    pub(crate) use std::thread::JoinHandle;

    /// Starts a thread.
    pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name(name.to_owned()).spawn(body)
    }
}

/// The model checker's, with the same interface.
#[cfg(feature = "shuttle")]
mod modelled {
    pub(crate) use shuttle::sync::atomic::AtomicU64;
    pub(crate) use shuttle::thread::JoinHandle;
    use std::ops::{Deref, DerefMut};

    const UNBROKEN: &str = "no thread of a model panics while it holds a lock";

    #[derive(Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    /// Holds no lock only while it waits.
    pub(crate) struct MutexGuard<'a, T>(Option<shuttle::sync::MutexGuard<'a, T>>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().expect(UNBROKEN)))
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.0.as_ref().expect("it does not wait")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("it does not wait")
        }
    }

    #[derive(Default)]
    pub(crate) struct Condvar(shuttle::sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.0.take().expect("it does not wait yet");
            guard.0 = Some(self.0.wait(held).expect(UNBROKEN));
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
        shuttle::thread::Builder::new().name(name.to_owned()).spawn(body)
    }
}
