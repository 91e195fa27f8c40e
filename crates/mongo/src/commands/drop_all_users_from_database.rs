//! `dropAllUsersFromDatabase`.

use bson::Document;

use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let users = call.service.users();
    let named = call.blocking(|| users.list(|user| user.database == call.database))?;
    let mut count = 0;
    for user in named {
        count += i32::from(users.drop(&user.name, &user.database).await?);
    }
    Ok(Document::new().with("n", count).into())
}
