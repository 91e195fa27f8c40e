//! `dropUser`.

use crate::commands::create_user::name;
use crate::commands::update_user::not_found;
use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    call.fields().only(&["dropUser"])?;
    let name = name(call)?;
    let dropped = call.service.users().drop(name, &call.database).await?;
    if dropped { Ok(Reply::ok()) } else { Err(not_found(call, name)) }
}
