//! Checks for one input of the fuzz target `hybridrow`. The target shares this file with the test that replays its corpus.
//!
//! An input is a stream of records. It is read as it is, and once more with the checksums put right, behind which most of the
//! reader would otherwise never be reached.

use hybridrow::{
    MAX_RECORDS, OperationResult, ResultStream, decode_operations, decode_results, encode_operations,
    is_hybrid_row,
};

/// The bytes of the segment row.
const SEGMENT_BYTES: usize = 10;
/// The bytes of a record row, and where its length and its checksum stand.
const RECORD_BYTES: usize = 13;
const LENGTH_OFFSET: usize = 5;
const CHECKSUM_OFFSET: usize = 9;

/// Reads an input as operations and as results.
pub(crate) fn check_hybridrow(data: &[u8]) {
    check_operations(data);
    check_results(data);
    let mended = mended(data);
    check_operations(&mended);
    check_results(&mended);
}

/// Returns the stream with the checksum of each record that is whole.
fn mended(data: &[u8]) -> Vec<u8> {
    let mut mended = data.to_vec();
    let mut start = SEGMENT_BYTES;
    while let Some(row) = row_at(&mended, start) {
        let checksum = crc32fast::hash(&mended[row.clone()]).to_le_bytes();
        mended[start + CHECKSUM_OFFSET..start + RECORD_BYTES].copy_from_slice(&checksum);
        start = row.end;
    }
    mended
}

/// Returns where the row of the record that begins here stands.
fn row_at(stream: &[u8], start: usize) -> Option<std::ops::Range<usize>> {
    let length = stream.get(start + LENGTH_OFFSET..)?.first_chunk()?;
    let row = start + RECORD_BYTES;
    let end = row.checked_add(u32::from_le_bytes(*length) as usize)?;
    (end <= stream.len()).then_some(row..end)
}

/// Checks that operations which are accepted are written and read again as the same.
fn check_operations(stream: &[u8]) {
    let Ok(operations) = decode_operations(stream) else { return };
    assert!(operations.len() <= MAX_RECORDS && is_hybrid_row(stream));
    let written = encode_operations(&operations);
    assert_eq!(decode_operations(&written).as_ref(), Ok(&operations));
}

/// As [`check_operations`], but by the bytes: a charge may be no number, which is not equal to itself.
fn check_results(stream: &[u8]) {
    let Ok(results) = decode_results(stream) else { return };
    assert!(results.len() <= MAX_RECORDS && is_hybrid_row(stream));
    let written = write(&results);
    let again = decode_results(&written).expect("it was just written");
    assert_eq!(write(&again), written);
}

fn write(results: &[OperationResult<'_>]) -> Vec<u8> {
    let mut stream = ResultStream::default();
    for result in results {
        stream.push(result);
    }
    stream.finish()
}
