//! The explorer on the port of the NoSQL API, with the MongoDB front end behind it.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use account::{Holder, Keyring};
use bson::Document;
use bytes::Bytes;
use engine::Engine;
use explorer::{Deed, Doors, Explorer, Reply, SharedFile, Shell, Transport, Weight};
use hyper::http::request::Parts;
use hyper::{Request, Response};
use nosql::{Channel, Pages, SharedBody, Visitor};
use telemetry::{AuditEvent, AuditOutcome, Registry};
use transport::Work;

/// The explorer's pages.
pub(crate) struct ExplorerPages {
    explorer: Explorer,
    registry: Arc<Registry>,
}

impl ExplorerPages {
    pub(crate) fn new(
        engine: Arc<Engine>,
        keys: Keyring,
        mongo: Option<Arc<mongo::Service>>,
        registry: Arc<Registry>,
    ) -> Self {
        let shell = mongo.map(|service| Arc::new(MongoShell(service)) as Arc<dyn Shell>);
        ExplorerPages { explorer: Explorer::new(Doors { engine, keys, shell }), registry }
    }

    /// Tells the audit log what a request has done.
    fn audit(&self, answer: &mut Response<Bytes>, from: Option<SocketAddr>) {
        let Some(Deed { who, action, target }) = answer.extensions_mut().remove() else { return };
        let Some(log) = self.registry.audit() else { return };
        let status = answer.status().as_u16();
        log.take(AuditEvent {
            api: "explorer",
            who,
            from,
            action,
            target,
            details: None,
            outcome: AuditOutcome::of_status(status),
            status: Some(status.into()),
        });
    }
}

impl Pages for ExplorerPages {
    fn body_bytes(&self, head: &Parts) -> usize {
        self.explorer.body_bytes(head)
    }

    fn visitor(&self, head: &Parts) -> Option<Visitor> {
        let tenant = nosql::tenant(self.explorer.key(head)?);
        let work = self.explorer.weight(head).map(|weight| match weight {
            Weight::Brief => Work::Brief,
            Weight::Query => Work::Query,
        });
        Some(Visitor { tenant, work })
    }

    fn refused(&self, retry_after_ms: u64) -> Response<Bytes> {
        explorer::busy(retry_after_ms)
    }

    fn answer(
        &self,
        request: Request<Bytes>,
        channel: Option<Channel>,
    ) -> Pin<Box<dyn Future<Output = Response<Bytes>> + Send + '_>> {
        let is_secure = channel.is_some_and(|channel| channel.secure);
        let transport = if is_secure { Transport::Tls } else { Transport::Plain };
        let peer = channel.map(|channel| channel.peer);
        Box::pin(async move {
            let mut answer = self.explorer.answer(request, transport, peer.map(|peer| peer.ip())).await;
            self.audit(&mut answer, peer);
            if answer.extensions().get::<SharedFile>().is_some() {
                answer.extensions_mut().insert(SharedBody);
            }
            answer
        })
    }
}

/// The MongoDB front end, as the explorer uses it.
struct MongoShell(Arc<mongo::Service>);

impl Shell for MongoShell {
    fn run<'a>(
        &'a self,
        holder: &'a Holder,
        database: &'a str,
        command: &'a Document,
    ) -> Pin<Box<dyn Future<Output = Reply> + Send + 'a>> {
        Box::pin(async move {
            let mongo::Told { reply, request_units } =
                self.0.command(holder, database, command.clone()).await;
            Reply { document: reply, request_units }
        })
    }
}
