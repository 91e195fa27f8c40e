//! The explorer on the port of the NoSQL API, connected to the MongoDB front end.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use account::{AuthenticatedKey, Keyring};
use bson::Document;
use bytes::Bytes;
use engine::Engine;
use explorer::{
    AuditedAction, Backends, Explorer, OpenConnections, OpenConnectionsCount, Reply, SharedFile, Shell,
    Transport, Weight,
};
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
        connections: OpenConnectionsCount,
    ) -> Self {
        let shell = mongo.map(|service| Arc::new(MongoShell(service)) as Arc<dyn Shell>);
        let backends = Backends { engine, keys, shell, connections };
        ExplorerPages { explorer: Explorer::new(backends), registry }
    }
}

/// Returns what counts the open connections for the explorer.
pub(crate) fn count_of(connections: &Arc<nosql::Connections>) -> OpenConnectionsCount {
    let connections = Arc::clone(connections);
    Arc::new(move || {
        let nosql::OpenConnections { http, direct, mongodb } = connections.open();
        OpenConnections { http, direct, mongodb }
    })
}

/// A request for the audit log, recorded when it ends; also when its client disconnects, because the action continues.
struct Audited<'a> {
    registry: &'a Registry,
    from: Option<SocketAddr>,
    action: Option<AuditedAction>,
    /// The status of the answer, if there was one.
    status: Option<u16>,
}

impl Drop for Audited<'_> {
    fn drop(&mut self) {
        let Some(AuditedAction { who, action, target, details }) = self.action.take() else { return };
        let Some(log) = self.registry.audit() else { return };
        log.record(AuditEvent {
            api: "explorer",
            who,
            from: self.from,
            action,
            target,
            details,
            outcome: AuditOutcome::of_status(self.status),
            status: self.status.map(i64::from),
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
            let mut audited = Audited { registry: &self.registry, from: peer, action: None, status: None };
            let ip = peer.map(|peer| peer.ip());
            let mut answer = self.explorer.answer(request, transport, ip, &mut audited.action).await;
            audited.status = Some(answer.status().as_u16());
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
        holder: &'a AuthenticatedKey,
        database: &'a str,
        command: &'a Document,
    ) -> Pin<Box<dyn Future<Output = Reply> + Send + 'a>> {
        Box::pin(async move {
            let mongo::CommandReply { reply, request_units } =
                self.0.command(holder, database, command.clone()).await;
            Reply { document: reply, request_units }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use account::Key;
    use hyper::header::{COOKIE, SET_COOKIE};
    use storage::{ClockOptions, ManualClock, MemoryStore, Time};
    use telemetry::MemoryAuditSink;

    use super::*;

    fn ask(path: &str, form: &str, cookie: &str) -> Request<Bytes> {
        let request = if form.is_empty() { Request::get(path) } else { Request::post(path) };
        request.header(COOKIE, cookie).body(Bytes::copy_from_slice(form.as_bytes())).unwrap()
    }

    #[test]
    fn a_form_whose_sender_has_left_is_in_the_audit_log() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = Arc::new(MemoryStore::new(ClockOptions::new(clock)).unwrap());
        let engine = Arc::new(Engine::open(store).unwrap());
        let keys = Keyring::of(Key::parse("c2VjcmV0").unwrap());
        let log = Arc::<MemoryAuditSink>::default();
        let registry = Arc::new(Registry::default().with_audit(Arc::clone(&log) as _));
        let pages =
            ExplorerPages::new(engine, keys.clone(), None, registry, Arc::new(OpenConnections::default));
        runtime.block_on(async {
            let signed_in = pages.answer(ask("/_explorer/sign-in", "key=c2VjcmV0", ""), None).await;
            let cookie = signed_in.headers()[SET_COOKIE].to_str().unwrap().split(';').next().unwrap();
            let help = pages.answer(ask("/_explorer/help", "", cookie), None).await;
            let help = String::from_utf8(help.into_body().to_vec()).unwrap();
            let (_, csrf) = help.split_once("name=\"csrf\" value=\"").unwrap();
            let csrf = csrf.split('"').next().unwrap();
            let form = format!("csrf={csrf}&api=nosql&database=shop&name=carts&key=%2Fpk&ttl=own");
            assert_eq!(pages.answer(ask("/_explorer/new", &form, cookie), None).await.status(), 303);
            let form = format!("csrf={csrf}&regenerate=secondary");
            // The only thread for blocking work is occupied, so the change waits for it.
            let (release, taken) = std::sync::mpsc::channel::<()>();
            tokio::task::spawn_blocking(move || taken.recv());
            let mut answer = pages.answer(ask("/_explorer/keys", &form, cookie), None);
            assert!(poll_fn(|context| Poll::Ready(answer.as_mut().poll(context).is_pending())).await);
            drop(answer);
            drop(release);
            tokio::task::spawn_blocking(|| ()).await.unwrap();
        });
        assert_eq!(keys.entries().len(), 2, "the change goes on without its sender");
        let events = log.events();
        assert_eq!(events[1].details.as_deref(), Some(r#"{"defaultTtl":-1}"#));
        let told: Vec<_> =
            events.iter().map(|event| (event.action.as_str(), event.outcome, event.status)).collect();
        assert_eq!(
            told,
            [
                ("sign-in", AuditOutcome::Success, Some(303)),
                ("new", AuditOutcome::Success, Some(303)),
                ("keys secondary", AuditOutcome::Abandoned, None)
            ]
        );
    }
}
