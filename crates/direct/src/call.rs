//! Calls: the requests of a test, before they are signed and numbered.

use rntbd::{OperationType, RequestTokens, ResourceType};

/// A request without what every request has: authorization, date, number, activity id.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call<'a> {
    /// The type of its resource.
    pub resource_type: ResourceType,
    /// The operation.
    pub operation_type: OperationType,
    /// Names and all other tokens. An authorization that is given here is sent as it is.
    pub tokens: RequestTokens<'a>,
    /// The body.
    pub payload: Option<&'a [u8]>,
}

/// The token that names a resource.
type Name = for<'t, 'a> fn(&'t mut RequestTokens<'a>) -> &'t mut Option<&'a str>;

/// How links, resource types and tokens name the resources, in the order of links.
const RESOURCES: [(&str, ResourceType, Name); 11] = [
    ("dbs", ResourceType::Database, |tokens| &mut tokens.database_name),
    ("colls", ResourceType::Collection, |tokens| &mut tokens.collection_name),
    ("docs", ResourceType::Document, |tokens| &mut tokens.document_name),
    ("sprocs", ResourceType::StoredProcedure, |tokens| &mut tokens.stored_procedure_name),
    ("triggers", ResourceType::Trigger, |tokens| &mut tokens.trigger_name),
    ("udfs", ResourceType::UserDefinedFunction, |tokens| &mut tokens.user_defined_function_name),
    ("conflicts", ResourceType::Conflict, |tokens| &mut tokens.conflict_name),
    ("pkranges", ResourceType::PartitionKeyRange, |tokens| &mut tokens.partition_key_range_name),
    ("users", ResourceType::User, |tokens| &mut tokens.user_name),
    ("permissions", ResourceType::Permission, |tokens| &mut tokens.permission_name),
    ("clientencryptionkeys", ResourceType::ClientEncryptionKey, |tokens| {
        &mut tokens.client_encryption_key_name
    }),
];

impl<'a> Call<'a> {
    /// Returns a call for a path such as `dbs/d/colls/c/docs/1`, or `dbs/d/colls/c/docs` for a feed.
    ///
    /// Names stand in tokens as they are; one with a slash is set by [`Call::with`].
    ///
    /// # Panics
    ///
    /// Panics if the path has a segment that no resource has.
    pub fn new(operation_type: OperationType, path: &'a str) -> Self {
        let mut tokens = RequestTokens::default();
        let mut resource_type = ResourceType::Connection;
        let mut segments = path.split('/').filter(|segment| !segment.is_empty());
        while let Some(kind) = segments.next() {
            let found = RESOURCES.iter().find(|(known, ..)| *known == kind);
            let Some((_, resource, name)) = found else {
                panic!("'{kind}' in {path} is no kind of resource")
            };
            resource_type = *resource;
            *name(&mut tokens) = segments.next();
        }
        Self { resource_type, operation_type, tokens, payload: None }
    }

    /// Returns the call with other tokens.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut RequestTokens<'a>)) -> Self {
        change(&mut self.tokens);
        self
    }

    /// Returns the call with a partition key, a JSON array.
    #[must_use]
    pub fn key(self, partition_key: &'a str) -> Self {
        self.with(|tokens| tokens.partition_key = Some(partition_key))
    }

    /// Returns the call with a body.
    #[must_use]
    pub fn payload(self, payload: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self { payload: Some(payload.as_ref()), ..self }
    }

    /// Returns the HTTP verb that the operation stands for, which is signed.
    pub(crate) fn verb(&self) -> &'static str {
        match self.operation_type {
            OperationType::Read | OperationType::ReadFeed | OperationType::Connection => "get",
            OperationType::Replace => "put",
            OperationType::Patch => "patch",
            OperationType::Delete => "delete",
            OperationType::Head | OperationType::HeadFeed => "head",
            OperationType::Create
            | OperationType::Upsert
            | OperationType::Query
            | OperationType::SqlQuery
            | OperationType::QueryPlan
            | OperationType::Batch
            | OperationType::ExecuteJavaScript => "post",
        }
    }

    /// Returns what is signed: the type of the resource and the link, which is made of the names in the tokens.
    pub(crate) fn signed(&self) -> (&'static str, String) {
        let kind = RESOURCES.iter().find(|(_, resource, _)| *resource == self.resource_type);
        let mut tokens = self.tokens;
        let segments = RESOURCES.iter().filter_map(|(kind, _, name)| Some([*kind, (*name(&mut tokens))?]));
        (kind.map_or("", |(kind, ..)| *kind), segments.flatten().collect::<Vec<_>>().join("/"))
    }
}

#[cfg(test)]
mod tests {
    use rntbd::{OperationType, ResourceType};

    use super::Call;

    #[test]
    fn a_path_gives_names_types_and_what_is_signed() {
        use OperationType::{
            Batch, Create, ExecuteJavaScript, Head, HeadFeed, Patch, Query, Read, ReadFeed, Replace,
        };
        // As recorded of .NET: operation, path, verb, type, link.
        let table = [
            (Read, "/dbs/d", ResourceType::Database, "get", "dbs", "dbs/d"),
            (Query, "dbs", ResourceType::Database, "post", "dbs", ""),
            (HeadFeed, "dbs", ResourceType::Database, "head", "dbs", ""),
            (Create, "dbs/d/colls/c/docs", ResourceType::Document, "post", "docs", "dbs/d/colls/c"),
            (Batch, "dbs/d/colls/c/docs", ResourceType::Document, "post", "docs", "dbs/d/colls/c"),
            (ReadFeed, "dbs/d/colls/c/docs", ResourceType::Document, "get", "docs", "dbs/d/colls/c"),
            (Replace, "dbs/d/colls/c/docs/1", ResourceType::Document, "put", "docs", "dbs/d/colls/c/docs/1"),
            (Patch, "dbs/d/colls/c/docs/1", ResourceType::Document, "patch", "docs", "dbs/d/colls/c/docs/1"),
            (Head, "dbs/d/colls/c", ResourceType::Collection, "head", "colls", "dbs/d/colls/c"),
            (
                ExecuteJavaScript,
                "dbs/d/colls/c/sprocs/s",
                ResourceType::StoredProcedure,
                "post",
                "sprocs",
                "dbs/d/colls/c/sprocs/s",
            ),
            (
                Read,
                "dbs/d/users/u/permissions/p",
                ResourceType::Permission,
                "get",
                "permissions",
                "dbs/d/users/u/permissions/p",
            ),
        ];
        for (operation, path, resource, verb, kind, link) in table {
            let call = Call::new(operation, path);
            assert_eq!((call.resource_type, call.verb()), (resource, verb), "{path}");
            assert_eq!(call.signed(), (kind, link.to_owned()), "{path}");
        }
        let call = Call::new(Read, "dbs/d/colls/c/docs").with(|tokens| tokens.document_name = Some("a/b"));
        assert_eq!(call.signed().1, "dbs/d/colls/c/docs/a/b");
    }
}
