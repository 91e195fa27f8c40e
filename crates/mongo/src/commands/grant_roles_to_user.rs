//! `grantRolesToUser`.

use crate::auth::User;
use crate::call::Call;
use crate::commands::create_user::{name, roles};
use crate::commands::update_user::change_user;
use crate::error::Result;
use crate::reply::Reply;

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
