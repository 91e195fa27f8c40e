//! The operations of a body in JSON: an array of objects.

use document::{Document, ValueRef};
use hybridrow::OperationKind;
use query::Surface;

use super::{Entry, Given};
use crate::protocol::error::Error;

pub(super) fn parse(body: &[u8], surface: Surface) -> Result<Vec<Result<Entry, Error>>, Error> {
    let decoded = Document::decode_body(body).map_err(|error| no_operations(body, &error))?;
    let root = decoded.root();
    let list = root.as_array().ok_or_else(|| {
        let found = root.type_name();
        Error::BadRequest(format!(
            "A batch request must be a JSON array of operations, this is of type {found}."
        ))
    })?;
    engine::check_batch_size(list.len())?;
    Ok(list.iter().map(|value| given(value)?.entry(surface)).collect())
}

/// Returns the error for a body of neither form, with the beginning of the body.
fn no_operations(body: &[u8], error: &document::Error) -> Error {
    let found = match body.first() {
        None => "is empty".to_owned(),
        Some(byte) => format!("begins with the byte {byte:#04x} ({error})"),
    };
    Error::BadRequest(format!(
        "The body of a batch or bulk request must be a JSON array of operations, or HybridRow, whose first byte is 0x81. \
         This one {found}."
    ))
}

fn given(value: ValueRef<'_>) -> Result<Given<'_>, Error> {
    let text = |name: &str| value.get(name).and_then(ValueRef::as_str);
    let kind = text("operationType")
        .ok_or_else(|| Error::BadRequest("A batch operation needs a string 'operationType'.".to_owned()))?;
    let known = OperationKind::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(kind));
    let minimal = match value.get("minimalReturnPreference") {
        None | Some(ValueRef::Null) => false,
        Some(flag) => flag.as_bool().ok_or_else(|| {
            Error::BadRequest(
                "The 'minimalReturnPreference' of a batch operation must be a boolean.".to_owned(),
            )
        })?,
    };
    Ok(Given {
        kind: known
            .ok_or_else(|| Error::BadRequest(format!("The batch operation type '{kind}' is not known.")))?,
        id: text("id"),
        body: value.get("resourceBody").map(Document::from_view).transpose()?,
        key: text("partitionKey"),
        if_match: text("ifMatch"),
        if_none_match: text("ifNoneMatch"),
        minimal,
    })
}
