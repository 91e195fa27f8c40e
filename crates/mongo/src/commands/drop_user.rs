//! `dropUser`.

use crate::call::Call;
use crate::commands::create_user::name;
use crate::commands::update_user::not_found;
use crate::error::Result;
use crate::reply::Reply;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    call.fields().only(&["dropUser"])?;
    let name = name(call)?;
    let dropped = call.service.users().drop(name, &call.database).await?;
    if dropped { Ok(Reply::ok()) } else { Err(not_found(call, name)) }
}
