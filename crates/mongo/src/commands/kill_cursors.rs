//! `killCursors`: one's own, and everybody's for whoever may.

use bson::{Document, Value};

use crate::call::Call;
use crate::error::Result;
use crate::fields::whole;
use crate::reply::Reply;
use crate::rights::{Action, Need};

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    // A cursor over a whole database has the name of no collection.
    if call.argument().as_str() != Some("$cmd.aggregate") {
        call.collection()?;
    }
    let ids = fields.required("cursors", fields.array("cursors")?)?;
    let (mut killed, mut missing) = (Vec::new(), Vec::new());
    let owner = call.owner();
    let anybody = call.rights.allow(&Need::cluster(Action::KillAnyCursor));
    let user = (!anybody).then_some(&owner.user);
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
