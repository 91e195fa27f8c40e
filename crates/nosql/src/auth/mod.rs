//! Authentication: master-key signatures, resource tokens, and the bearer key of the admin API.
//!
//! The engine can only be reached through a [`Pass`], and only [`Authenticator`] makes passes, so a handler that forgot to
//! authenticate does not compile. A resource token is checked against the request (`grant`) before a pass is made, so
//! no handler can forget that either. Signatures are compared in constant time. Dates are checked against the real wall
//! clock and not the store's clock: a test clock that is a year ahead must not lock its own clients out (T29).

pub(crate) mod grant;
pub(crate) mod names;
pub(crate) mod tokens;

use std::borrow::Cow;
use std::sync::Arc;

use account::{AuthenticatedKey, Keyring, Kind, Right};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use document::{Document, PermissionRid, ValueRef};
use engine::Engine;
use hyper::Method;
use percent_encoding::percent_decode_str;
use transport::{Api, Tenant};

use self::tokens::Claim;
use crate::message::options::TextOption;
use crate::message::request::Head;
use crate::protocol::date;
use crate::protocol::error::Error;
use crate::protocol::limits::SKEW_SECONDS;
use crate::protocol::path::{ResourcePath, Signed};

/// The source of real time: Unix seconds of the wall clock.
pub type WallSeconds = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Verified credentials, and the key behind them.
#[derive(Debug)]
enum Credential {
    /// A key of the account, and the link that was signed.
    Master(AuthenticatedKey, Link),
    /// A resource token, and its permission.
    Resource(Claim, AuthenticatedKey),
}

/// Why a request is refused, and its sender if the credentials are valid and only a right is missing.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: Error,
    pub(crate) who: Option<String>,
}

impl Refusal {
    /// Returns why a credential or a right is missing; `None` if the request is refused for something else.
    pub(crate) fn denial(&self) -> Option<&str> {
        match &self.error {
            Error::Unauthorized(why) | Error::Forbidden(why) => Some(why),
            _ => None,
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { error, who: None }
    }
}

/// The part of a path that a signature covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// All names.
    Names,
    /// The last resource id, which includes those before it.
    ResourceId,
}

/// Checks the credentials of a data request, and determines its resource: clients escape different characters of an id,
/// but they sign the id itself.
fn check_readings(keys: &Keyring, head: &mut Head, now: u64) -> Result<Credential, Error> {
    let first = check(keys, head, &head.path, now);
    if !matches!(first, Err(Error::Unauthorized(_))) {
        return first;
    }
    for path in head.other_readings() {
        let other = check(keys, head, &path, now);
        if !matches!(other, Err(Error::Unauthorized(_))) {
            head.path = path;
            return other;
        }
    }
    first
}

fn check(keys: &Keyring, head: &Head, path: &ResourcePath, now: u64) -> Result<Credential, Error> {
    let text = authorization(head)?;
    let token = Token::parse(&text)?;
    match token.kind()? {
        TokenKind::Master => check_master(keys, head, path, &token, now),
        TokenKind::Resource => check_resource(keys, &token, now),
    }
}

/// Returns the credentials of a request, decoded.
fn authorization(head: &Head) -> Result<Cow<'_, str>, Error> {
    let text = head.text(TextOption::Authorization).ok_or_else(|| {
        unauthorized(
            "Required Header authorization is missing. Ensure a valid Authorization token is passed.",
        )
    })?;
    if !text.contains('%') {
        return Ok(Cow::Borrowed(text));
    }
    // Into a buffer of its final size: the iterator's size hint is a third of it, and the buffer would grow twice.
    let mut decoded = Vec::with_capacity(text.len());
    decoded.extend(percent_decode_str(text));
    String::from_utf8(decoded).map(Cow::Owned).map_err(|_| malformed())
}

fn check_resource(keys: &Keyring, token: &Token<'_>, now: u64) -> Result<Credential, Error> {
    let (claim, holder) = tokens::open(keys, token.signature).ok_or_else(|| {
        unauthorized(
            "The input authorization token can't serve the request: no key that this account has now signed the \
             resource token.",
        )
    })?;
    claim.check_expiry(now)?;
    Ok(Credential::Resource(claim, holder))
}

