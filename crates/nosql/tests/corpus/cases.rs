//! What must hold for one input of the fuzz target `request`. The target and the test that replays its corpus share this file.
//!
//! An input is a few requests, one after the other, to a server that has a database `db` with a container `c` and an item in it:
//!
//! ```text
//! POST /dbs/db/colls/c/docs
//! x-ms-documentdb-partitionkey: ["a"]
//!
//! {"id":"2","pk":"a"}
//! ===
//! GET /dbs/db/colls/c/docs/2
//! ```
//!
//! A date and a signature are added as an honest client would, unless the input has its own.

use std::sync::{Arc, OnceLock};

use account::{Key, Keyring};
use bytes::Bytes;
use engine::Engine;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use nosql::{Limits, Service};
use storage::{ClockOptions, ManualClock, MemoryStore, Store, Time};
use tokio::runtime::Runtime;

use crate::signature;

const KEY: &str = "c29tZSBzZWNyZXQga2V5IGZvciB0ZXN0cw==";
const START: u64 = 1_700_000_000;
const DATE: &str = "Tue, 14 Nov 2023 22:13:20 GMT";

/// Requests of one input.
const REQUESTS_MAX: usize = 4;

/// Pages that require no authentication.
const OPEN: [&str; 4] = ["alive", "ready", "metrics", "_explorer"];

/// The contents of the server before the first request.
const BEFORE: [&str; 4] = [
    "POST /dbs\n\n{\"id\":\"db\"}",
    "POST /dbs/db/colls\n\n{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\"},\"defaultTtl\":60}",
    "POST /dbs/db/colls/c/docs\nx-ms-documentdb-partitionkey: [\"a\"]\n\n{\"id\":\"1\",\"pk\":\"a\",\"n\":1}",
    "POST /dbs/db/users\n\n{\"id\":\"u\"}",
];

/// Checks that every request has an answer that its client understands and that is no failure of the server; that
/// unauthenticated clients get access to nothing; and that the store is intact after all of them.
pub(crate) fn check_request(data: &[u8]) {
    let (service, store) = server();
    for text in BEFORE {
        let answer = send(&service, &parse(text.as_bytes()).expect("a request"));
        assert_eq!(answer.status(), StatusCode::CREATED, "{text}");
    }
    let mut rest = Some(data);
    for _ in 0..REQUESTS_MAX {
        let Some(text) = rest else { break };
        let (text, behind) =
            cut(text, b"\n===\n").map_or((text, None), |(text, behind)| (text, Some(behind)));
        rest = behind;
        if let Some(request) = parse(text) {
            check_unauthenticated(&service, &request);
            check_answer(&request, &send(&service, &request));
        }
    }
    let report = engine::check::check(&*store, &mut |_| {}).expect("the store can be read");
    assert!(report.is_sound(), "{:?}", report.told);
}

/// Checks that nothing is done without a signature.
fn check_unauthenticated(service: &Service, request: &Request<Bytes>) {
    let mut unauthenticated = request.clone();
    unauthenticated.headers_mut().remove(AUTHORIZATION);
    let answer = send(service, &unauthenticated);
    check_answer(&unauthenticated, &answer);
    let first = request.uri().path().split('/').find(|segment| !segment.is_empty()).unwrap_or_default();
    let is_open = OPEN.contains(&first) || first.contains('%');
    assert!(is_open || answer.status().is_client_error(), "{request:?} gave {answer:?}");
}

fn check_answer(request: &Request<Bytes>, answer: &Response<Bytes>) {
    assert_ne!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR, "{request:?} gave {answer:?}");
    assert!(answer.headers().contains_key("x-ms-activity-id"), "{request:?} gave {answer:?}");
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("application/json") && !answer.body().is_empty() {
        let read = document::parse_json(answer.body());
        assert!(read.is_ok(), "{request:?} gave {answer:?}");
    }
    if answer.status().is_client_error() {
        let body = document::parse_json(answer.body()).expect("an error has a body");
        assert!(body.get("code").is_some() && body.get("message").is_some(), "{request:?} gave {answer:?}");
    }
}

/// A front end over an empty store of its own.
fn server() -> (Service, Arc<dyn Store>) {
    let clock = Arc::new(ManualClock::new(Time::from_seconds(START)));
    let mut options = ClockOptions::new(clock);
    options.test_clock = storage::TestClock::Runs;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(options).expect("a new store"));
    let engine = Arc::new(Engine::open(Arc::clone(&store)).expect("a new engine"));
    let keys = Keyring::of(Key::parse(KEY).expect("a key"));
    let service = Service::new(engine, keys, Arc::new(|| START), Limits::default(), Arc::default());
    (service, store)
}

fn send(service: &Service, request: &Request<Bytes>) -> Response<Bytes> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().expect("a runtime")
    });
    runtime.block_on(service.answer_whole(request.clone().map(Full::new)))
}

/// Returns the request that a text describes, dated and signed; none if it is not a request.
fn parse(text: &[u8]) -> Option<Request<Bytes>> {
    let (head, body) = cut(text, b"\n\n").unwrap_or((text, &[]));
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let (method, target) = first.split_once(' ')?;
    let (method, uri) = (Method::from_bytes(method.as_bytes()).ok()?, Uri::try_from(target).ok()?);
    let mut request = Request::new(Bytes::copy_from_slice(body));
    (*request.method_mut(), *request.uri_mut()) = (method, uri);
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii())) {
            request.headers_mut().append(name, value);
        }
    }
    sign(&mut request);
    Some(request)
}

/// Adds a date and a signature as an honest client would, unless the input has its own.
fn sign(request: &mut Request<Bytes>) {
    let date = request.headers_mut().entry("x-ms-date").or_insert(HeaderValue::from_static(DATE));
    let date = date.to_str().unwrap_or_default().to_owned();
    let path = request.uri().path();
    let signature = if path.starts_with("/_bolide") {
        format!("Bearer {KEY}")
    } else {
        signature::sign(request.method().as_str(), path, &date, KEY)
    };
    let signature = HeaderValue::from_str(&signature).expect("a signature is ASCII");
    request.headers_mut().entry(AUTHORIZATION).or_insert(signature);
}

/// Returns the text before and after a mark.
fn cut<'a>(text: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(mark.len()).position(|window| window == mark)?;
    Some((&text[..at], &text[at + mark.len()..]))
}
