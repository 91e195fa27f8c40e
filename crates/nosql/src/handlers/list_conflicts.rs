//! `GET /conflicts`, and queries over conflicts: always empty, because one store has one order of writes.

use crate::call::Call;
use crate::error::Error;
use crate::feed;
use crate::request::Verb;
use crate::response::Reply;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    if call.head.verb()? == Some(Verb::Query) {
        feed::check_reach(call, &container, &feed::query(call)?)?;
    }
    feed::reply(call, &container.rid.to_string(), "Conflicts", Vec::new())
}
