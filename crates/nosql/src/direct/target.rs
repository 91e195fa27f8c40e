//! The target of a request: the verb and the path that its types and names stand for.
//!
//! A path is made of unescaped names, never by joining and splitting text. Where a frame has no names, a resource id stands
//! for all of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use rntbd::{OperationType, RequestTokens, ResourceType};

use crate::message::request::Verb;
use crate::protocol::error::Error;
use crate::protocol::limits::PATH_BYTES;
use crate::protocol::path::ResourcePath;

/// The operation of a request, and its target.
pub(crate) struct Target {
    /// The HTTP method, which signatures cover.
    pub(crate) method: Method,
    pub(crate) verb: Verb,
    pub(crate) path: ResourcePath,
}

/// The token that has the name of a resource.
type Name = for<'a> fn(&RequestTokens<'a>) -> Option<&'a str>;

/// A type of resource, as a step of a path.
struct Step {
    resource: ResourceType,
    /// Its segment in paths.
    segment: &'static str,
    /// The resource that contains it.
    owner: Option<ResourceType>,
    token: &'static str,
    name: Name,
    /// The bytes of its resource id, which begins with that of its owner.
    rid_bytes: usize,
}

macro_rules! steps {
    ($($resource:ident $segment:literal in $owner:expr, $token:literal $name:ident, $bytes:literal;)*) => {
        /// The resources that requests of direct mode name.
        const STEPS: &[Step] = &[$(Step {
            resource: ResourceType::$resource,
            segment: $segment,
            owner: $owner,
            token: $token,
            name: |tokens| tokens.$name,
            rid_bytes: $bytes,
        },)*];
    };
}

use ResourceType::{Collection, Database, User};

steps! {
    Document "docs" in Some(Collection), "documentName" document_name, 16;
    Collection "colls" in Some(Database), "collectionName" collection_name, 8;
    Database "dbs" in None, "databaseName" database_name, 4;
    StoredProcedure "sprocs" in Some(Collection), "storedProcedureName" stored_procedure_name, 16;
    Trigger "triggers" in Some(Collection), "triggerName" trigger_name, 16;
    UserDefinedFunction "udfs" in Some(Collection), "userDefinedFunctionName" user_defined_function_name, 16;
    Conflict "conflicts" in Some(Collection), "conflictName" conflict_name, 16;
    PartitionKeyRange "pkranges" in Some(Collection), "partitionKeyRangeName" partition_key_range_name, 16;
    User "users" in Some(Database), "userName" user_name, 8;
    Permission "permissions" in Some(User), "permissionName" permission_name, 16;
    ClientEncryptionKey "clientencryptionkeys" in Some(Database),
        "clientEncryptionKeyName" client_encryption_key_name, 16;
}

fn step(resource: ResourceType) -> Option<&'static Step> {
    STEPS.iter().find(|step| step.resource == resource)
}

/// Whether an operation is about one resource or about the feed that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    One,
    Feed,
}

impl Target {
    pub(crate) fn of(
        resource: ResourceType,
        operation: OperationType,
        tokens: &RequestTokens<'_>,
    ) -> Result<Target, Error> {
        let Some(step) = step(resource) else {
            return Err(Error::BadRequest(format!(
                "the resource type {:04x} ({resource}) is not served in direct mode; request it by HTTP",
                resource.number()
            )));
        };
        let (method, verb, reach) = meaning(operation, tokens)?;
        let path = path(step, reach, tokens)?;
        Ok(Target { method, verb, path })
    }
}

/// Returns the meaning of an operation. There is no token for upsert, query or batch: the operation type distinguishes
/// them.
fn meaning(operation: OperationType, tokens: &RequestTokens<'_>) -> Result<(Method, Verb, Reach), Error> {
    use Reach::{Feed, One};
    Ok(match operation {
        OperationType::Create => (Method::POST, Verb::Post, Feed),
        OperationType::Upsert => (Method::POST, Verb::Upsert, Feed),
        OperationType::Query | OperationType::SqlQuery => (Method::POST, Verb::Query, Feed),
        OperationType::QueryPlan => (Method::POST, Verb::Plan, Feed),
        OperationType::Batch => (Method::POST, Verb::Batch, Feed),
        OperationType::ExecuteJavaScript => (Method::POST, Verb::Post, One),
        OperationType::Read => (Method::GET, Verb::Get, One),
        OperationType::ReadFeed if tokens.a_im.is_some() => (Method::GET, Verb::ChangeFeed, Feed),
        OperationType::ReadFeed => (Method::GET, Verb::Get, Feed),
        OperationType::Head => (Method::HEAD, Verb::Get, One),
        OperationType::HeadFeed => (Method::HEAD, Verb::Get, Feed),
        OperationType::Replace => (Method::PUT, Verb::Put, One),
        OperationType::Patch => (Method::PATCH, Verb::Patch, One),
        OperationType::Delete => (Method::DELETE, Verb::Delete, One),
        OperationType::Connection => {
            return Err(Error::BadRequest(
                "the operation type 0000 (Connection) is only that of the first frame of a connection"
                    .to_owned(),
            ));
        }
    })
}