fn check_master(
    keys: &Keyring,
    head: &Head,
    path: &ResourcePath,
    token: &Token<'_>,
    now: u64,
) -> Result<Credential, Error> {
    let dates = Dates::of(head)?;
    let signature = STANDARD.decode(token.signature).map_err(|_| malformed())?;
    let (holder, link) = check_signature(keys, &head.method, &path.signed(), &dates, &signature)?;
    dates.check_skew(now)?;
    Ok(Credential::Master(holder, link))
}

fn check_signature(
    keys: &Keyring,
    method: &Method,
    signed: &Signed,
    dates: &Dates,
    signature: &[u8],
) -> Result<(AuthenticatedKey, Link), Error> {
    let payload = |link: &str| {
        let mut text = String::with_capacity(link.len() + 96);
        text.push_str(method.as_str());
        text.make_ascii_lowercase();
        for line in [&signed.kind, link, &dates.x_ms_date, &dates.date] {
            text.push('\n');
            text.push_str(line);
        }
        text.push('\n');
        text
    };
    let whose = |link: &str| keys.authenticate_signature(payload(link).as_bytes(), signature);
    let by_names = || Some((whose(&signed.link)?, Link::Names));
    let by_resource_id = || Some((whose(signed.rid.as_deref()?)?, Link::ResourceId));
    if let Some(signer) = by_names().or_else(by_resource_id) {
        return Ok(signer);
    }
    let link = signed.rid.as_ref().unwrap_or(&signed.link);
    Err(unauthorized(&format!(
        "The input authorization token can't serve the request. The wrong key is being used or the expected \
         payload is not built as per the protocol. Server used the following payload to sign: '{}'",
        payload(link)
    )))
}

/// Proof that a request was authenticated and is allowed, and the only way to the engine.
pub(crate) struct Pass {
    engine: Arc<Engine>,
    keys: Keyring,
    /// The key behind the request.
    holder: AuthenticatedKey,
    now_seconds: u64,
    /// The only id that a replacing body may have, for a token of a single resource.
    kept_id: Option<String>,
    /// The permission of the token.
    permission: Option<PermissionRid>,
}

/// Returns the tenant that requests with that key of the account are charged to.
pub fn tenant(kind: Kind) -> Tenant {
    Tenant::new(Api::Nosql, kind.name())
}

/// Returns the tenant that requests with a resource token of that permission are charged to.
fn permission_tenant(permission: PermissionRid) -> Tenant {
    Tenant::new(Api::Nosql, ("permission", permission.to_string()))
}

impl Pass {
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Returns a description of the sender that reveals no secret.
    pub(crate) fn who(&self) -> String {
        match self.permission {
            Some(permission) => format!("permission {permission}"),
            None => self.holder.label(),
        }
    }

    /// Returns the tenant to which the request is charged.
    pub(crate) fn tenant(&self) -> Tenant {
        match self.permission {
            Some(permission) => permission_tenant(permission),
            None => tenant(self.holder.kind),
        }
    }

    /// Returns the account's keys, for operators.
    pub(crate) fn keys(&self) -> &Keyring {
        &self.keys
    }

    /// Creates a resource token for the permission with this resource id, valid only as long as the key of this
    /// request.
    pub(crate) fn mint(&self, permission: &str, life_seconds: u64) -> String {
        tokens::mint(&self.holder.key, permission, self.now_seconds.saturating_add(life_seconds))
    }

    /// Returns the key behind the request.
    pub(crate) fn holder(&self) -> &AuthenticatedKey {
        &self.holder
    }

    /// Checks the part of a permission that depends on the body.
    pub(crate) fn check_body(&self, method: &Method, body: &[u8]) -> Result<(), Refusal> {
        let Some(kept) = self.kept_id.as_deref().filter(|_| method == Method::PUT) else { return Ok(()) };
        let body = Document::decode_body(body).map_err(Error::from)?;
        if body.root().get("id").and_then(ValueRef::as_str) == Some(kept) {
            return Ok(());
        }
        Err(self.refusal(grant::forbidden("the permission is for another id")))
    }

