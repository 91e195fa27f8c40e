//! `validate`: compares the entries of a collection in the store with its documents.

use bson::Document;

use crate::access::catalog;
use crate::protocol::error::Result;
use crate::protocol::reply::{Reply, list};
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&[
        "validate",
        "full",
        "repair",
        "metadata",
        "background",
        "checkBSONConformance",
        "scandata",
    ])?;
    if fields.is_set("repair")? {
        return Err(crate::protocol::error::Error::not_supported("the option 'repair' of validate"));
    }
    let name = call.collection()?;
    let collection = catalog::existing(&call.engine, &call.database, name)?;
    catalog::refuse_view(&collection)?;
    let check = call.blocking(|| call.engine.check_collection(&collection))?;
    let indexes = collection.indexes();
    let (mut keys, mut details) = (Document::new(), Document::new());
    for index in indexes.iter() {
        let entries = check.entries.get(&index.number).copied().unwrap_or(0);
        keys.push(index.spec.name(), entries as i64);
        details.push(index.spec.name(), Document::new().with("valid", check.faults.is_empty()));
    }
    Ok(Document::new()
        .with("ns", collection.namespace())
        .with("uuid", bson::Binary { subtype: 4, bytes: collection.definition.uuid.to_vec() })
        .with("nInvalidDocuments", 0)
        .with("nNonCompliantDocuments", 0)
        .with("nrecords", check.items as i64)
        .with("nIndexes", indexes.iter().count() as i32)
        .with("keysPerIndex", keys)
        .with("indexDetails", details)
        .with("valid", check.faults.is_empty())
        .with("repaired", false)
        .with("warnings", list(Vec::<String>::new()))
        .with("errors", list(check.faults))
        .with("extraIndexEntries", list(Vec::<Document>::new()))
        .with("missingIndexEntries", list(Vec::<Document>::new()))
        .with("corruptRecords", list(Vec::<i64>::new()))
        .into())
}
