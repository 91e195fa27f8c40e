//! `GET /docs/{id}`: a point read, on the runtime's own thread. Where it restarts a countdown (T33), the reply waits for
//! that.

use crate::handlers::call::Call;
use crate::handlers::items::{self, AnswerForm};
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let key = call.item_key(&container)?;
    call.check_session(&container)?;
    let (name, form) = (call.item_name(&container), AnswerForm::of(call)?);
    let outcome = call.engine().read(&container, &key, &name, &call.head.precondition())?;
    Ok(items::outcome_reply(call, &container, &outcome, form).await)
}
