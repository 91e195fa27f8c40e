//! `killCursors`: closes the client's cursors, and those of others if it has the right.

use bson::{Document, Value};

use crate::protocol::error::Result;
use crate::protocol::fields::whole;
use crate::protocol::reply::Reply;
use crate::rights::{Action, Privilege};
use crate::service::call::Call;

/// The collection names of cursors that belong to no collection.
const CURSOR_NAMES: [&str; 3] = ["$cmd.aggregate", "$cmd.listCollections", "$cmd.bulkWrite"];

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    // A cursor over a whole database, over its collections or over the results of a bulkWrite has the name of no
    // collection.
    if !call.argument().as_str().is_some_and(|name| CURSOR_NAMES.contains(&name)) {
        call.collection()?;
    }
    let ids = fields.required("cursors", fields.array("cursors")?)?;
    let (mut killed, mut missing) = (Vec::new(), Vec::new());
    let owner = call.owner();
    let may_kill_any = call.rights.allow(&Privilege::cluster(Action::KillAnyCursor));
    let user = (!may_kill_any).then_some(&owner.user);
    for id in ids.iter().filter_map(whole) {
        if call.service.cursors.kill(id, user) {
            killed.push(Value::Int64(id));
        } else {
            missing.push(Value::Int64(id));
        }
    }
    Ok(Document::new()
        .with("cursorsKilled", killed)
        .with("cursorsNotFound", missing)
        .with("cursorsAlive", Vec::new())
        .with("cursorsUnknown", Vec::new())
        .into())
}
