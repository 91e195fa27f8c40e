//! The streams of a real client are read, and written again byte by byte.

use hybridrow::{
    Operation,
    OperationKind::{Create, Delete, Patch, Read, Replace, Upsert},
    OperationResult, ResultStream, decode_operations, decode_results, encode_operations,
};

/// The recorded streams: kind, title, bytes.
pub(crate) fn vectors() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let lines = include_str!("../vectors/dotnet.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut parts = line.split('\t');
            let mut next = || parts.next().expect("three parts");
            (next(), next(), bytes(next()))
        })
        .collect()
}

/// An answer with these results.
pub(crate) fn answer(results: &[OperationResult<'_>]) -> Vec<u8> {
    let mut stream = ResultStream::default();
    for result in results {
        stream.push(result);
    }
    stream.finish()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().map(|digit| (digit as char).to_digit(16).expect("hex") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[test]
fn recorded_streams_are_read_and_written_again_byte_by_byte() {
    let vectors = vectors();
    assert!(vectors.len() >= 14, "{}", vectors.len());
    for (kind, title, stream) in vectors {
        let again = match kind {
            "operations" => encode_operations(&decode_operations(&stream).expect(title)),
            _ => answer(&decode_results(&stream).expect(title)),
        };
        assert_eq!(again, stream, "{title}");
    }
}

#[test]
fn a_recorded_batch_has_the_operations_that_the_program_asked_for() {
    let vectors = vectors();
    let named = |kind: &str, part: &str| {
        let found = vectors.iter().find(|(of, title, _)| *of == kind && title.contains(part));
        found.map(|(_, _, stream)| stream.as_slice()).expect("recorded")
    };
    let batch = decode_operations(named("operations", "create, upsert, replace")).expect("operations");
    let kinds: Vec<_> = batch.iter().map(|operation| operation.kind).collect();
    assert_eq!(kinds, [Create, Upsert, Replace, Read, Patch, Delete]);
    assert_eq!(batch[0].resource_body, Some(br#"{"id":"n","pk":"b","ttl":50}"#.as_slice()));
    let conditions = decode_operations(named("operations", "if-none-match")).expect("operations");
    let expected = Operation { id: Some("a"), if_none_match: Some("*"), ..Operation::new(Read) };
    assert_eq!(conditions[0], expected);
    assert_eq!(conditions[1].indexing_directive, Some("Exclude"));
    let bulk = decode_operations(named("operations", "bulk")).expect("operations");
    assert_eq!(bulk[0].partition_key, Some(r#"["b"]"#));
    let failed = decode_results(named("results", "if-match that fails")).expect("results");
    let expected = OperationResult {
        status: 412,
        substatus: Some(0),
        etag: None,
        resource_body: None,
        retry_after_ms: None,
        charge: Some(1.0),
    };
    assert_eq!(failed, [expected]);
}
