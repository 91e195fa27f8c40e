//! A stream of records: the segment row, then each row behind a record row with its length and checksum.

use crate::Error;
use crate::reader::Reader;
use crate::row::{self, Row, Value, Values};
use crate::schema::{RECORD, SEGMENT, Schema};

/// A stream has at most this many operations or results; a longer one is refused.
pub const MAX_RECORDS: usize = 4096;

/// Reads all rows of a stream, which are of one schema.
pub(crate) fn decode<'a>(body: &'a [u8], schema: &Schema) -> Result<Vec<Row<'a>>, Error> {
    let mut reader = Reader::new(body);
    let mut segment = Values::of(row::decode(&mut reader, &SEGMENT, false)?);
    let length = segment.i32().ok_or(Error::Missing { field: "length" })?;
    if usize::try_from(length) != Ok(reader.offset()) {
        return Err(Error::Field { field: "length", reason: "is not the length of the segment row" });
    }
    let mut rows = Vec::new();
    while !reader.is_empty() {
        if rows.len() == MAX_RECORDS {
            return Err(Error::TooManyRecords { limit: MAX_RECORDS });
        }
        let mut record = Values::of(row::decode(&mut reader, &RECORD, false)?);
        let length = record.i32().and_then(|length| usize::try_from(length).ok());
        let length = length.ok_or(Error::Field { field: "length", reason: "is negative" })?;
        let bytes = reader.take(length, "a record's row")?;
        if record.u32() != Some(crc32fast::hash(bytes)) {
            return Err(Error::Checksum { record: rows.len() });
        }
        rows.push(row::decode(&mut Reader::new(bytes), schema, true)?);
    }
    Ok(rows)
}

/// A stream that grows row by row. All rows are of one schema.
#[derive(Debug)]
pub(crate) struct Writer {
    schema: &'static Schema,
    stream: Vec<u8>,
    row: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(schema: &'static Schema) -> Self {
        let mut stream = Vec::new();
        row::encode(&mut stream, &vec![Some(Value::Int32(SEGMENT_BYTES))], &SEGMENT);
        Self { schema, stream, row: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: &Row<'_>) {
        self.row.clear();
        row::encode(&mut self.row, row, self.schema);
        let length = i32::try_from(self.row.len())
            .expect("a row is smaller than 2 GiB, as the request that it belongs to");
        let record = vec![Some(Value::Int32(length)), Some(Value::UInt32(crc32fast::hash(&self.row)))];
        row::encode(&mut self.stream, &record, &RECORD);
        self.stream.extend_from_slice(&self.row);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.stream
    }
}

/// The length of a segment row: version, schema, presence byte, length.
const SEGMENT_BYTES: i32 = 10;
