//! `revokeRolesFromUser`.

use crate::auth::User;
use crate::commands::create_user::{name, roles};
use crate::commands::update_user::change_user;
use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&["revokeRolesFromUser", "roles"])?;
    let revoked = roles(fields.required("roles", fields.array("roles")?)?, &call.database)?;
    let revoke = move |mut user: User| {
        user.roles.retain(|role| !revoked.contains(role));
        user
    };
    change_user(call, name(call)?, revoke).await
}