    /// Returns the refusal of this sender.
    fn refusal(&self, error: Error) -> Refusal {
        Refusal { error, who: Some(self.who()) }
    }
}

/// Guards the engine, and admits authenticated requests.
pub(crate) struct Authenticator {
    engine: Arc<Engine>,
    keys: Keyring,
    wall_seconds: WallSeconds,
}

impl Authenticator {
    pub(crate) fn new(engine: Arc<Engine>, keys: Keyring, wall_seconds: WallSeconds) -> Self {
        Self { engine, keys, wall_seconds }
    }

    /// Checks the credentials of a data request, and whether they suffice for it.
    pub(crate) fn admit(&self, head: &mut Head) -> Result<Pass, Refusal> {
        let now = (self.wall_seconds)();
        match check_readings(&self.keys, head, now)? {
            Credential::Master(holder, link) => {
                if link == Link::ResourceId
                    && !names::are_resource_ids(&self.engine, &head.path).map_err(Error::from)?
                {
                    return Err(unauthorized(NOT_RESOURCE_IDS).into());
                }
                let pass = self.pass(holder, now);
                if pass.holder.right() == Right::ReadOnly && !grant::is_for_readers(head)? {
                    return Err(pass.refusal(unauthorized(READ_ONLY)));
                }
                Ok(pass)
            }
            Credential::Resource(claim, holder) => {
                let pass = Pass { permission: Some(claim.permission), ..self.pass(holder, now) };
                let kept_id =
                    grant::check(&self.engine, &claim, head).map_err(|error| pass.refusal(error))?;
                Ok(Pass { kept_id, ..pass })
            }
        }
    }

    /// Checks the credentials of a request for addresses, and returns its tenant. Addresses are not secret from any user of
    /// the account, so any valid credentials suffice; `signed` are the forms in which clients sign it.
    pub(crate) fn admit_to_addresses(&self, head: &Head, signed: &[Signed]) -> Result<Tenant, Error> {
        let now = (self.wall_seconds)();
        let text = authorization(head)?;
        let token = Token::parse(&text)?;
        match token.kind()? {
            TokenKind::Resource => match check_resource(&self.keys, &token, now)? {
                Credential::Resource(claim, _) => Ok(permission_tenant(claim.permission)),
                Credential::Master(holder, _) => Ok(tenant(holder.kind)),
            },
            TokenKind::Master => {
                let dates = Dates::of(head)?;
                let signature = STANDARD.decode(token.signature).map_err(|_| malformed())?;
                let mut refused = malformed();
                for form in signed {
                    match check_signature(&self.keys, &head.method, form, &dates, &signature) {
                        Ok((holder, _)) => {
                            dates.check_skew(now)?;
                            return Ok(tenant(holder.kind));
                        }
                        Err(error) => refused = error,
                    }
                }
                Err(refused)
            }
        }
    }

    /// Checks the bearer key of an admin request.
    pub(crate) fn admit_operator(&self, head: &Head) -> Result<Pass, Refusal> {
        let holder = self.bearer(head).ok_or_else(|| {
            unauthorized("the admin API needs the header 'Authorization: Bearer <account key>'")
        })?;
        let pass = self.pass(holder, (self.wall_seconds)());
        if pass.holder.right() == Right::ReadOnly {
            let text = "the admin API needs a read-write key, and this one is read-only";
            return Err(pass.refusal(Error::Forbidden(text.to_owned())));
        }
        Ok(pass)
    }

    fn pass(&self, holder: AuthenticatedKey, now_seconds: u64) -> Pass {
        let (engine, keys) = (Arc::clone(&self.engine), self.keys.clone());
        Pass { engine, keys, holder, now_seconds, kept_id: None, permission: None }
    }

    /// Returns the key that was sent as a bearer token.
    pub(crate) fn bearer(&self, head: &Head) -> Option<AuthenticatedKey> {
        let given = head.text(TextOption::Authorization)?;
        let (scheme, key) = given.split_once(' ')?;
        self.keys.authenticate(key.trim()).filter(|_| scheme.eq_ignore_ascii_case("bearer"))
    }