/// Returns the path of a resource, or of the feed of its type.
fn path(step: &Step, reach: Reach, tokens: &RequestTokens<'_>) -> Result<ResourcePath, Error> {
    let mut segments = Vec::with_capacity(6);
    if tokens.database_name.is_none()
        && let Some(rid) = tokens.resource_id.filter(|rid| !rid.is_empty())
    {
        push_rid(step, reach, rid, &mut segments)?;
    } else {
        push_names(step, reach, tokens, &mut segments)?;
    }
    if segments.iter().map(String::len).sum::<usize>() > PATH_BYTES {
        return Err(Error::BadRequest(format!("the names are longer than {PATH_BYTES} bytes together")));
    }
    Ok(ResourcePath::of_names(segments))
}

/// Appends the segments of a resource and of those that contain it, by the names in the tokens.
fn push_names(
    step: &Step,
    reach: Reach,
    tokens: &RequestTokens<'_>,
    segments: &mut Vec<String>,
) -> Result<(), Error> {
    if let Some(owner) = step.owner.and_then(self::step) {
        push_names(owner, Reach::One, tokens, segments)?;
    }
    segments.push(step.segment.to_owned());
    if reach == Reach::One {
        let Some(name) = (step.name)(tokens).filter(|name| !name.is_empty()) else {
            return Err(Error::BadRequest(format!(
                "the request has no token '{}', and no token 'databaseName' that makes a resource id stand for it",
                step.token
            )));
        };
        if name.contains(['/', '\\']) {
            return Err(Error::BadRequest(format!(
                "the token '{}' has a name with '/' or '\\', which no resource has",
                step.token
            )));
        }
        segments.push(name.to_owned());
    }
    Ok(())
}

