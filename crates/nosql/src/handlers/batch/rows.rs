//! The operations of a body in `HybridRow`.

use document::Document;
use query::Surface;

use super::{Entry, Given};
use crate::protocol::error::Error;

pub(super) fn parse(body: &[u8], surface: Surface) -> Result<Vec<Result<Entry, Error>>, Error> {
    let operations = hybridrow::decode_operations(body);
    let operations = operations.map_err(|error| Error::BadRequest(format!("{error}.")))?;
    engine::check_batch_size(operations.len())?;
    Ok(operations.iter().map(|operation| given(operation)?.entry(surface)).collect())
}

fn given<'a>(operation: &hybridrow::Operation<'a>) -> Result<Given<'a>, Error> {
    let not_served = [
        ("effectivePartitionKey", operation.effective_partition_key.is_some()),
        ("binaryId", operation.binary_id.is_some()),
        ("timeToLiveInSeconds", operation.time_to_live_seconds.is_some()),
    ];
    if let Some((name, _)) = not_served.iter().find(|(_, is_set)| *is_set) {
        return Err(Error::NotSupported(format!("'{name}' in a batch operation is")));
    }
    check_directive(operation.indexing_directive)?;
    Ok(Given {
        kind: operation.kind,
        id: operation.id,
        body: operation.resource_body.map(Document::decode_body).transpose()?,
        key: operation.partition_key,
        if_match: operation.if_match,
        if_none_match: operation.if_none_match,
        minimal: operation.minimal_return.unwrap_or_default(),
    })
}

/// Refuses an indexing directive that the header of a point operation would refuse too; a valid one changes nothing.
fn check_directive(directive: Option<&str>) -> Result<(), Error> {
    let known =
        |text: &str| ["include", "exclude", "default"].iter().any(|known| text.eq_ignore_ascii_case(known));
    match directive {
        Some(text) if !known(text) => {
            let shown: String = text.chars().take(100).collect();
            let expected = "Include, Exclude or Default";
            Err(Error::BadRequest(format!(
                "The indexing directive '{shown}' is invalid: expected {expected}."
            )))
        }
        _ => Ok(()),
    }
}
