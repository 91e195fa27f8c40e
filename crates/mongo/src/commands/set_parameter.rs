//! `setParameter`: `{setParameter: 1, name: value}`; returns the previous value.

use bson::Document;
use mql::Code;

use crate::protocol::error::{Error, Result};
use crate::protocol::fields::is_generic;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let mut answer = Document::new();
    for (name, value) in call.body.view().iter().skip(1).filter(|(name, _)| !is_generic(name)) {
        let was = call.service.set_parameter(name, value)?;
        if !answer.contains("was") {
            answer.push("was", was);
        }
    }
    if answer.is_empty() {
        return Err(Error::new(
            Code::INVALID_OPTIONS,
            "no option found to set, use help:true to see options ",
        ));
    }
    Ok(answer.into())
}
