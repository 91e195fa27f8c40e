//! `getParameter`: `{getParameter: 1, name: 1, …}`, or `"*"` for all.

use bson::{Document, ValueRef};
use mql::Code;

use crate::protocol::error::{Error, Result};
use crate::protocol::fields::{Fields, is_generic};
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::service::parameters;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let (all, details) = wanted(call.argument())?;
    let asked = call.body.view().iter().skip(1).map(|(name, _)| name).filter(|name| !is_generic(name));
    let names: Vec<&str> = if all { parameters::names() } else { asked.collect() };
    let mut answer = Document::new();
    for name in names {
        let Some(value) = call.service.parameter(name) else { continue };
        if details {
            let shown = Document::new().with("value", value);
            answer.push(name, shown);
        } else {
            answer.push(name, value);
        }
    }
    if answer.is_empty() {
        return Err(Error::new(Code::INVALID_OPTIONS, "no option found to get"));
    }
    Ok(answer.into())
}

/// Whether all parameters are wanted, and whether with details.
fn wanted(argument: ValueRef<'_>) -> Result<(bool, bool)> {
    match argument {
        ValueRef::String("*") => Ok((true, false)),
        ValueRef::Document(options) => {
            let options = Fields::new("getParameter", options);
            Ok((options.is_set("allParameters")?, options.is_set("showDetails")?))
        }
        _ => Ok((false, false)),
    }
}
