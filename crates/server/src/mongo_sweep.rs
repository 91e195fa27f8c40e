//! The loop around the background step of the MongoDB front end.

use std::sync::Arc;
use std::time::Duration;

use mongo::Service;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

/// The shortest time between two steps, however closely due times follow each other.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs a step whenever one is due, until dropped. A front end without cursors, transactions and sessions costs
/// nothing.
pub(crate) async fn run(service: Arc<Service>) {
    loop {
        service.sweep_due().await;
        let worker = Arc::clone(&service);
        if let Err(error) = spawn_blocking(move || worker.sweep(Instant::now())).await {
            tracing::error!("closing idle cursors and transactions failed and will be retried: {error}");
        }
        sleep(PAUSE).await;
    }
}