/// Appends the segments of a resource and of those that contain it, by the parts of a resource id.
fn push_rid(step: &Step, reach: Reach, rid: &[u8], segments: &mut Vec<String>) -> Result<(), Error> {
    let named = match reach {
        Reach::One => Some(step),
        Reach::Feed => step.owner.and_then(self::step),
    };
    let expected = named.map_or(0, |step| step.rid_bytes);
    if rid.len() != expected {
        return Err(Error::BadRequest(format!(
            "the token 'resourceId' has {} bytes, where {expected} are expected",
            rid.len()
        )));
    }
    let mut steps = Vec::new();
    let mut next = named;
    while let Some(step) = next {
        steps.push(step);
        next = step.owner.and_then(self::step);
    }
    for step in steps.into_iter().rev() {
        segments.push(step.segment.to_owned());
        segments.push(STANDARD.encode(&rid[..step.rid_bytes]).replace('/', "-"));
    }
    if reach == Reach::Feed {
        segments.push(step.segment.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> RequestTokens<'static> {
        RequestTokens {
            database_name: Some("d"),
            collection_name: Some("c"),
            document_name: Some("i"),
            stored_procedure_name: Some("s"),
            user_name: Some("u"),
            permission_name: Some("p"),
            ..RequestTokens::default()
        }
    }

    fn target(resource: ResourceType, operation: OperationType, tokens: &RequestTokens<'_>) -> String {
        match Target::of(resource, operation, tokens) {
            Ok(Target { method, verb, path }) => format!("{method} {verb:?} {}", path.segments().join("/")),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn types_and_names_make_the_verb_and_the_path() {
        use OperationType as O;
        use ResourceType as R;
        for (resource, operation, expected) in [
            (R::Document, O::Create, "POST Post dbs/d/colls/c/docs"),
            (R::Document, O::Upsert, "POST Upsert dbs/d/colls/c/docs"),
            (R::Document, O::Read, "GET Get dbs/d/colls/c/docs/i"),
            (R::Document, O::Replace, "PUT Put dbs/d/colls/c/docs/i"),
            (R::Document, O::Patch, "PATCH Patch dbs/d/colls/c/docs/i"),
            (R::Document, O::Delete, "DELETE Delete dbs/d/colls/c/docs/i"),
            (R::Document, O::ReadFeed, "GET Get dbs/d/colls/c/docs"),
            (R::Document, O::Query, "POST Query dbs/d/colls/c/docs"),
            (R::Document, O::SqlQuery, "POST Query dbs/d/colls/c/docs"),
            (R::Document, O::QueryPlan, "POST Plan dbs/d/colls/c/docs"),
            (R::Document, O::Batch, "POST Batch dbs/d/colls/c/docs"),
            (R::StoredProcedure, O::ExecuteJavaScript, "POST Post dbs/d/colls/c/sprocs/s"),
            (R::Database, O::Read, "GET Get dbs/d"),
            (R::Database, O::Query, "POST Query dbs"),
            (R::Database, O::HeadFeed, "HEAD Get dbs"),
            (R::Collection, O::ReadFeed, "GET Get dbs/d/colls"),
            (R::Collection, O::Head, "HEAD Get dbs/d/colls/c"),
            (R::Permission, O::Read, "GET Get dbs/d/users/u/permissions/p"),
            (R::User, O::ReadFeed, "GET Get dbs/d/users"),
        ] {
            assert_eq!(target(resource, operation, &names()), expected);
        }
        let feed = RequestTokens { a_im: Some("Incremental Feed"), ..names() };
        assert_eq!(target(R::Document, O::ReadFeed, &feed), "GET ChangeFeed dbs/d/colls/c/docs");
    }

    #[test]
    fn a_resource_id_stands_for_names_where_there_are_none() {
        use OperationType as O;
        use ResourceType as R;
        let bytes: Vec<u8> = (0xF8..0xFF).chain([0; 9]).collect();
        for (resource, operation, length, expected) in [
            (R::Database, O::Read, 4, "GET Get dbs/+Pn6+w=="),
            (R::Collection, O::ReadFeed, 4, "GET Get dbs/+Pn6+w==/colls"),
            (R::Collection, O::Read, 8, "GET Get dbs/+Pn6+w==/colls/+Pn6+-z9-gA="),
            (R::Document, O::Query, 8, "POST Query dbs/+Pn6+w==/colls/+Pn6+-z9-gA=/docs"),
            (R::Document, O::Read, 8, "the token 'resourceId' has 8 bytes, where 16 are expected"),
            (R::Document, O::Query, 16, "the token 'resourceId' has 16 bytes, where 8 are expected"),
            (R::Database, O::Query, 4, "the token 'resourceId' has 4 bytes, where 0 are expected"),
            (
                R::Document,
                O::Read,
                16,
                "GET Get dbs/+Pn6+w==/colls/+Pn6+-z9-gA=/docs/+Pn6+-z9-gAAAAAAAAAAAA==",
            ),
        ] {
            let tokens = RequestTokens { resource_id: Some(&bytes[..length]), ..RequestTokens::default() };
            assert_eq!(target(resource, operation, &tokens), expected);
        }
        assert_eq!(target(R::Database, O::Query, &RequestTokens::default()), "POST Query dbs");
    }

    #[test]
    fn what_cannot_be_a_target_is_refused_by_name() {
        use OperationType as O;
        use ResourceType as R;
        let refused = |resource, operation, tokens: &RequestTokens<'_>, part: &str| {
            let text = target(resource, operation, tokens);
            assert!(text.contains(part), "{text}");
        };
        for name in ["a/b", "a\\b"] {
            let tokens = RequestTokens { document_name: Some(name), ..names() };
            refused(R::Document, O::Read, &tokens, "'documentName'");
            assert_eq!(target(R::Document, O::Create, &tokens), "POST Post dbs/d/colls/c/docs");
        }
        let nameless = RequestTokens { document_name: None, ..names() };
        refused(R::Document, O::Read, &nameless, "'documentName'");
        refused(
            R::Document,
            O::Read,
            &RequestTokens { document_name: Some(""), ..names() },
            "'documentName'",
        );
        refused(R::Offer, O::Read, &names(), "000f");
        refused(R::Document, O::Connection, &names(), "0000");
        let long = "x".repeat(PATH_BYTES);
        refused(R::Document, O::Read, &RequestTokens { document_name: Some(&long), ..names() }, "longer");
    }
}
