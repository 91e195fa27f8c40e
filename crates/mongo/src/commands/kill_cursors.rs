//! `killCursors`.

use bson::{Document, Value};

use crate::call::Call;
use crate::error::Result;
use crate::fields::whole;
use crate::reply::Reply;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    // A cursor over a whole database has the name of no collection.
    if call.argument().as_str() != Some("$cmd.aggregate") {
        call.collection()?;
    }
    let ids = fields.required("cursors", fields.array("cursors")?)?;
    let (mut killed, mut missing) = (Vec::new(), Vec::new());
    let user = call.owner().user;
    for id in ids.iter().filter_map(whole) {
        if call.service.cursors.kill(id, &user) {
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
