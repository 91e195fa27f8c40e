//! Direct mode through a small client of our own over TLS.

use std::sync::Arc;
use std::time::Duration;

use account::Kind;
use direct::{Account, Call, Client, TlsClient};
use document::Value;
use nosql::{Limits, Service};
use rntbd::OperationType::{
    Batch, Create, Delete, Head, HeadFeed, Patch, Query, Read, ReadFeed, Replace, Upsert,
};
use rntbd::{
    ActivityId, ConsistencyLevel, ContextRequest, PriorityLevel, RequestTokens, ResourceType,
    SerializationFormat,
};
use telemetry::Registry;
use tokio_rustls::TlsConnector;
use transport::{Admission, Bounds, Work};

use crate::client::{DATE, KEY, Server};
use crate::hybrid_row::{BULK_BYTES, bulk_of};
use crate::overload::until;
use crate::tls;

pub(crate) const ITEMS: &str = "dbs/db/colls/c/docs";

pub(crate) fn account() -> Account {
    Account { key: KEY.to_owned(), date: DATE.to_owned() }
}

/// A server, and how to connect to it.
pub(crate) struct Fixture {
    pub(crate) server: Server,
    pub(crate) connector: TlsConnector,
}

impl Fixture {
    /// A server without a database.
    pub(crate) async fn empty() -> Fixture {
        let (server, connector) = tls::server(Limits::default(), &[]).await;
        Fixture { server, connector }
    }

    pub(crate) async fn start() -> Fixture {
        Fixture::empty().await.with_container("").await
    }

    /// A server with these limits and changes.
    pub(crate) async fn made(limits: Limits, more: impl FnOnce(Service) -> Service) -> Fixture {
        let (server, connector) = tls::server_with(limits, &[], more).await;
        Fixture { server, connector }.with_container("").await
    }

    /// A server with a registry.
    pub(crate) async fn recorded(registry: Registry) -> Fixture {
        let (server, connector) =
            tls::server_recorded(Limits::default(), &[], registry, |service| service).await;
        Fixture { server, connector }.with_container("").await
    }

    /// A server with these bounds, and its admission control. With a stopped clock timers may fire before bytes arrive, so
    /// its clients have much time.
    pub(crate) async fn bounded(bounds: Bounds) -> (Fixture, Arc<Admission>) {
        let long = Duration::from_hours(1);
        let limits = Limits { body_pause_timeout: long, body_timeout: long, ..Limits::default() };
        let admission = Arc::new(Admission::new(bounds));
        let shared = Arc::clone(&admission);
        let fixture = Fixture::made(limits, |service| service.with_admission(shared)).await;
        (fixture, admission)
    }

    /// The server with database `db` and container `c`, whose definition has `extra` members.
    async fn with_container(self, extra: &str) -> Fixture {
        self.server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
        self.server.create_container("c", extra).await.expect_status(201);
        self
    }

    pub(crate) async fn connect(&self) -> TlsClient {
        self.connect_with(KEY).await
    }

    pub(crate) async fn connect_with(&self, key: &str) -> TlsClient {
        let account = Account { key: key.to_owned(), date: DATE.to_owned() };
        TlsClient::connect(self.server.address, &self.connector, account).await.unwrap()
    }

    pub(crate) async fn unauthenticated(&self) -> TlsClient {
        self.connect_with("d3Jvbmc=").await
    }
}

pub(crate) fn item(id: &str) -> String {
    format!("{ITEMS}/{id}")
}

