//! A client of a running server's admin API, for the tools: one keep-alive connection, blocking calls, and readable
//! errors.
//!
//! Tools are synchronous, so the client has its own small runtime and every call blocks. Answers are bounded: JSON up
//! to [`JSON_BYTES_MAX`], messages of refusals up to [`MESSAGE_BYTES_MAX`]; larger ones are streamed to the caller
//! piece by piece. A key never appears in an error.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use bytes::{Bytes, BytesMut};
use document::Value;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::config;
use crate::settings::Settings;

/// The time limit for connecting, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit for the beginning of an answer: a purge on demand or a dry run takes a while.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);

/// The time limit for each further piece of an answer.
const PAUSE_TIMEOUT: Duration = Duration::from_mins(1);

/// The largest JSON answer.
const JSON_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How much of a refusal is read.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

const JSON: &str = "application/json";

/// A server and its credentials.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// `http://host:port` or `https://host:port`.
    pub(crate) url: String,
    /// The account key.
    pub(crate) key: String,
    /// The root that the certificate of an https server must come from, PEM.
    pub(crate) ca: Option<PathBuf>,
}

impl Endpoint {
    /// Returns the server named by the settings.
    pub(crate) fn from_settings(settings: &Settings) -> Result<Endpoint> {
        Ok(Endpoint {
            url: settings.always("url").to_owned(),
            key: config::key(settings)?,
            ca: settings.text("ca").map(PathBuf::from),
        })
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Endpoint").field("url", &self.url).field("ca", &self.ca).finish_non_exhaustive()
    }
}

/// A refusal by the server.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The status code.
    pub(crate) status: StatusCode,
    /// When to retry, if the server says so.
    pub(crate) retry_after: Option<Duration>,
    /// The request.
    what: String,
    /// The server's message.
    message: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, what, message) = (self.status.as_u16(), &self.what, &self.message);
        match self.status {
            StatusCode::UNAUTHORIZED => write!(
                out,
                "the server does not accept the key ({status}): {message}; set its account key with --key or --key-file"
            ),
            _ if message.is_empty() => write!(out, "the server refused {what} with status {status}"),
            _ => write!(out, "the server refused {what} ({status}): {message}"),
        }
    }
}

impl std::error::Error for Refused {}

/// Returns the refusal behind an error, if there is one.
pub(crate) fn refusal(error: &anyhow::Error) -> Option<&Refused> {
    error.downcast_ref()
}

