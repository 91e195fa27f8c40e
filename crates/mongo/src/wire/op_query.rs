//! `OP_QUERY` and `OP_REPLY`: how some drivers send their first hello. Nothing else is sent this way any more.

use bson::{RawDocument, ValueRef};
use bytes::{Buf, Bytes};
use mql::Code;

use super::{Compressor, Form, Request, Style, WireError};

/// The server can wait with its reply: a current server sets this in every reply of this kind.
const AWAIT_CAPABLE: i32 = 8;

/// Reads a message without its header. The command is read and not checked; the database goes into the body as `$db`.
pub(super) fn read(id: i32, mut body: Bytes, compressor: Option<Compressor>) -> Result<Request, WireError> {
    let style = Style { form: Form::Query, compressor };
    let short = || WireError::broken("a query shorter than its fields");
    body.try_get_i32_le().map_err(|_| short())?;
    let end = body.iter().position(|byte| *byte == 0).ok_or_else(short)?;
    let collection = body.split_to(end);
    let collection =
        std::str::from_utf8(&collection).map_err(|_| WireError::broken("a name that is not UTF-8"))?;
    body.advance(1);
    body.try_get_i64_le().map_err(|_| short())?;
    let malformed = |error: bson::Error| WireError::broken(error.to_string());
    let query = RawDocument::split_from(&mut body).map_err(malformed)?;
    if !body.is_empty() {
        RawDocument::parse(body).map_err(malformed)?;
    }
    let Some(database) = collection.strip_suffix(".$cmd") else {
        let text = "OP_QUERY is no longer supported. The client driver may require an upgrade.";
        let error = mql::Error::new(Code::UNSUPPORTED_OP_QUERY_COMMAND, text);
        return Err(WireError::Refused { id, style, error, close: false });
    };
    let wrapped = match query.view().iter().next() {
        Some(("$query" | "query", ValueRef::Document(inner))) => Some(inner),
        _ => None,
    };
    let mut writer = bson::Writer::default();
    for (name, value) in wrapped.unwrap_or(query.view()).iter().filter(|(name, _)| *name != "$db") {
        writer.field(name, value);
    }
    writer.field("$db", database);
    Ok(Request { id, body: writer.finish(), sequences: Vec::new(), style })
}

/// Returns the body of an answer: flags, no cursor, one document.
pub(super) fn write(reply: &RawDocument) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(20 + reply.as_bytes().len());
    bytes.extend_from_slice(&AWAIT_CAPABLE.to_le_bytes());
    bytes.extend_from_slice(&0_i64.to_le_bytes());
    bytes.extend_from_slice(&0_i32.to_le_bytes());
    bytes.extend_from_slice(&1_i32.to_le_bytes());
    bytes.extend_from_slice(reply.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use bson::Document;

    use super::*;

    fn query(collection: &str, document: &Document) -> Bytes {
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(collection.as_bytes());
        bytes.extend_from_slice(&[0; 5]);
        bytes.extend_from_slice(&(-1_i32).to_le_bytes());
        bytes.extend_from_slice(RawDocument::from_document(document).as_bytes());
        bytes.into()
    }

    #[test]
    fn a_hello_is_found_plain_and_wrapped() {
        let hello = Document::new().with("ismaster", 1).with("helloOk", true);
        let wrapped = Document::new().with("$query", hello.clone()).with("$readPreference", Document::new());
        for document in [&hello, &wrapped] {
            let request = read(1, query("admin.$cmd", document), None).unwrap();
            assert_eq!(request.body.to_document(), hello.clone().with("$db", "admin"));
            assert_eq!(request.style.form, Form::Query);
        }
    }

    #[test]
    fn other_queries_are_refused_and_broken_ones_end_the_connection() {
        let refused = read(1, query("test.things", &Document::new()), None).unwrap_err();
        assert!(matches!(refused, WireError::Refused { error, .. } if error.code.0 == 352));
        let whole = query("admin.$cmd", &Document::new().with("ismaster", 1));
        for end in 0..whole.len() {
            assert!(matches!(read(1, whole.slice(..end), None), Err(WireError::Broken(_))), "{end}");
        }
    }
}
