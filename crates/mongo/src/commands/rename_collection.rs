//! `renameCollection`.

use bson::ValueRef;
use mql::Code;

use crate::access::catalog;
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::{Call, check_collection, check_database};

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&["renameCollection", "to", "dropTarget", "stayTemp"])?;
    let from = fields.required("renameCollection", fields.text("renameCollection")?)?;
    let to = fields.required("to", fields.text("to")?)?;
    // A UUID names the target that may go; there is but one of that name.
    let drop_target = match fields.value("dropTarget") {
        Some(ValueRef::Binary(_)) => true,
        _ => fields.is_set("dropTarget")?,
    };
    let (database, name) = split(from)?;
    let (to_database, to_name) = split(to)?;
    catalog::refuse_system(database, name)?;
    catalog::refuse_system(to_database, to_name)?;
    let Some(collection) = call.executor.find_collection(database, name) else {
        return Err(Error::new(
            Code::NAMESPACE_NOT_FOUND,
            format!("Source collection {from} does not exist"),
        ));
    };
    catalog::refuse_view(&collection)?;
    if from == to {
        let text = "Can't rename a collection to itself";
        return Err(Error::new(Code::ILLEGAL_OPERATION, text));
    }
    match call.engine.rename_collection(&collection, to_database, to_name, drop_target) {
        Ok(_) => Ok(Reply::ok()),
        Err(engine::Error::Exists { .. }) => {
            Err(Error::new(Code::NAMESPACE_EXISTS, "target namespace exists"))
        }
        Err(error) => Err(error.into()),
    }
}

fn split(namespace: &str) -> Result<(&str, &str)> {
    let invalid =
        || Error::new(Code::INVALID_NAMESPACE, format!("Invalid namespace specified '{namespace}'"));
    let (database, name) = namespace.split_once('.').ok_or_else(invalid)?;
    Ok((check_database(database)?, check_collection(database, name)?))
}