/// The body of a request.
pub(crate) enum Payload {
    /// None.
    Nothing,
    /// Bytes with this content type.
    Bytes(&'static str, Bytes),
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Returns a header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

type Sender = SendRequest<Full<Bytes>>;

/// A client of one server. It connects on first use, and again when the server has closed the connection.
pub(crate) struct Client {
    runtime: Runtime,
    /// `scheme://host:port`, for messages.
    shown: String,
    host: String,
    port: u16,
    /// The prefix of every path.
    base: String,
    bearer: HeaderValue,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    /// Whether requests may expire any number of items at once (T30).
    confirms_expiry: bool,
    sender: Option<Sender>,
    /// Signals that ask this process to end, if it handles them.
    stops: Option<(Signal, Signal)>,
}

impl Client {
    /// Creates a client; sends nothing yet.
    pub(crate) fn new(endpoint: &Endpoint) -> Result<Client> {
        let url = endpoint.url.as_str();
        let wrong =
            || format!("'{url}' is not the address of a server: it should look like http://127.0.0.1:8081");
        let uri: Uri = url.parse().with_context(wrong)?;
        let host = uri.host().with_context(wrong)?.trim_matches(['[', ']']).to_owned();
        if uri.query().is_some() || uri.authority().is_some_and(|authority| authority.as_str().contains('@'))
        {
            bail!(wrong());
        }
        let (tls, default_port) = match uri.scheme_str() {
            Some("http") => (None, 80),
            Some("https") => (Some(secured(endpoint, &host)?), 443),
            _ => bail!(wrong()),
        };
        let port = uri.port_u16().unwrap_or(default_port);
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", endpoint.key.trim()))
            .map_err(|_| anyhow!("the key contains invalid characters"))?;
        bearer.set_sensitive(true);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Client {
            runtime: runtime.context("cannot start a runtime")?,
            shown: url.trim_end_matches('/').to_owned(),
            host,
            port,
            base: uri.path().trim_end_matches('/').to_owned(),
            bearer,
            tls,
            confirms_expiry: false,
            sender: None,
            stops: None,
        })
    }

    /// Returns the URL of the server.
    pub(crate) fn url(&self) -> &str {
        &self.shown
    }

    /// Lets later requests expire any number of items at once (T30).
    pub(crate) fn confirm_expiry(&mut self) {
        self.confirms_expiry = true;
    }

    /// Waits.
    pub(crate) fn pause(&self, pause: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(pause).await });
    }

    /// Waits; returns false if a signal asks this process to end.
    pub(crate) fn pause_unless_stopped(&mut self, pause: Duration) -> Result<bool> {
        let Client { runtime, stops, .. } = self;
        runtime.block_on(async {
            // Kept from one pause to the next, or a signal in between would be missed.
            let (interrupt, terminate) = match stops {
                Some(stops) => stops,
                None => stops.insert((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)),
            };
            Ok(tokio::select! {
                () = tokio::time::sleep(pause) => true,
                _ = interrupt.recv() => false,
                _ = terminate.recv() => false,
            })
        })
    }

    /// Repeats a request as often as the server refuses it for its rate.
    pub(crate) fn with_retries<T>(&mut self, mut ask: impl FnMut(&mut Client) -> Result<T>) -> Result<T> {
        loop {
            match ask(self) {
                Err(error) => match refusal(&error).and_then(|refused| refused.retry_after) {
                    Some(pause) => self.pause(pause),
                    None => return Err(error),
                },
                done => return done,
            }
        }
    }

    /// Gets the JSON at a path.
    pub(crate) fn get_json(&mut self, path: &str) -> Result<Value> {
        let answer = self.call(&Method::GET, path, Payload::Nothing)?;
        self.json(&answer)
    }

    /// Posts JSON and returns the JSON answer.
    pub(crate) fn post_json(&mut self, path: &str, body: &Value) -> Result<Value> {
        self.send_json(&Method::POST, path, body)
    }

    /// Sends JSON with any method and returns the JSON answer.
    pub(crate) fn send_json(&mut self, method: &Method, path: &str, body: &Value) -> Result<Value> {
        let answer = self.call(method, path, Payload::Bytes(JSON, body.to_json().into()))?;
        self.json(&answer)
    }

    fn json(&self, answer: &Answer) -> Result<Value> {
        document::parse_json(&answer.body)
            .map_err(|error| anyhow!("{} answers something that is not JSON: {error}", self.shown))
    }

    /// Sends a request and returns its complete answer, which must not exceed [`JSON_BYTES_MAX`].
    pub(crate) fn call(&mut self, method: &Method, path: &str, payload: Payload) -> Result<Answer> {
        let mut body = BytesMut::new();
        let headers = self.exchange(method, path, payload, &mut |piece| {
            if body.len() + piece.len() > JSON_BYTES_MAX {
                bail!("the answer is larger than {JSON_BYTES_MAX} bytes");
            }
            body.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(Answer { headers, body: body.freeze() })
    }

    /// Sends a request and passes its answer on piece by piece. Returns the headers.
    pub(crate) fn exchange(
        &mut self,
        method: &Method,
        path: &str,
        payload: Payload,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<HeaderMap> {
        let what = format!("{method} {}", path.split('?').next().unwrap_or(path));
        let request = self.request(method, path, payload)?;
        // Split borrows: the runtime runs while the rest of the client is used inside it.
        let Client { runtime, sender, shown, .. } = self;
        let address = Address { host: &self.host, port: self.port, tls: self.tls.as_ref(), shown };
        runtime.block_on(async {
            let mut response = deliver(sender, &address, request).await?;
            if response.status().is_success() {
                pass_on(&mut response, take).await.with_context(|| format!("{shown}: {what}"))?;
                return Ok(response.headers().clone());
            }
            // The connection of a refused request is not worth draining.
            *sender = None;
            Err(refused(&mut response, what).await.into())
        })
    }

    fn request(&self, method: &Method, path: &str, payload: Payload) -> Result<Request<Full<Bytes>>> {
        let authority = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(HOST, format!("{authority}:{}", self.port))
            .header(AUTHORIZATION, self.bearer.clone())
            .header("x-bolide-confirm-expiry", self.confirms_expiry.to_string());
        let request = match payload {
            Payload::Nothing => request.body(Full::default()),
            Payload::Bytes(kind, bytes) => {
                request.header(CONTENT_TYPE, kind).header(CONTENT_LENGTH, bytes.len()).body(Full::new(bytes))
            }
        };
        request.with_context(|| format!("'{path}' is not a path"))
    }
}

/// Builds a path of these names, with any characters.
pub(crate) fn path(names: &[&str]) -> String {
    names.iter().flat_map(|name| ["/".to_owned(), escaped(name)]).collect()
}

/// Escapes a value for `?name=` in a path.
pub(crate) fn escaped(value: &str) -> String {
    utf8_percent_encode(value, NON_ALPHANUMERIC).to_string()
}

/// The address of a connection.
struct Address<'a> {
    host: &'a str,
    port: u16,
    tls: Option<&'a (TlsConnector, ServerName<'static>)>,
    shown: &'a str,
}

