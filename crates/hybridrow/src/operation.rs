//! An operation of a batch or bulk request.

use crate::Error;
use crate::row::{Row, Value, Values};

/// The only resource type that batches hold.
const DOCUMENT: i32 = 2;

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    /// Creates an item.
    Create,
    /// Patches an item.
    Patch,
    /// Reads an item.
    Read,
    /// Deletes an item.
    Delete,
    /// Replaces an item.
    Replace,
    /// Creates or replaces an item.
    Upsert,
}

impl OperationKind {
    /// Every kind.
    pub const ALL: [OperationKind; 6] = [
        OperationKind::Create,
        OperationKind::Patch,
        OperationKind::Read,
        OperationKind::Delete,
        OperationKind::Replace,
        OperationKind::Upsert,
    ];

    /// Returns the name by which JSON batches spell the kind.
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::Create => "Create",
            OperationKind::Patch => "Patch",
            OperationKind::Read => "Read",
            OperationKind::Delete => "Delete",
            OperationKind::Replace => "Replace",
            OperationKind::Upsert => "Upsert",
        }
    }

    /// Returns the number of the kind in a row.
    fn number(self) -> i32 {
        match self {
            OperationKind::Create => 0,
            OperationKind::Patch => 1,
            OperationKind::Read => 2,
            OperationKind::Delete => 4,
            OperationKind::Replace => 5,
            OperationKind::Upsert => 20,
        }
    }
}

impl std::fmt::Display for OperationKind {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// One operation. Texts and bytes are those of the request body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation<'a> {
    /// What it does.
    pub kind: OperationKind,
    /// The partition key as the header of a point operation has it; in bulk requests only.
    pub partition_key: Option<&'a str>,
    /// The hashed partition key.
    pub effective_partition_key: Option<&'a [u8]>,
    /// The id of the item, for all kinds but create and upsert.
    pub id: Option<&'a str>,
    /// The id in a binary form.
    pub binary_id: Option<&'a [u8]>,
    /// The item, or the patch.
    pub resource_body: Option<&'a [u8]>,
    /// Whether the item is to be indexed.
    pub indexing_directive: Option<&'a str>,
    /// The etag that the item must have.
    pub if_match: Option<&'a str>,
    /// The etag that the item must not have.
    pub if_none_match: Option<&'a str>,
    /// A time to live that comes with the operation instead of with the item.
    pub time_to_live_seconds: Option<i32>,
    /// Whether the result of a write is to have no body.
    pub minimal_return: Option<bool>,
}

impl<'a> Operation<'a> {
    /// Returns an operation of a kind with nothing else.
    pub fn new(kind: OperationKind) -> Self {
        Self {
            kind,
            partition_key: None,
            effective_partition_key: None,
            id: None,
            binary_id: None,
            resource_body: None,
            indexing_directive: None,
            if_match: None,
            if_none_match: None,
            time_to_live_seconds: None,
            minimal_return: None,
        }
    }

    pub(crate) fn from_row(row: Row<'a>) -> Result<Self, Error> {
        let mut values = Values::of(row);
        let number = values.i32().ok_or(Error::Missing { field: "operationType" })?;
        let resource_type = values.i32().ok_or(Error::Missing { field: "resourceType" })?;
        if resource_type != DOCUMENT {
            return Err(Error::ResourceType { number: resource_type });
        }
        let kind = OperationKind::ALL.into_iter().find(|kind| kind.number() == number);
        Ok(Self {
            kind: kind.ok_or(Error::OperationKind { number })?,
            partition_key: values.text(),
            effective_partition_key: values.bytes(),
            id: values.text(),
            binary_id: values.bytes(),
            resource_body: values.bytes(),
            indexing_directive: values.text(),
            if_match: values.text(),
            if_none_match: values.text(),
            time_to_live_seconds: values.i32(),
            minimal_return: values.bool(),
        })
    }

    pub(crate) fn to_row(&self) -> Row<'a> {
        vec![
            Some(Value::Int32(self.kind.number())),
            Some(Value::Int32(DOCUMENT)),
            self.partition_key.map(Value::Utf8),
            self.effective_partition_key.map(Value::Binary),
            self.id.map(Value::Utf8),
            self.binary_id.map(Value::Binary),
            self.resource_body.map(Value::Binary),
            self.indexing_directive.map(Value::Utf8),
            self.if_match.map(Value::Utf8),
            self.if_none_match.map(Value::Utf8),
            self.time_to_live_seconds.map(Value::Int32),
            self.minimal_return.map(Value::Bool),
        ]
    }
}