pub(crate) fn body(id: &str, more: &str) -> String {
    format!(r#"{{"id":"{id}","pk":"p"{more}}}"#)
}

pub(crate) fn create(payload: &str) -> Call<'_> {
    Call::new(Create, ITEMS).key(r#"["p"]"#).payload(payload)
}

pub(crate) fn read(path: &str) -> Call<'_> {
    Call::new(Read, path).key(r#"["p"]"#)
}

pub(crate) fn json(reply: &direct::Reply) -> Value {
    document::parse_json(reply.payload.as_deref().unwrap_or_default()).unwrap()
}

/// Sends a request and checks the status of its answer.
pub(crate) async fn expect(client: &mut TlsClient, call: &Call<'_>, status: u32) -> direct::Reply {
    client.call(call).await.unwrap().expect_status(status)
}

#[tokio::test]
async fn an_item_lives_its_whole_life_in_direct_mode() {
    let fixture = Fixture::start().await;
    let mut client = fixture.connect().await;
    let path = item("1");
    let made = expect(&mut client, &create(&body("1", r#","n":1"#)), 201).await;
    let etag = made.tokens().etag.unwrap().to_owned();
    let lsn = made.tokens().lsn.unwrap();
    for number in
        [made.tokens().local_lsn, made.tokens().quorum_acked_lsn, made.tokens().quorum_acked_local_lsn]
    {
        assert_eq!(number, Some(lsn), "clients wait where these differ");
    }
    assert_eq!(
        (made.tokens().current_replica_set_size, made.tokens().current_write_quorum),
        (Some(1), Some(2))
    );
    assert_eq!(made.tokens().number_of_read_regions, Some(0));
    assert!(
        made.tokens().request_charge.unwrap() > 0.0
            && made.tokens().session_token.unwrap().starts_with("-1#")
    );
    assert_eq!(made.tokens().owner_full_name, Some("dbs/db/colls/c"));

    let found = expect(&mut client, &read(&path), 200).await;
    assert_eq!(json(&found).get("n").and_then(Value::as_i64), Some(1));
    let same = read(&path).with(|tokens| tokens.match_etag = Some(&etag));
    assert_eq!(expect(&mut client, &same, 304).await.payload, None);
    expect(&mut client, &create(&body("1", "")), 409).await;

    let newer = body("1", r#","n":2"#);
    let replace = Call::new(Replace, &path).key(r#"["p"]"#).payload(&newer);
    let stale = replace.with(|tokens| tokens.match_etag = Some("\"other\""));
    expect(&mut client, &stale, 412).await;
    expect(&mut client, &replace.with(|tokens| tokens.match_etag = Some(&etag)), 200).await;
    let increment = r#"{"operations":[{"op":"incr","path":"/n","value":5}]}"#;
    let patched = client.call(&Call::new(Patch, &path).key(r#"["p"]"#).payload(increment)).await.unwrap();
    assert_eq!(json(&patched.expect_status(200)).get("n").and_then(Value::as_i64), Some(7));
    let upsert = body("2", "");
    let minimal = Call::new(Upsert, ITEMS).key(r#"["p"]"#).payload(&upsert);
    let minimal = minimal.with(|tokens| tokens.return_preference = Some(rntbd::ReturnPreference::Minimal));
    assert_eq!(expect(&mut client, &minimal, 201).await.payload, None);

    let query = Call::new(Query, ITEMS).payload(r#"{"query":"SELECT VALUE c.id FROM c ORDER BY c.id"}"#);
    let page = expect(&mut client, &query.key(r#"["p"]"#), 200).await;
    assert_eq!(
        (page.text().contains(r#"["1","2"]"#), page.tokens().item_count),
        (true, Some(2)),
        "{}",
        page.text()
    );
    let feed = Call::new(ReadFeed, ITEMS).with(|tokens| tokens.partition_key_range_id = Some("0"));
    assert_eq!(expect(&mut client, &feed, 200).await.tokens().item_count, Some(2));
    let following = feed.with(|tokens| tokens.a_im = Some("Incremental Feed"));
    let changed = expect(&mut client, &following, 200).await;
    let at = changed.tokens().etag.unwrap().to_owned();
    let nothing = client.call(&following.with(|tokens| tokens.match_etag = Some(&at))).await.unwrap();
    assert_eq!(nothing.expect_status(304).tokens().item_count, Some(0));

    let batch = r#"[{"operationType":"Create","resourceBody":{"id":"3","pk":"p"}},{"operationType":"Delete","id":"2"}]"#;
    let batch = Call::new(Batch, ITEMS).key(r#"["p"]"#).payload(batch);
    let done = client.call(&batch.with(|tokens| tokens.is_batch_atomic = Some(true))).await.unwrap();
    assert_eq!(done.clone().expect_status(200).text().matches("statusCode").count(), 2, "{}", done.text());

    expect(&mut client, &Call::new(Delete, &path).key(r#"["p"]"#), 204).await;
    let gone = expect(&mut client, &read(&path), 404).await;
    assert!(gone.tokens().lsn.unwrap() > lsn, "errors have the numbers as well");
    assert_eq!(json(&gone).get("code").and_then(Value::as_str), Some("NotFound"));
}

#[tokio::test]
async fn t9_an_expired_item_is_gone_in_direct_mode_in_the_same_instant() {
    let fixture = Fixture::empty().await.with_container(r#""defaultTtl":-1"#).await;
    let mut client = fixture.connect().await;
    let path = item("1");
    expect(&mut client, &create(&body("1", r#","ttl":10"#)), 201).await;
    fixture.server.advance(9);
    expect(&mut client, &read(&path), 200).await;
    fixture.server.advance(1);
    expect(&mut client, &read(&path), 404).await;
    let count =
        Call::new(Query, ITEMS).key(r#"["p"]"#).payload(r#"{"query":"SELECT VALUE COUNT(1) FROM c"}"#);
    assert!(expect(&mut client, &count, 200).await.text().contains("[0]"));
    expect(&mut client, &create(&body("1", "")), 201).await;
}

#[tokio::test]
async fn databases_and_containers_are_read_with_the_numbers_of_the_store() {
    let fixture = Fixture::start().await;
    let mut client = fixture.connect().await;
    let strong =
        |call: Call<'static>| call.with(|tokens| tokens.consistency_level = Some(ConsistencyLevel::Strong));
    for (operation, path, status) in [
        (Read, "dbs/db", 200),
        (Read, "dbs/none", 404),
        (ReadFeed, "dbs", 200),
        (ReadFeed, "dbs/db/colls", 200),
        (Read, "dbs/db/colls/c", 200),
        (Head, "dbs/db/colls/c", 200),
        (HeadFeed, "dbs", 200),
        (ReadFeed, "dbs/db/users", 200),
    ] {
        let reply = expect(&mut client, &strong(Call::new(operation, path)), status).await;
        let tokens = reply.tokens();
        assert!(tokens.lsn.is_some_and(|lsn| lsn > 0) && tokens.local_lsn == tokens.lsn, "{path}");
        assert_eq!(tokens.current_replica_set_size, Some(1), "{path}");
        let is_barrier = matches!(operation, Head | HeadFeed);
        assert_eq!(reply.payload.is_none(), is_barrier, "{path}");
    }
}

#[tokio::test]
async fn a_recreated_container_is_told_apart() {
    let fixture = Fixture::start().await;
    let mut client = fixture.connect().await;
    let old = fixture.server.get("/dbs/db/colls/c").send().await.string("_rid");
    let path = item("1");
    let call = read(&path).with(|tokens| tokens.collection_rid = Some(&old));
    expect(&mut client, &call, 404).await;
    fixture.server.delete("/dbs/db/colls/c").send().await.expect_status(204);
    fixture.server.create_container("c", "").await.expect_status(201);
    let gone = expect(&mut client, &call, 410).await;
    assert_eq!(gone.tokens().substatus, Some(1000));
}

#[tokio::test]
async fn sixty_four_requests_are_in_flight_at_once_and_each_has_its_own_answer() {
    let bounds = Bounds { brief: 1, max_wait: Duration::from_mins(5), ..Bounds::default() };
    let (fixture, admission) = Fixture::bounded(bounds).await;
    let (mut client, mut other) = (fixture.connect().await, fixture.connect().await);
    let path = item("1");
    let taken = admission.enter(nosql::tenant(Kind::Primary), Work::Brief).await.unwrap();
    let mut sent = Vec::new();
    for number in 0..100 {
        sent.push(client.sender.send(&create(&body(&number.to_string(), ""))).await.unwrap());
    }
    until(|| admission.stats(Work::Brief).waiting >= 64).await;
    expect(&mut other, &read(&path), 404).await;
    assert_eq!(admission.stats(Work::Brief).waiting, 64, "the others are not read");
    drop(taken);
    for (id, number) in sent.iter().enumerate().rev() {
        let made = client.receiver.reply_to(*number).await.unwrap().expect_status(201);
        assert_eq!(json(&made).get("id").and_then(Value::as_str), Some(id.to_string().as_str()));
    }
}

#[tokio::test]
async fn a_bulk_request_may_have_what_the_client_fills_it_with() {
    let fixture = Fixture::start().await;
    let mut client = fixture.connect().await;
    for (bytes, status) in [(BULK_BYTES, 200), (BULK_BYTES + 2000, 413), (BULK_BYTES, 200)] {
        let payload = bulk_of(bytes);
        let bulk = Call::new(Batch, ITEMS).payload(&payload).with(|tokens| {
            tokens.is_batch_atomic = Some(false);
            tokens.should_batch_continue_on_error = Some(true);
            tokens.partition_key_range_id = Some("0");
        });
        let done = expect(&mut client, &bulk, status).await;
        if status == 200 {
            let results = hybridrow::decode_results(done.payload.as_deref().unwrap()).unwrap();
            assert!(results.len() == 2 && results.iter().all(|result| matches!(result.status, 200 | 201)));
        }
    }
    let written = read("dbs/db/colls/c/docs/1").key(r#"["a"]"#);
    assert!(expect(&mut client, &written, 200).await.payload.unwrap().len() > 1_000_000);
}

#[tokio::test]
async fn a_large_payload_arrives_whole_and_one_too_large_is_passed_over() {
    let fixture = Fixture::start().await;
    let mut client = fixture.connect().await;
    let large = body("large", &format!(r#","x":"{}""#, "x".repeat(1_500_000)));
    expect(&mut client, &create(&large), 201).await;
    let path = item("large");
    let found = expect(&mut client, &read(&path), 200).await;
    assert!(found.payload.unwrap().len() > 1_500_000);
    let too_large = body("more", &format!(r#","x":"{}""#, "x".repeat(2_200_000)));
    expect(&mut client, &create(&too_large), 413).await;
    let wrong =
        create(&large).with(|tokens| tokens.authorization = Some("type%3dmaster%26ver%3d1.0%26sig%3dAAAA"));
    expect(&mut client, &wrong, 401).await;
    expect(&mut client, &read(&path), 200).await;
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_refused_and_those_after_it_are_in_step() {
    let fixture = Fixture::start().await;
    let mut client = fixture.connect().await;
    let path = item("1");
    expect(&mut client, &create(&body("1", "")), 201).await;
    let offers = Call { resource_type: ResourceType::Offer, ..read(&path) };
    let sliding = create("{}").with(|tokens| tokens.time_to_live_seconds = Some(5));
    let slash = read(ITEMS).with(|tokens| tokens.document_name = Some("a/b"));
    let nameless = Call { resource_type: ResourceType::Document, ..read("dbs/db/colls/c") };
    for (call, part) in [
        (offers, "000f"),
        (sliding, "timeToLiveInSeconds"),
        (slash, "documentName"),
        (nameless, "documentName"),
    ] {
        let refused = expect(&mut client, &call, 400).await;
        assert!(refused.text().contains(part), "{}", refused.text());
    }
    // Numbers and types that our client cannot send are written into the bytes.
    let (number, mut bytes) = client.sender.session.request(&read(&path)).unwrap();
    bytes[4..6].copy_from_slice(&0x7777_u16.to_le_bytes());
    client.sender.write(&bytes).await.unwrap();
    let refused = client.receiver.reply_to(number).await.unwrap().expect_status(400);
    assert!(refused.text().contains("7777"), "{}", refused.text());
    let (number, mut bytes) = client.sender.session.request(&read(&path)).unwrap();
    // A page size as a signed number, and a token that no release has.
    bytes.extend([0x04, 0x00, 0x03, 1, 0, 0, 0]);
    bytes.extend([0xF0, 0x0F, 0x08, 1, 0, b'x']);
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    client.sender.write(&bytes).await.unwrap();
    let refused = client.receiver.reply_to(number).await.unwrap().expect_status(400);
    assert!(refused.text().contains("pageSize"), "{}", refused.text());
    expect(&mut client, &read(&path), 200).await;
}

#[tokio::test]
async fn options_without_effect_are_taken_and_the_correlated_id_comes_back() {
    let fixture = Fixture::start().await;
    let mut client = fixture.connect().await;
    expect(&mut client, &create(&body("1", "")), 201).await;
    let id = ActivityId([7; 16]);
    let query = Call::new(Query, ITEMS).key(r#"["p"]"#).payload(r#"{"query":"SELECT VALUE c.id FROM c"}"#);
    let query = query.with(|tokens| {
        tokens.enable_scan_in_query = Some(false);
        tokens.is_batch_ordered = Some(false);
        tokens.priority_level = Some(PriorityLevel::Low);
        tokens.optimistic_direct_execute = Some(true);
        tokens.throughput_bucket = Some(5);
        tokens.target_lsn = Some(i64::MAX);
        tokens.target_global_committed_lsn = Some(i64::MAX);
        tokens.content_serialization_format = Some(SerializationFormat::CosmosBinary);
        tokens.supported_serialization_formats = Some(3);
        tokens.continuation_limit_kib = Some(1);
        tokens.correlated_activity_id = Some(id);
    });
    let found = expect(&mut client, &query, 200).await;
    assert!(found.text().contains(r#"["1"]"#), "{}", found.text());
    assert_eq!(found.tokens().correlated_activity_id, Some(id));
    let path = item("none");
    let missing = read(&path).with(|tokens| tokens.correlated_activity_id = Some(id));
    assert_eq!(expect(&mut client, &missing, 404).await.tokens().correlated_activity_id, Some(id));
}

#[tokio::test]
async fn the_version_of_the_connection_is_that_of_its_requests() {
    let fixture = Fixture::start().await;
    let path = item("1");
    for (version, status) in [("2018-12-31", 404), ("1", 400)] {
        let reached = TlsClient::reach(fixture.server.address, &fixture.connector, account());
        let mut client = reached.await.unwrap();
        let context = ContextRequest {
            protocol_version: Some(1),
            client_version: Some(version),
            ..ContextRequest::default()
        };
        let mut bytes = Vec::new();
        context.encode(ActivityId::default(), &mut bytes).unwrap();
        client.sender.write(&bytes).await.unwrap();
        assert_eq!(client.receiver.greeting().await.unwrap().status, 200);
        expect(&mut client, &read(&path), status).await;
        let own = read(&path).with(|tokens| tokens.client_version = Some("2020-07-15"));
        expect(&mut client, &own, 404).await;
    }
}

#[tokio::test]
async fn a_resource_id_stands_for_names_and_a_signature_over_it_opens_nothing_else() {
    let fixture = Fixture::start().await;
    let mut client = fixture.connect().await;
    let made = expect(&mut client, &create(&body("1", "")), 201).await;
    let rid = json(&made).get("_rid").and_then(Value::as_str).unwrap().to_owned();
    let bytes = base64(&rid);
    let signed = direct::sign_link("get", "docs", &rid.to_lowercase(), DATE, KEY);
    let bare = Call {
        resource_type: ResourceType::Document,
        operation_type: Read,
        tokens: RequestTokens {
            resource_id: Some(&bytes),
            partition_key: Some(r#"["p"]"#),
            authorization: Some(&signed),
            ..RequestTokens::default()
        },
        payload: None,
    };
    expect(&mut client, &bare, 200).await;
    let by_name = item("1");
    let stolen = read(&by_name).with(|tokens| tokens.authorization = Some(&signed));
    expect(&mut client, &stolen, 401).await;
}

pub(crate) fn base64(rid: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(rid.replace('-', "/")).unwrap()
}

/// Whether the server has closed the connection.
pub(crate) async fn is_closed(client: &mut TlsClient) -> bool {
    loop {
        match client.receiver.reply().await {
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return true,
        }
    }
}

#[tokio::test]
async fn an_unauthenticated_client_is_answered_sixteen_times_and_then_no_more() {
    let fixture = Fixture::start().await;
    let path = item("1");
    let mut unauthenticated = fixture.unauthenticated().await;
    for _ in 0..15 {
        expect(&mut unauthenticated, &read(&path), 401).await;
    }
    let mut late = fixture.unauthenticated().await;
    expect(&mut late, &read(&path), 401).await;
    late.sender.session = direct::Session::new(account());
    for _ in 0..40 {
        expect(&mut late, &read(&path), 404).await;
    }
    expect(&mut unauthenticated, &read(&path), 401).await;
    assert!(is_closed(&mut unauthenticated).await);
}

#[tokio::test]
async fn a_connection_that_does_not_begin_as_it_must_is_closed() {
    let fixture = Fixture::start().await;
    let path = item("1");
    let reach = || TlsClient::reach(fixture.server.address, &fixture.connector, account());
    let mut hasty = reach().await.unwrap();
    hasty.sender.send(&read(&path)).await.unwrap();
    assert!(is_closed(&mut hasty).await, "a request before the context");
    let mut twice = fixture.connect().await;
    expect(&mut twice, &read(&path), 404).await;
    let context = twice.sender.session.context().unwrap();
    twice.sender.write(&context).await.unwrap();
    assert!(is_closed(&mut twice).await, "a second context");
    let mut long = fixture.connect().await;
    long.sender.write(&(17_000_u32).to_le_bytes()).await.unwrap();
    assert!(is_closed(&mut long).await, "more tokens than an unauthenticated client may send");
    let mut known = fixture.connect().await;
    expect(&mut known, &read(&path), 404).await;
    let token = "x".repeat(30_000);
    let chatty = read(&path).with(|tokens| tokens.pre_trigger_include = Some(&token));
    assert_ne!(known.call(&chatty).await.unwrap().status, 0);
    known.sender.write(&(70_000_u32).to_le_bytes()).await.unwrap();
    assert!(is_closed(&mut known).await, "more tokens than anyone may send");
}

#[tokio::test]
async fn on_a_plain_connection_frames_are_bad_http() {
    let fixture = Fixture::start().await;
    let socket = tokio::net::TcpStream::connect(fixture.server.address).await.unwrap();
    let mut plain = Client::new(socket, account());
    let context = plain.sender.session.context().unwrap();
    plain.sender.write(&context).await.unwrap();
    assert!(plain.receiver.greeting().await.is_err());
}

#[tokio::test]
async fn a_client_that_leaves_its_answers_unread_is_not_read_and_others_are() {
    const ITEM_BYTES: usize = 1_000_000;
    const UNREAD_BYTES: usize = 8 << 20;
    const SENT_MAX: usize = 2000;
    let (fixture, admission) = Fixture::bounded(Bounds::default()).await;
    let mut client = fixture.connect().await;
    let large = body("1", &format!(r#","x":"{}""#, "x".repeat(ITEM_BYTES)));
    expect(&mut client, &create(&large), 201).await;
    let (path, filler) = (item("1"), "x".repeat(60_000));
    // More than the buffers of the system hold, so that the server must read them.
    let long = read(&path).with(|tokens| tokens.continuation = Some(&filler));
    let mut silent = fixture.connect().await;
    expect(&mut silent, &read(&path), 200).await;
    let Client { mut sender, mut receiver } = silent;
    let (moment, most_moments) = (Duration::from_secs(2), 30);
    let mut sent = 0;
    'sends: while sent < SENT_MAX {
        let mut taken = std::pin::pin!(sender.send(&long));
        let mut moments = 0;
        // A slow server takes the request later; one that no longer reads does not.
        while tokio::time::timeout(moment, &mut taken).await.map(Result::unwrap).is_err() {
            if admission.held_bytes() >= UNREAD_BYTES {
                break 'sends;
            }
            moments += 1;
            assert!(moments < most_moments, "reading stopped at {} bytes", admission.held_bytes());
        }
        sent += 1;
    }
    assert!((10..SENT_MAX).contains(&sent), "{sent} are taken");
    until(|| admission.held_bytes() >= UNREAD_BYTES).await;
    let held = admission.held_bytes();
    assert!(held < UNREAD_BYTES + 2 * ITEM_BYTES, "{held}");
    expect(&mut client, &read(&path), 200).await;
    for _ in 0..sent.min(30) {
        assert_eq!(receiver.reply().await.unwrap().unwrap().status, 200);
    }
}

#[tokio::test]
async fn a_server_that_stops_finishes_what_it_has_and_answers_gone_to_the_rest() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.connect().await;
    let path = item("1");
    expect(&mut client, &create(&body("1", "")), 201).await;
    fixture.server.stop();
    loop {
        let reply = client.call(&read(&path)).await.unwrap();
        if reply.status == 410 {
            assert_eq!((reply.tokens().substatus, reply.payload), (None, None));
            break;
        }
        assert_eq!(reply.status, 200);
    }
    assert!(is_closed(&mut client).await, "it is quiet, so it is closed");
}

/// A server with one permit for queries, and that permit.
pub(crate) async fn with_one_query() -> (Fixture, Arc<Admission>) {
    Fixture::bounded(Bounds { queries: 1, max_wait: Duration::from_mins(5), ..Bounds::default() }).await
}

/// Returns a client whose first request is a query, which is not answered yet although a read behind it is; and its number.
pub(crate) async fn send_query(fixture: &Fixture) -> (TlsClient, u32) {
    let mut client = fixture.connect().await;
    let all = Call::new(Query, ITEMS).key(r#"["p"]"#).payload(r#"{"query":"SELECT * FROM c"}"#);
    let slow = client.sender.send(&all).await.unwrap();
    expect(&mut client, &read(&item("1")), 404).await;
    (client, slow)
}

#[tokio::test]
async fn a_first_request_that_takes_long_does_not_keep_others_from_being_read() {
    let (fixture, admission) = with_one_query().await;
    let taken = admission.enter(nosql::tenant(Kind::Primary), Work::Query).await.unwrap();
    let (mut client, slow) = send_query(&fixture).await;
    drop(taken);
    assert_eq!(client.receiver.reply_to(slow).await.unwrap().status, 200);
}