/// Sends a request over the kept connection, or over a new one.
async fn deliver(
    kept: &mut Option<Sender>,
    address: &Address<'_>,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>> {
    let mut request = request;
    if let Some(mut sender) = kept.take()
        && sender.ready().await.is_ok()
    {
        match answered(sender.try_send_request(request), address.shown).await? {
            Ok(response) => {
                *kept = Some(sender);
                return Ok(response);
            }
            // The server has closed the connection meanwhile, and nothing of the request was sent.
            Err(mut failure) => match failure.take_message() {
                Some(unsent) => request = unsent,
                None => return Err(broken(&failure.into_error(), address.shown)),
            },
        }
    }
    let mut sender = connect(address).await?;
    match answered(sender.try_send_request(request), address.shown).await? {
        Ok(response) => {
            *kept = Some(sender);
            Ok(response)
        }
        Err(failure) => Err(broken(&failure.into_error(), address.shown)),
    }
}

async fn answered<T>(answer: impl Future<Output = T>, shown: &str) -> Result<T> {
    timeout(ANSWER_TIMEOUT, answer)
        .await
        .map_err(|_| anyhow!("{shown} has not answered for {} minutes", ANSWER_TIMEOUT.as_secs() / 60))
}

fn broken(error: &hyper::Error, shown: &str) -> anyhow::Error {
    // The cause is at the end of the chain.
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    anyhow!("the connection to {shown} failed: {cause}")
}

async fn connect(address: &Address<'_>) -> Result<Sender> {
    let Address { host, port, tls, shown } = *address;
    let connecting = async {
        let stream = TcpStream::connect((host, port)).await.with_context(|| {
            format!("cannot reach a server at {shown}: is it running? Set another URL with --url")
        })?;
        stream.set_nodelay(true)?;
        match tls {
            None => handshake(stream, shown).await,
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await.with_context(|| {
                    format!("TLS with {shown} failed: name the root of its certificate with --ca")
                })?;
                handshake(stream, shown).await
            }
        }
    };
    timeout(CONNECT_TIMEOUT, connecting)
        .await
        .map_err(|_| anyhow!("{shown} was not reached within {} seconds", CONNECT_TIMEOUT.as_secs()))?
}

async fn handshake<S>(stream: S, shown: &str) -> Result<Sender>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error, shown))?;
    tokio::spawn(async move {
        // The request reports the error.
        let _ = connection.await;
    });
    Ok(sender)
}

async fn pass_on(response: &mut Response<Incoming>, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    while let Some(frame) = timeout(PAUSE_TIMEOUT, response.body_mut().frame())
        .await
        .map_err(|_| anyhow!("timed out in the middle of the answer"))?
    {
        let frame = frame.context("the answer ended early")?;
        if let Some(piece) = frame.data_ref() {
            take(piece)?;
        }
    }
    Ok(())
}

async fn refused(response: &mut Response<Incoming>, what: String) -> Refused {
    let mut body = Vec::new();
    // As far as it can be read: the status is enough.
    let _ = pass_on(response, &mut |piece| {
        body.extend_from_slice(piece);
        if body.len() > MESSAGE_BYTES_MAX {
            bail!("too much");
        }
        Ok(())
    })
    .await;
    let wait =
        response.headers().get("x-ms-retry-after-ms").and_then(|wait| wait.to_str().ok()?.parse().ok());
    Refused {
        status: response.status(),
        retry_after: wait.map(Duration::from_millis),
        what,
        message: message(&body),
    }
}

