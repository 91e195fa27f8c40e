//! The port: accepts connections until the server ends.

use std::future::Future;
use std::sync::Arc;

use tokio::net::TcpListener;
use transport::{Acceptor, Api};

use crate::dispatch::connection;
use crate::service::Service;

/// Serves until `shutdown` ends, then lets commands in flight finish and returns.
pub async fn serve(listener: TcpListener, service: Arc<Service>, shutdown: impl Future<Output = ()>) {
    let limits = service.settings.limits;
    let acceptor = Acceptor {
        api: Api::Mongo,
        admission: Arc::clone(&service.settings.admission),
        front_end: Arc::clone(&service.metrics.front_end),
        connections: limits.connections,
        drain_timeout: limits.drain_timeout,
    };
    // Ends commands that wait for changes, so that their connections can end.
    let shutdown = async {
        shutdown.await;
        service.stop();
    };
    acceptor.run(listener, shutdown, |accepted| connection::serve(accepted, Arc::clone(&service))).await;
}
