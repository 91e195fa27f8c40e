//! `configureFailPoint`: makes commands fail, for test suites. Only with `--mongo-test-commands`.

use bson::Document;
use mql::Code;

use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    if !call.service.settings.test_commands {
        return Err(Error::new(Code::COMMAND_NOT_FOUND, "no such command: 'configureFailPoint'"));
    }
    let name = call.argument().as_str().unwrap_or("");
    let count = call.service.fail_points.configure(name, call.fields())?;
    Ok(Document::new().with("count", count).into())
}
