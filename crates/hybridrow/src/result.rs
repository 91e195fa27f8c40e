//! The result of an operation of a batch or bulk request.

use crate::Error;
use crate::row::{Row, Value, Values};

/// What became of one operation. Texts and bytes are those of the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationResult<'a> {
    /// The HTTP status that the operation alone would have had.
    pub status: i32,
    /// The substatus, where there is one.
    pub substatus: Option<i32>,
    /// The etag of the item that was written or read.
    pub etag: Option<&'a str>,
    /// The item, or the error document.
    pub resource_body: Option<&'a [u8]>,
    /// How long to wait before the operation is tried again.
    pub retry_after_ms: Option<u32>,
    /// What the operation cost, in request units.
    pub charge: Option<f64>,
}

impl<'a> OperationResult<'a> {
    pub(crate) fn from_row(row: Row<'a>) -> Result<Self, Error> {
        let mut values = Values::of(row);
        Ok(Self {
            status: values.i32().ok_or(Error::Missing { field: "statusCode" })?,
            substatus: values.i32(),
            etag: values.text(),
            resource_body: values.bytes(),
            retry_after_ms: values.u32(),
            charge: values.f64(),
        })
    }

    pub(crate) fn to_row(&self) -> Row<'a> {
        vec![
            Some(Value::Int32(self.status)),
            self.substatus.map(Value::Int32),
            self.etag.map(Value::Utf8),
            self.resource_body.map(Value::Binary),
            self.retry_after_ms.map(Value::UInt32),
            self.charge.map(Value::Float64),
        ]
    }
}
