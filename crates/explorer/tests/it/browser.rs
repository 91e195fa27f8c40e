//! A minimal browser: keeps the cookie, finds the secret of a form, follows redirects.

use std::sync::Arc;
use std::time::Duration;

use account::{Entry, Key, KeySource, Keyring, Kind, NoKeyStore};
use bytes::Bytes;
use engine::{ContainerDefinition, Engine, Operation};
use explorer::{AuditedAction, Backends, Explorer, OpenConnections, Transport};
use hyper::header::{CONTENT_SECURITY_POLICY, COOKIE, LOCATION, SET_COOKIE};
use hyper::{Request, Response, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use storage::{ClockOptions, ManualClock, MemoryDisk, MemoryStore, TestClock, Time};

pub(crate) const KEY: &str = "cHJpbWFyeQ==";

/// The time at which a world begins.
pub(crate) const START: u64 = 1_800_000_000;
pub(crate) const READ_ONLY_KEY: &str = "cmVhZGVy";

/// The policy that every page must send.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// An explorer, its engine and its keys.
pub(crate) struct World {
    pub(crate) engine: Arc<Engine>,
    /// The machine's clocks.
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) keys: Keyring,
    pub(crate) explorer: Explorer,
    disk: MemoryDisk,
}

impl World {
    pub(crate) fn new() -> World {
        World::with_clock(TestClock::Runs)
    }

    pub(crate) fn with_clock(test_clock: TestClock) -> World {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(START)));
        World::open(MemoryDisk::new(), clock, test_clock)
    }

    /// Returns the same store under a new process.
    pub(crate) fn restart(self) -> World {
        let test_clock = self.engine.clock_status().unwrap().test_clock;
        let World { engine, explorer, disk, clock, .. } = self;
        // Only one process may have a store open.
        drop((engine, explorer));
        World::open(disk, clock, test_clock)
    }

    fn open(disk: MemoryDisk, clock: Arc<ManualClock>, test_clock: TestClock) -> World {
        let mut options = ClockOptions::new(Arc::clone(&clock) as Arc<_>);
        options.test_clock = test_clock;
        let store = Arc::new(MemoryStore::open(disk.clone(), options).unwrap());
        let engine = Arc::new(Engine::open(store).unwrap());
        let entry = |kind, text| Entry { kind, key: Key::parse(text).unwrap(), source: KeySource::Generated };
        let entries = [entry(Kind::Primary, KEY), entry(Kind::PrimaryReadonly, READ_ONLY_KEY)];
        let keys = Keyring::new(entries, NoKeyStore);
        let connections = Arc::new(|| OpenConnections { http: 3, direct: 1200, mongodb: 0 });
        let backends = Backends { engine: Arc::clone(&engine), keys: keys.clone(), shell: None, connections };
        World { engine, clock, keys, explorer: Explorer::new(backends), disk }
    }

    /// A container `shop/orders` by `/pk`, with that time to live.
    pub(crate) fn with_orders(ttl: &str) -> World {
        let world = World::new();
        let database = world.engine.create_database("shop", None).unwrap();
        let text = format!(r#"{{"id":"orders","partitionKey":{{"paths":["/pk"]}},"defaultTtl":{ttl}}}"#);
        let definition =
            ContainerDefinition::from_value(&document::parse_json(text.as_bytes()).unwrap()).unwrap();
        world.engine.create_container(&database, definition, None).unwrap();
        world
    }

    pub(crate) fn orders(&self) -> Arc<engine::Container> {
        let database = self.engine.database("shop").unwrap();
        self.engine.container(&database, "orders").unwrap()
    }

    pub(crate) fn put(&self, text: &str) -> engine::Item {
        let body = document::Document::from_json(text.as_bytes()).unwrap();
        self.engine.write(&self.orders(), None, Operation::Create { body }).wait().unwrap().item.unwrap()
    }

    pub(crate) fn living(&self) -> u64 {
        self.engine.usage(&self.orders()).unwrap().living.items
    }

    pub(crate) async fn ask(&self, request: Request<Bytes>) -> Page {
        // No page takes long; one that hangs is a failure.
        let mut audited = None;
        let answer = self.explorer.answer(request, Transport::Plain, None, &mut audited);
        let response = tokio::time::timeout(Duration::from_mins(1), answer).await.unwrap();
        Page { audited, ..Page::new(response) }
    }

    /// Signs in.
    pub(crate) async fn sign_in(&self, key: &str) -> Browser<'_> {
        let page = self.ask(post("sign-in", &[("key", key)], None)).await;
        assert_eq!(page.status, StatusCode::SEE_OTHER, "{}", page.text);
        Browser { world: self, cookie: page.cookie.unwrap() }
    }
}

