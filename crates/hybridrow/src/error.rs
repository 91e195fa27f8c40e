//! Why bytes are not a stream of operations or results.

/// A body that cannot be read. Offsets count bytes from the beginning of the body, or of the row that is named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The body ends inside of something.
    #[error("the HybridRow body ends at byte {offset}, inside of {what}")]
    Truncated {
        /// The name of what is cut off.
        what: &'static str,
        /// How many bytes there are.
        offset: usize,
    },
    /// A row begins with another version of the format.
    #[error("a HybridRow row begins with version byte {found:#04x}, and must begin with 0x81")]
    Version {
        /// The byte found.
        found: u8,
    },
    /// A row is of another schema than its place in the stream calls for.
    #[error("a HybridRow row has schema {found}, where {expected} is expected")]
    Schema {
        /// The number of the schema that is called for.
        expected: u32,
        /// The number found.
        found: u32,
    },
    /// A row's bytes are not those that its record's checksum was made of.
    #[error("the row of HybridRow record {record} has a wrong checksum")]
    Checksum {
        /// The number of the record, from 0.
        record: usize,
    },
    /// A number, length or text is not one.
    #[error("the HybridRow field '{field}' {reason}")]
    Field {
        /// The name of the field.
        field: &'static str,
        /// What is wrong with its value, as the rest of a sentence.
        reason: &'static str,
    },
    /// A sparse field has a type that batches do not use, or another type than its schema gives it.
    #[error("the HybridRow field '{field}' has type code {code}, where {expected} is expected")]
    Type {
        /// The name of the field.
        field: &'static str,
        /// The type code found.
        code: u8,
        /// The name of the type that the schema gives it.
        expected: &'static str,
    },
    /// A sparse field's path names no sparse field of the schema.
    #[error("a HybridRow row has a sparse field with path token {token}, which its schema does not name")]
    UnknownField {
        /// The token.
        token: u64,
    },
    /// A required field is absent.
    #[error("a HybridRow row has no '{field}'")]
    Missing {
        /// The name of the field.
        field: &'static str,
    },
    /// A sparse field is given twice, or presence bits beyond the schema's fields are set.
    #[error("a HybridRow row has {what}")]
    Form {
        /// What it has, with its article.
        what: &'static str,
    },
    /// An operation of a kind that batches do not have.
    #[error(
        "the operation type {number} is not supported in a batch; create (0), patch (1), read (2), delete (4), replace (5) \
         and upsert (20) are"
    )]
    OperationKind {
        /// The number of the kind.
        number: i32,
    },
    /// An operation on something else than an item.
    #[error("the resource type {number} is not supported in a batch; document (2) is")]
    ResourceType {
        /// The number of the type.
        number: i32,
    },
    /// More records than a stream may have.
    #[error("the HybridRow body has more than {limit} records")]
    TooManyRecords {
        /// How many it may have.
        limit: usize,
    },
}