    /// Returns the engine, for statistics that require no key.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }
}

/// The supported kinds of token.
enum TokenKind {
    Master,
    Resource,
}

/// `type=…&ver=…&sig=…`, decoded.
struct Token<'a> {
    kind: &'a str,
    version: &'a str,
    signature: &'a str,
}

impl<'a> Token<'a> {
    fn parse(text: &'a str) -> Result<Self, Error> {
        let mut parts = text.splitn(3, '&');
        let mut field = |name: &str| parts.next()?.strip_prefix(name)?.strip_prefix('=');
        match (field("type"), field("ver"), field("sig")) {
            (Some(kind), Some(version), Some(signature)) => Ok(Self { kind, version, signature }),
            _ if is_bearer(text) => Err(unauthorized(ENTRA_ID)),
            _ => Err(malformed()),
        }
    }

    fn kind(&self) -> Result<TokenKind, Error> {
        match self.kind.to_lowercase().as_str() {
            "master" if self.version == "1.0" => Ok(TokenKind::Master),
            "resource" if self.version == "1.0" => Ok(TokenKind::Resource),
            "master" | "resource" => {
                Err(unauthorized(&format!("authorization version '{}' is not known", self.version)))
            }
            "aad" => Err(unauthorized(ENTRA_ID)),
            "sas" => Err(unauthorized(
                "Shared access signatures (type=sas) are not supported; use the account key or a resource token.",
            )),
            other => Err(unauthorized(&format!("authorization type '{other}' is not known"))),
        }
    }
}

/// The two date lines of the string to sign, in lower case, and their instant.
struct Dates {
    x_ms_date: String,
    date: String,
    seconds: u64,
}

impl Dates {
    fn of(head: &Head) -> Result<Self, Error> {
        let text = |option| head.text(option).map(str::to_lowercase);
        let (x_ms_date, date) = match (text(TextOption::MsDate), text(TextOption::Date)) {
            (Some(x_ms_date), _) => (x_ms_date, String::new()),
            (None, Some(date)) => (String::new(), date),
            (None, None) => (String::new(), String::new()),
        };
        let seconds = date::parse_again(if x_ms_date.is_empty() { &date } else { &x_ms_date }).ok_or_else(|| {
            unauthorized(
                "The input date header is invalid format. Please pass in RFC 1123 style date format, in the header \
                 x-ms-date or date.",
            )
        })?;
        Ok(Self { x_ms_date, date, seconds })
    }

    fn check_skew(&self, now: u64) -> Result<(), Error> {
        if self.seconds.abs_diff(now) <= SKEW_SECONDS {
            return Ok(());
        }
        Err(Error::Forbidden(format!(
            "The authorization token is not valid at the current time. Token start time: {}. Token expiry time: {}. \
             Current server time: {}.",
            date::format(self.seconds.saturating_sub(SKEW_SECONDS)),
            date::format(self.seconds.saturating_add(SKEW_SECONDS)),
            date::format(now),
        )))
    }
}

/// The message for a client with a `TokenCredential`.
const ENTRA_ID: &str = "Microsoft Entra ID tokens (type=aad, or a bearer token) are not supported: this server knows no tenant \
                        that could vouch for them. Give the client the account key instead of a TokenCredential (AccountKey \
                        in the connection string, AZURE_COSMOS_KEY), or a resource token of a user's permission.";

/// Returns whether an authorization header contains a bearer token.
fn is_bearer(text: &str) -> bool {
    text.split_once(' ').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
}

/// A signature over a resource id covers nothing else of the path, so all other segments must be resource ids, too.
const NOT_RESOURCE_IDS: &str = "The input authorization token can't serve the request: it signs the last segment of the path \
                                as a resource id, and not every name in the path is the resource id of what it names. Sign \
                                the whole link, as it is for names.";

