//! Cosmos binary JSON against a table of bodies, and what is refused.

use document::{Document, Error, limits};

use crate::tables;

#[test]
fn bodies_stand_for_the_recorded_values() {
    let mut count = 0;
    for row in tables::rows(include_str!("../vectors/binary-json.txt")) {
        let [body, json] = row[..] else { panic!("{row:?}") };
        let document = Document::from_cosmos_binary(&tables::bytes(body)).unwrap();
        assert_eq!(document.to_json(), tables::json(json), "{body}");
        assert!(Document::from_stored(document.as_bytes().clone()).is_ok(), "{body}");
        count += 1;
    }
    assert_eq!(count, 87, "every row of the table is read");
}

#[test]
fn every_cut_body_is_refused() {
    for row in tables::rows(include_str!("../vectors/binary-json.txt")) {
        let body = tables::bytes(row[0]);
        for end in 0..body.len() {
            assert!(Document::from_cosmos_binary(&body[..end]).is_err(), "{} cut at {end}", row[0]);
        }
        let longer = [&body[..], &[0]].concat();
        assert!(Document::from_cosmos_binary(&longer).is_err(), "{} and a byte", row[0]);
    }
}

#[test]
fn refusals_say_where_and_what() {
    for (body, offset, message) in [
        (&b""[..], 0, "ends before"),
        (b"{}", 0, "first byte is not 0x80"),
        (&[0x80, 0x40], 1, "user dictionary"),
        (&[0x80, 0x65, 0x01], 1, "user dictionary"),
        (&[0x80, 0xCF, 0, 0], 1, "16-bit floats"),
        (&[0x80, 0xFF], 1, "unexpected marker 0xff"),
        (&[0x80, 0x6A], 1, "unexpected marker 0x6a"),
        (&[0x80, 0x81, 0xFF], 1, "not UTF-8"),
        (&[0x80, 0xC2, 0xFF, 0xFF, 0xFF, 0xFF], 6, "ends before"),
        (&[0x80, 0xE9, 0x05, 0xD0], 2, "unexpected marker 0x05"),
        (&[0x80, 0xEA, 0x04, 0x2C, 0x00, 0x2C, 0x01], 5, "\"id\" occurs more than once"),
        (&[0x80, 0xE5, 0x02, 0x03, 0x00, 0x00], 6, "2 entries where another number was given"),
        (&[0x80, 0xE2, 0x09, 0x00], 3, "beyond the body"),
        (&[0x80, 0xE2, 0x02, 0xE2, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00], 10, "beyond the end of its array"),
        (&[0x80, 0xC3, 0x01], 1, "does not point back"),
        (&[0x80, 0xC3, 0x00], 1, "does not point back"),
        (&[0x80, 0xE2, 0x07, 0x82, b'h', b'i', 0xC3, 0x03, 0xC3, 0x06], 8, "points at a reference"),
        (&[0x80, 0xE2, 0x03, 0x05, 0xC3, 0x03], 3, "unexpected marker 0x05"),
        (&[0x80, 0xF0, 0x2C, 0x00], 3, "cannot be the type"),
        (&[0x80, 0xF2, 0xF1, 0xDA, 0x00, 0x00], 2, "must have 0xf0 here"),
        (&[0x80, 0x71, 0x00, 0x01], 4, "padding of a base64"),
        (&[0x80, 0x71, 0x01, 0x05, 0, 0, 0], 4, "padding of a base64"),
        (&[0x80, 0x78, 0x01, 0x1F], 4, "after its last character"),
        (&[0x80, 0x7B, 0x01, 0x7F, 0x0F], 5, "more than ASCII"),
    ] {
        match Document::from_cosmos_binary(body).unwrap_err() {
            Error::Binary { offset: at, message: found } => {
                assert!(found.contains(message), "{body:x?}: {found}");
                assert_eq!(at, offset, "{body:x?}: {found}");
            }
            other => panic!("{body:x?}: {other}"),
        }
    }
    let nan = [&[0x80, 0xCC][..], &f64::NAN.to_le_bytes()].concat();
    assert!(Document::from_cosmos_binary(&nan).unwrap_err().to_string().contains("NaN"));
}

#[test]
fn nesting_ends_at_the_limit() {
    let nested = |depth: usize| [&[0x80][..], &vec![0xE1; depth], &[0xD0]].concat();
    assert!(Document::from_cosmos_binary(&nested(limits::NESTING_DEPTH)).is_ok());
    for depth in [129, 10_000, 1_000_000] {
        let error = Document::from_cosmos_binary(&nested(depth)).unwrap_err().to_string();
        assert!(error.contains("nested more than 128 levels"), "{error}");
    }
    let arrays = [&[0x80][..], &[0xE1; 127], &[0xF2, 0xF0, 0xD7, 0x01, 0x01, 0x05]].concat();
    assert!(Document::from_cosmos_binary(&arrays).unwrap_err().to_string().contains("nested"));
}

#[test]
fn a_small_body_cannot_stand_for_a_huge_document() {
    // One long string and many references to it.
    let text = vec![b'a'; 60_000];
    let mut items = [&[0xC1, 0x60, 0xEA][..], &text].concat();
    for _ in 0..10_000 {
        items.extend_from_slice(&[0xC3, 0x06]);
    }
    let length = (items.len() as u32).to_le_bytes();
    let body = [&[0x80, 0xE4][..], &length, &items].concat();
    let error = Document::from_cosmos_binary(&body).unwrap_err().to_string();
    assert!(error.contains("stands for more than"), "{error}");

    // Many arrays of 65,535 empty arrays, seven bytes each.
    let items = [0xF3, 0xF1, 0xDA, 0x00, 0x00, 0xFF, 0xFF].repeat(1000);
    let length = (items.len() as u32).to_le_bytes();
    let body = [&[0x80, 0xE4][..], &length, &items].concat();
    let error = Document::from_cosmos_binary(&body).unwrap_err().to_string();
    assert!(error.contains("stands for more than"), "{error}");
}

#[test]
fn names_may_be_well_known_strings_or_references() {
    let body = [
        &[0x80, 0xE2, 0x0D][..],
        &[0xE9, 0x83, b'k', b'e', b'y', 0x01], // the name starts at offset 4
        &[0xEA, 0x05, 0xC3, 0x04, 0x03, 0x2C, 0x02],
    ]
    .concat();
    let document = Document::from_cosmos_binary(&body).unwrap();
    assert_eq!(document.to_json(), r#"[{"key":1},{"key":3,"id":2}]"#);
    assert_eq!(document.root().as_array().and_then(|a| a.get(1)?.get("id")?.as_i64()), Some(2));
}