/// An answer.
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    pub(crate) location: Option<String>,
    /// The cookie as a browser would send it back.
    pub(crate) cookie: Option<String>,
    pub(crate) set_cookie: Option<String>,
    /// The record of the request in the audit log.
    pub(crate) audited: Option<AuditedAction>,
}

impl Page {
    fn new(response: Response<Bytes>) -> Page {
        let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(header(CONTENT_SECURITY_POLICY).as_deref(), Some(POLICY));
        assert_eq!(header(hyper::header::X_CONTENT_TYPE_OPTIONS).as_deref(), Some("nosniff"));
        assert_eq!(header(hyper::header::REFERRER_POLICY).as_deref(), Some("no-referrer"));
        let set_cookie = header(SET_COOKIE);
        let cookie = set_cookie.as_ref().map(|text| text.split(';').next().unwrap().to_owned());
        let (status, location) = (response.status(), header(LOCATION));
        let text = String::from_utf8(response.into_body().to_vec()).unwrap();
        for inline in
            [" style=", " onclick=", "href=\"javascript:", "action=\"javascript:", "src=\"javascript:"]
        {
            assert!(!text.contains(inline), "{inline} in {text}");
        }
        assert_eq!(
            text.matches("<script").count(),
            text.matches("<script src=\"/_explorer/script.js?").count()
        );
        Page { status, text, location, cookie, set_cookie, audited: None }
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    /// Returns the value of a hidden field.
    pub(crate) fn hidden(&self, name: &str) -> String {
        let mark = format!("name=\"{name}\" value=\"");
        let from =
            self.text.find(&mark).unwrap_or_else(|| panic!("no field {name} in {}", self.text)) + mark.len();
        let end = self.text[from..].find('"').unwrap();
        self.text[from..from + end].replace("&quot;", "\"").replace("&amp;", "&")
    }
}

/// A signed-in browser.
pub(crate) struct Browser<'a> {
    pub(crate) world: &'a World,
    pub(crate) cookie: String,
}

impl Browser<'_> {
    pub(crate) async fn get(&self, path: &str) -> Page {
        self.world.ask(get(path, Some(&self.cookie))).await
    }

    /// Sends a form with the secret of this session.
    pub(crate) async fn send(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let csrf = self.get("help").await.hidden("csrf");
        let mut all = vec![("csrf", csrf.as_str())];
        all.extend_from_slice(fields);
        self.world.ask(post(path, &all, Some(&self.cookie))).await
    }

    /// Sends a form and confirms the question on the next page.
    pub(crate) async fn confirm(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let asked = self.send(path, fields).await;
        assert_eq!(asked.status, StatusCode::OK, "{}", asked.text);
        assert!(asked.has("This cannot be undone."), "{}", asked.text);
        let number = asked.hidden("confirmed");
        for (name, value) in fields {
            assert_eq!(asked.hidden(name), *value, "the second form carries what the first one said");
        }
        let fields: Vec<_> = fields.iter().copied().chain([("confirmed", number.as_str())]).collect();
        self.send(path, &fields).await
    }

    /// Follows a redirect.
    pub(crate) async fn follow(&self, page: &Page) -> Page {
        let location = page.location.as_deref().unwrap_or_else(|| panic!("{} {}", page.status, page.text));
        self.get(location.strip_prefix("/_explorer/").unwrap()).await
    }
}

/// Returns a text as links and forms encode it.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

pub(crate) fn get(path: &str, cookie: Option<&str>) -> Request<Bytes> {
    let mut request = Request::builder().uri(format!("/_explorer/{path}"));
    if let Some(cookie) = cookie {
        request = request.header(COOKIE, cookie);
    }
    request.body(Bytes::new()).unwrap()
}

pub(crate) fn post(path: &str, fields: &[(&str, &str)], cookie: Option<&str>) -> Request<Bytes> {
    let body: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    let mut request = Request::builder()
        .method("POST")
        .uri(format!("/_explorer/{path}"))
        .header("host", "localhost:8081")
        .header("origin", "http://localhost:8081")
        .header("sec-fetch-site", "same-origin");
    if let Some(cookie) = cookie {
        request = request.header(COOKIE, cookie);
    }
    request.body(Bytes::from(body.join("&"))).unwrap()
}