/// Extracts the server's message from the body of a refusal, without the parts meant for its log.
fn message(body: &[u8]) -> String {
    let value = document::parse_json(body).ok();
    let text = value.as_ref().and_then(|value| value.get("message")).and_then(Value::as_str);
    let text = match text.map(|text| text.split("\r\nActivityId").next().unwrap_or(text)) {
        // The service wraps most messages once more: Message: {"Errors":["..."]}.
        Some(text) => match text.strip_prefix("Message: ").and_then(|inner| {
            document::parse_json(inner.as_bytes())
                .ok()?
                .get("Errors")?
                .as_array()?
                .first()?
                .as_str()
                .map(str::to_owned)
        }) {
            Some(inner) => inner,
            None => text.to_owned(),
        },
        None => String::from_utf8_lossy(body).chars().take(1000).collect(),
    };
    text.trim().trim_end_matches('.').to_owned()
}

/// Returns a TLS connector that trusts one root, and the name that the certificate must have.
fn secured(endpoint: &Endpoint, host: &str) -> Result<(TlsConnector, ServerName<'static>)> {
    let Some(file) = &endpoint.ca else {
        bail!(
            "https wants --ca FILE: the root that the server's certificate comes from. A server with a certificate of its own \
             keeps it in its data directory as tls/root.pem"
        );
    };
    let shown = file.display();
    let certificates =
        CertificateDer::pem_file_iter(file).with_context(|| format!("cannot read '{shown}'"))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let certificate = certificate.with_context(|| format!("'{shown}' is not a PEM file"))?;
        roots.add(certificate).with_context(|| format!("'{shown}' has a certificate that is none"))?;
    }
    if roots.is_empty() {
        bail!("'{shown}' has no certificate");
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .context("TLS is not available")?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).with_context(|| format!("'{host}' is not a host"))?;
    Ok((TlsConnector::from(Arc::new(config)), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str) -> Endpoint {
        Endpoint { url: url.to_owned(), key: "c2VjcmV0".to_owned(), ca: None }
    }

    fn refusal_of(url: &str) -> String {
        format!("{:#}", Client::new(&endpoint(url)).err().unwrap())
    }

    #[test]
    fn addresses_that_are_none_are_named() {
        for wrong in ["", "localhost:8081", "ftp://localhost", "http://", "http://h/?x", "http://u:p@h/"] {
            assert!(refusal_of(wrong).contains("not the address"), "{wrong}: {}", refusal_of(wrong));
        }
        assert!(refusal_of("https://localhost:8081").contains("--ca"));
        let client = Client::new(&endpoint("http://[::1]:81/base/")).unwrap();
        assert_eq!((client.host.as_str(), client.port, client.base.as_str()), ("::1", 81, "/base"));
    }

    #[test]
    fn the_key_is_never_shown() {
        assert!(!format!("{:?}", endpoint("http://localhost")).contains("c2VjcmV0"));
        let wrong = Endpoint { key: "se\ncret".to_owned(), ..endpoint("http://localhost") };
        assert!(!format!("{:#}", Client::new(&wrong).err().unwrap()).contains("cret"));
    }

    #[test]
    fn a_server_that_is_not_there_is_named_with_the_remedy() {
        // Nothing listens on a port that was just released.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut client = Client::new(&endpoint(&format!("http://127.0.0.1:{port}"))).unwrap();
        let text = format!("{:#}", client.get_json("/alive").unwrap_err());
        assert!(text.contains(&port.to_string()) && text.contains("--url"), "{text}");
    }

    #[test]
    fn the_servers_words_are_taken_out_of_their_wrapping() {
        for (body, expected) in [
            (
                r#"{"code":"NotFound","message":"Message: {\"Errors\":[\"no db\"]}\r\nActivityId: x"}"#,
                "no db",
            ),
            (r#"{"code":"Unauthorized","message":"the key.\r\nActivityId: 1, bolide/0.1"}"#, "the key"),
            ("plain words\n", "plain words"),
            ("", ""),
        ] {
            assert_eq!(message(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn names_in_paths_are_escaped() {
        assert_eq!(path(&["_bolide", "a b/c"]), "/%5Fbolide/a%20b%2Fc");
    }
}