/// The service answers such a request like one with a wrong key; this message gives the reason.
const READ_ONLY: &str = "The input authorization token can't serve the request: it was made with a read-only key, which \
                         is good for reads and queries, but neither for writes nor for permissions.";

fn unauthorized(message: &str) -> Error {
    Error::Unauthorized(message.to_owned())
}

fn malformed() -> Error {
    unauthorized(
        "The input authorization token can't serve the request: it is not of the form \
         'type=master&ver=1.0&sig=<base64>'.",
    )
}

#[cfg(test)]
mod tests {
    use account::Key;

    use super::*;

    const KEY: &str =
        "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==";
    const DAY: &str = "Thu, 27 Apr 2017 00:51:12 GMT";
    const SECONDS: u64 = 1_493_254_272;
    const SIGNATURE: &str = "c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+c=";

    fn check(pairs: &[(&'static str, &str)], now: u64) -> Result<Credential, Error> {
        let mut request = hyper::Request::get("/dbs/ToDoList");
        for (name, value) in pairs {
            request = request.header(*name, *value);
        }
        let head = crate::http::head::head(request.body(()).unwrap().into_parts().0).unwrap();
        super::check(&Keyring::of(Key::parse(KEY).unwrap()), &head, &head.path, now)
    }

    #[test]
    fn the_published_vector_is_accepted_encoded_and_plain() {
        let plain = format!("type=master&ver=1.0&sig={SIGNATURE}");
        let encoded = "type%3dmaster%26ver%3d1.0%26sig%3dc09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2bc%2bc%3d";
        for token in [plain.as_str(), encoded] {
            check(&[("authorization", token), ("x-ms-date", DAY)], SECONDS).unwrap();
        }
    }

    #[test]
    fn skew_beyond_a_quarter_of_an_hour_is_forbidden_either_way() {
        let token = format!("type=master&ver=1.0&sig={SIGNATURE}");
        let at = |now| check(&[("authorization", &token), ("x-ms-date", DAY)], now);
        assert!(at(SECONDS + SKEW_SECONDS).is_ok());
        assert!(at(SECONDS - SKEW_SECONDS).is_ok());
        assert!(matches!(at(SECONDS + SKEW_SECONDS + 1), Err(Error::Forbidden(_))));
        assert!(matches!(at(SECONDS - SKEW_SECONDS - 1), Err(Error::Forbidden(_))));
    }

    #[test]
    fn everything_else_is_unauthorized_and_says_why() {
        let token = |kind: &str| format!("type={kind}&ver=1.0&sig={SIGNATURE}");
        for (pairs, part) in [
            (vec![("x-ms-date", DAY)], "authorization is missing"),
            (vec![("authorization", "nonsense"), ("x-ms-date", DAY)], "not of the form"),
            (vec![("authorization", "type=master&ver=1.0&sig=%%%"), ("x-ms-date", DAY)], "not of the form"),
            (vec![("authorization", token("master").as_str())], "RFC 1123"),
            (vec![("authorization", token("master").as_str()), ("x-ms-date", "yesterday")], "RFC 1123"),
            (vec![("authorization", token("master").as_str()), ("date", DAY)], "payload to sign"),
            (
                vec![("authorization", token("resource").as_str()), ("x-ms-date", DAY)],
                "no key that this account has",
            ),
            (
                vec![("authorization", token("aad").as_str()), ("x-ms-date", DAY)],
                "instead of a TokenCredential",
            ),
            (
                vec![("authorization", "type%3Daad%26ver%3D1.0%26sig%3DeyJ0.e30.x")],
                "instead of a TokenCredential",
            ),
            (vec![("authorization", "Bearer eyJ0.e30.x")], "instead of a TokenCredential"),
            (vec![("authorization", token("magic").as_str()), ("x-ms-date", DAY)], "'magic' is not known"),
            (vec![("authorization", "type=master&ver=1.0&sig=AAAA"), ("x-ms-date", DAY)], "dbs/ToDoList"),
        ] {
            let Err(Error::Unauthorized(message)) = check(&pairs, SECONDS) else { panic!("{pairs:?}") };
            assert!(message.contains(part), "{message}");
        }
    }
}
