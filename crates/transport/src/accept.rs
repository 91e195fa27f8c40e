//! Accepts connections: each gets a permit and a task, and on shutdown running requests finish.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use telemetry::FrontEnd;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::admission::{Admission, Peer};
use crate::tenant::Api;
use crate::warning_limiter::WarningLimiter;

/// How long to pause after a failed accept, which mostly lacks file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The settings of one front end's accept loop.
#[derive(Debug)]
pub struct Acceptor {
    /// The front end.
    pub api: Api,
    /// The admission control that all front ends share.
    pub admission: Arc<Admission>,
    /// The metrics that count the connections.
    pub front_end: Arc<FrontEnd>,
    /// The largest number of connections of this front end.
    pub connections: usize,
    /// How long connections may finish their work on shutdown.
    pub drain_timeout: Duration,
}

/// An accepted connection.
#[derive(Debug)]
pub struct Accepted {
    /// The socket.
    pub socket: TcpStream,
    /// The connection's state in admission control.
    pub peer: Arc<Peer>,
    /// Becomes true on shutdown: the connection then ends after its current work.
    pub stopped: watch::Receiver<bool>,
}

impl Acceptor {
    /// Serves every connection in a task of its own until `shutdown` completes, then lets running work finish and
    /// returns.
    pub async fn run<Serving>(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
        serve: impl Fn(Accepted) -> Serving,
    ) where
        Serving: Future<Output = ()> + Send + 'static,
    {
        let permits = Arc::new(Semaphore::new(self.connections));
        let (stop, stopped) = watch::channel(false);
        let mut shutdown = std::pin::pin!(shutdown);
        // One limiter each, so that neither kind of warning suppresses the other.
        let (mut failures, mut refusals) = (WarningLimiter::default(), WarningLimiter::default());
        loop {
            let (socket, address) = tokio::select! {
                () = &mut shutdown => break,
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        failures.warn(&format!("cannot accept a connection: {error}"));
                        sleep(ACCEPT_PAUSE).await;
                        continue;
                    }
                },
            };
            let Some(permit) = self.admission.connect(self.api, &permits).await else {
                self.front_end.refused_connection();
                let open = self.front_end.connections_open();
                refusals.warn(&format!(
                    "closed a new connection: the limit of {open} open connections is reached"
                ));
                continue;
            };
            let peer = self.admission.peer(self.api, address.ip());
            let counted = self.front_end.connected();
            let serving = serve(Accepted { socket, peer, stopped: stopped.clone() });
            tokio::spawn(async move {
                serving.await;
                drop((counted, permit));
            });
        }
        drop(listener);
        drop(stopped);
        let _ = stop.send(true);
        if timeout(self.drain_timeout, stop.closed()).await.is_err() {
            tracing::warn!("connections were still busy {:?} after the shutdown began", self.drain_timeout);
        }
    }
}
