//! Accepting connections: each gets a permit and a task, and at the end those at work finish.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use telemetry::FrontEnd;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::admission::{Admission, Peer};
use crate::complaints::Complaints;
use crate::tenant::Api;

/// How long accepting rests after it failed, for want of file descriptors as a rule.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How a front end accepts connections.
#[derive(Debug)]
pub struct Acceptor {
    /// Which one it is.
    pub api: Api,
    /// What all front ends share.
    pub admission: Arc<Admission>,
    /// Counts them.
    pub front_end: Arc<FrontEnd>,
    /// Its connections at most.
    pub connections: usize,
    /// How long they have to finish at the end.
    pub drain_timeout: Duration,
}

/// A connection to serve.
#[derive(Debug)]
pub struct Accepted {
    /// Its bytes.
    pub socket: TcpStream,
    /// What admission control knows of it.
    pub peer: Arc<Peer>,
    /// True once the server ends: the connection then does so too, after what it is doing.
    pub stopped: watch::Receiver<bool>,
}

impl Acceptor {
    /// Serves every connection in a task of its own until `shutdown` ends, then lets work in flight finish and returns.
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
        // One kind must not keep the other from being said.
        let (mut failures, mut refusals) = (Complaints::default(), Complaints::default());
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
                refusals
                    .warn(&format!("closed a new connection: {open} are open already, and no more may be"));
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
            tracing::warn!(
                "connections were still at work {:?} after the shutdown began",
                self.drain_timeout
            );
        }
    }
}
