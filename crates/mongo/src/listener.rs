//! Accepting connections, bounding their number, and letting them finish at the end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use transport::{Api, Complaints};

use crate::connection;
use crate::service::Service;

/// How long accepting rests after it failed, for want of file descriptors as a rule.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `shutdown` ends, then lets commands in flight finish and returns.
pub async fn serve(listener: TcpListener, service: Arc<Service>, shutdown: impl Future<Output = ()>) {
    let limits = service.settings.limits;
    let places = Arc::new(Semaphore::new(limits.connections));
    let (stop, stopped) = watch::channel(false);
    let mut shutdown = std::pin::pin!(shutdown);
    // One kind must not keep the other from being said.
    let (mut failures, mut refusals) = (Complaints::default(), Complaints::default());
    loop {
        let (stream, address) = tokio::select! {
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
        let admission = &service.settings.admission;
        let Some(place) = admission.place(Api::Mongo, &places).await else {
            let front_end = &service.traffic.front_end;
            front_end.refused_connection();
            let open = front_end.connections_open();
            refusals.warn(&format!("closed a new connection: {open} are open already, and no more may be"));
            continue;
        };
        let peer = admission.peer(Api::Mongo, address.ip());
        let (service, stopped) = (Arc::clone(&service), stopped.clone());
        tokio::spawn(async move {
            let counted = service.traffic.front_end.connected();
            connection::serve(stream, service, peer, stopped).await;
            drop((counted, place));
        });
    }
    drop(listener);
    drop(stopped);
    service.stop();
    let _ = stop.send(true);
    if timeout(limits.drain_timeout, stop.closed()).await.is_err() {
        tracing::warn!("commands were still in flight {:?} after the shutdown began", limits.drain_timeout);
    }
}
