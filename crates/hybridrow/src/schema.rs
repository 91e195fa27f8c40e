//! The four schemas that occur, as tables of fields.
//!
//! A row's presence byte has one bit for each fixed and variable field in the order of the table. Sparse fields name
//! themselves by a token: the number of the field in the table, from 1.

/// The form of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int32,
    UInt32,
    Float64,
    Bool,
    Utf8,
    Binary,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Int32 => "int32",
            Kind::UInt32 => "uint32",
            Kind::Float64 => "float64",
            Kind::Bool => "bool",
            Kind::Utf8 => "utf8",
            Kind::Binary => "binary",
        }
    }
}

/// Where a field's value stands in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// At the beginning, without a length.
    Fixed,
    /// Behind the fixed ones, with its length.
    Variable,
    /// At the end, with its type and token.
    Sparse,
}

/// A field of a schema.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) storage: Storage,
}

/// The form of a row.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) id: u32,
    /// Whether fields may be absent, and rows have a presence byte.
    pub(crate) nullable: bool,
    /// Fixed ones first, then variable, then sparse.
    pub(crate) fields: &'static [Field],
}

const fn field(name: &'static str, kind: Kind, storage: Storage) -> Field {
    Field { name, kind, storage }
}

/// The row that a stream begins with.
pub(crate) static SEGMENT: Schema =
    Schema { id: 2_147_473_648, nullable: true, fields: &[field("length", Kind::Int32, Storage::Fixed)] };

/// The row before each other row of a stream.
pub(crate) static RECORD: Schema = Schema {
    id: 2_147_473_649,
    nullable: false,
    fields: &[field("length", Kind::Int32, Storage::Fixed), field("crc32", Kind::UInt32, Storage::Fixed)],
};

/// An operation of a batch.
pub(crate) static OPERATION: Schema = Schema {
    id: 2_145_473_648,
    nullable: true,
    fields: &[
        field("operationType", Kind::Int32, Storage::Fixed),
        field("resourceType", Kind::Int32, Storage::Fixed),
        field("partitionKey", Kind::Utf8, Storage::Variable),
        field("effectivePartitionKey", Kind::Binary, Storage::Variable),
        field("id", Kind::Utf8, Storage::Variable),
        field("binaryId", Kind::Binary, Storage::Variable),
        field("resourceBody", Kind::Binary, Storage::Variable),
        field("indexingDirective", Kind::Utf8, Storage::Sparse),
        field("ifMatch", Kind::Utf8, Storage::Sparse),
        field("ifNoneMatch", Kind::Utf8, Storage::Sparse),
        field("timeToLiveInSeconds", Kind::Int32, Storage::Sparse),
        field("minimalReturnPreference", Kind::Bool, Storage::Sparse),
    ],
};

/// The result of an operation.
pub(crate) static RESULT: Schema = Schema {
    id: 2_145_473_649,
    nullable: true,
    fields: &[
        field("statusCode", Kind::Int32, Storage::Fixed),
        field("subStatusCode", Kind::Int32, Storage::Fixed),
        field("eTag", Kind::Utf8, Storage::Variable),
        field("resourceBody", Kind::Binary, Storage::Variable),
        field("retryAfterMilliseconds", Kind::UInt32, Storage::Sparse),
        field("requestCharge", Kind::Float64, Storage::Sparse),
    ],
};

#[cfg(test)]
mod tests {
    use super::{OPERATION, RECORD, RESULT, SEGMENT, Storage};

    #[test]
    fn fields_stand_in_the_order_of_their_storage_and_fit_the_presence_byte() {
        for schema in [&SEGMENT, &RECORD, &OPERATION, &RESULT] {
            assert!(schema.fields.is_sorted_by_key(|field| field.storage as u8), "{}", schema.id);
            let counted = schema.fields.iter().filter(|field| field.storage != Storage::Sparse).count();
            assert!(counted <= 8, "{}", schema.id);
        }
    }
}
