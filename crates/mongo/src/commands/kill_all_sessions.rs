//! `killAllSessions`: ends the sessions of the named users, or of all, and what runs in them.

use bson::ValueRef;

use crate::auth;
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let Some(items) = call.argument().as_array() else {
        return Err(Error::bad_value("killAllSessions takes an array of users"));
    };
    let mut users = Vec::new();
    for item in items.iter() {
        let text = |name| item.as_document().and_then(|item| item.get(name)).and_then(ValueRef::as_str);
        let (Some(user), Some(database)) = (text("user"), text("db")) else {
            return Err(Error::bad_value("killAllSessions takes users as {user, db}"));
        };
        users.push(auth::digest(user, database));
    }
    let ended = call.service.sessions.end(|id| users.is_empty() || users.contains(&id.user));
    call.service.clean_up_all(&ended);
    Ok(Reply::ok())
}
