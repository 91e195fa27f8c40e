//! `grantRolesToUser`.

use crate::auth::User;
use crate::commands::create_user::{name, roles};
use crate::commands::update_user::change_user;
use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&["grantRolesToUser", "roles"])?;
    let granted = roles(fields.required("roles", fields.array("roles")?)?, &call.database)?;
    let grant = move |mut user: User| {
        for role in granted {
            if !user.roles.contains(&role) {
                user.roles.push(role);
            }
        }
        user
    };
    change_user(call, name(call)?, grant).await
}
