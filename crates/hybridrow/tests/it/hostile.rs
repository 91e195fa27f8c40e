//! No bytes make the codec panic, and what it writes it reads.

use hybridrow::{
    Error, MAX_RECORDS, Operation, OperationKind, OperationResult, decode_operations, decode_results,
    encode_operations, is_hybrid_row,
};
use proptest::prelude::*;

use crate::recorded::{answer, vectors};

/// A stream of one operation.
fn one() -> Vec<u8> {
    encode_operations(&[Operation {
        id: Some("a"),
        if_match: Some("e"),
        ..Operation::new(OperationKind::Read)
    }])
}

/// A stream whose only row is changed, with the checksum of what it is changed to.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let stream = one();
    let (head, row) = stream.split_at(23);
    let mut row = row.to_vec();
    change(&mut row);
    let mut changed = head.to_vec();
    changed[15..19].copy_from_slice(&(row.len() as u32).to_le_bytes());
    changed[19..23].copy_from_slice(&crc32fast::hash(&row).to_le_bytes());
    changed.extend(row);
    changed
}

#[test]
fn every_refusal_names_what_is_wrong() {
    let refusal = |stream: &[u8]| decode_operations(stream).expect_err("refused").to_string();
    let table: [(Vec<u8>, &str); 12] = [
        (Vec::new(), "ends at byte 0"),
        (b"[]".to_vec(), "version byte 0x5b"),
        (changed(|row| row[1] = 0x71), "schema 2145473649, where 2145473648"),
        (changed(|row| row[6] = 3), "the operation type 3 is not supported in a batch"),
        (changed(|row| row[10] = 1), "the resource type 1 is not supported"),
        (changed(|row| row[5] |= 0x80), "presence bits beyond"),
        (
            changed(|row| {
                row[5] &= !1;
                row.drain(6..10);
            }),
            "has no 'operationType'",
        ),
        (changed(|row| row[15] = 0xff), "'id' is not UTF-8"),
        (changed(|row| row[14] = 0x7f), "inside of id"),
        (changed(|row| row[16] = 7), "'ifMatch' has type code 7, where utf8"),
        (changed(|row| row[17] = 99), "path token 99"),
        (changed(|row| row.extend_from_slice(&[20, 9, 1, b'x'])), "a sparse field twice"),
    ];
    for (stream, part) in table {
        let refusal = refusal(&stream);
        assert!(refusal.contains(part), "{refusal}: {part}");
    }
    let mut flipped = one();
    *flipped.last_mut().expect("bytes") ^= 1;
    assert_eq!(decode_operations(&flipped), Err(Error::Checksum { record: 0 }));
}

#[test]
fn a_stream_has_a_bound() {
    let operations = vec![Operation::new(OperationKind::Create); MAX_RECORDS + 1];
    assert!(decode_operations(&encode_operations(&operations[1..])).is_ok());
    let stream = encode_operations(&operations);
    assert_eq!(decode_operations(&stream), Err(Error::TooManyRecords { limit: MAX_RECORDS }));
}

#[test]
fn every_cut_of_a_recorded_stream_is_refused_or_has_fewer_records() {
    for (_, title, stream) in vectors() {
        for end in 0..stream.len() {
            let cut = &stream[..end];
            let _ = (decode_operations(cut), decode_results(cut));
        }
        assert!(is_hybrid_row(&stream), "{title}");
    }
    assert!(!is_hybrid_row(b"[{}]"));
}

fn kind() -> impl Strategy<Value = OperationKind> {
    use OperationKind::{Create, Delete, Patch, Read, Replace, Upsert};
    prop::sample::select(vec![Create, Patch, Read, Delete, Replace, Upsert])
}

proptest! {
    #[test]
    fn operations_come_back(
        kind in kind(),
        texts in prop::array::uniform5(prop::option::of(".{0,40}")),
        body in prop::option::of(prop::collection::vec(any::<u8>(), 0..20_000)),
        ttl in any::<Option<i32>>(),
        minimal in any::<Option<bool>>(),
    ) {
        let [partition_key, id, directive, if_match, if_none_match] = &texts;
        let operation = Operation {
            partition_key: partition_key.as_deref(),
            id: id.as_deref(),
            resource_body: body.as_deref(),
            indexing_directive: directive.as_deref(),
            if_match: if_match.as_deref(),
            if_none_match: if_none_match.as_deref(),
            time_to_live_seconds: ttl,
            minimal_return: minimal,
            ..Operation::new(kind)
        };
        let stream = encode_operations(std::slice::from_ref(&operation));
        prop_assert_eq!(decode_operations(&stream), Ok(vec![operation]));
    }

    #[test]
    fn results_come_back(
        status in 100..600,
        substatus in any::<Option<i32>>(),
        etag in prop::option::of(".{0,40}"),
        body in prop::option::of(prop::collection::vec(any::<u8>(), 0..300)),
        retry_after_ms in any::<Option<u32>>(),
        charge in prop::option::of(0.0..1e6),
    ) {
        let (etag, resource_body) = (etag.as_deref(), body.as_deref());
        let result = OperationResult { status, substatus, etag, resource_body, retry_after_ms, charge };
        let stream = answer(std::slice::from_ref(&result));
        prop_assert_eq!(decode_results(&stream), Ok(vec![result]));
    }

    #[test]
    fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), vector in 0_usize..14, at in 0_usize..700) {
        let _ = (decode_operations(&bytes), decode_results(&bytes));
        // The same bytes in the middle of a stream that is in order.
        let mut stream = vectors()[vector].2.clone();
        bytes.truncate(8);
        let at = at % stream.len();
        let end = (at + bytes.len()).min(stream.len());
        stream[at..end].copy_from_slice(&bytes[..end - at]);
        let _ = (decode_operations(&stream), decode_results(&stream));
    }
}
