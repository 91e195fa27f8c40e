//! `HybridRow`, as far as the batches of Cosmos DB's .NET client need it: the operations of a batch or bulk request, and their
//! results, as a stream of records.
//!
//! ```text
//! stream     segment row, then for each operation: record row, row
//! segment    81, schema 2147473648, presence byte, int32 length of this row
//! record     81, schema 2147473649, int32 length of the row that follows, uint32 CRC-32 of that row
//! row        81, schema, presence byte, fixed fields, variable fields, sparse fields
//! ```
//!
//! A schema is a table of fields ([`schema`]); one codec ([`row`]) reads and writes rows of any of them, and [`operation`] and
//! [`result`] give rows their types. The crate does no I/O, and nothing is allocated for a length that the input only claims:
//! values are slices of the input. Integers are little-endian.

mod error;
mod operation;
mod reader;
mod result;
mod row;
mod schema;
mod stream;

pub use error::Error;
pub use operation::{Operation, OperationKind};
pub use result::OperationResult;
pub use stream::MAX_RECORDS;

/// Returns whether a body is a stream of rows rather than JSON, which never begins with this byte.
pub fn is_hybrid_row(body: &[u8]) -> bool {
    body.first() == Some(&row::VERSION)
}

/// Returns the operations of a request body.
pub fn decode_operations(body: &[u8]) -> Result<Vec<Operation<'_>>, Error> {
    stream::decode(body, &schema::OPERATION)?.into_iter().map(Operation::from_row).collect()
}

/// Returns a request body with these operations.
pub fn encode_operations(operations: &[Operation<'_>]) -> Vec<u8> {
    let mut stream = stream::Writer::new(&schema::OPERATION);
    for operation in operations {
        stream.push(&operation.to_row());
    }
    stream.finish()
}

/// Returns the results of an answer.
pub fn decode_results(body: &[u8]) -> Result<Vec<OperationResult<'_>>, Error> {
    stream::decode(body, &schema::RESULT)?.into_iter().map(OperationResult::from_row).collect()
}

/// An answer that grows result by result.
#[derive(Debug)]
pub struct ResultStream(stream::Writer);

impl Default for ResultStream {
    fn default() -> Self {
        Self(stream::Writer::new(&schema::RESULT))
    }
}

impl ResultStream {
    /// Appends the result of the next operation.
    pub fn push(&mut self, result: &OperationResult<'_>) {
        self.0.push(&result.to_row());
    }

    /// Returns the answer.
    pub fn finish(self) -> Vec<u8> {
        self.0.finish()
    }
}
