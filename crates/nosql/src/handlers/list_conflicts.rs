//! `GET /conflicts`, and queries over conflicts: always empty, because one store has one order of writes.

use crate::call::Call;
use crate::error::Error;
use crate::request::Verb;
use crate::response::Reply;
use crate::{feed, query_request};

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    if call.head.verb()? == Some(Verb::Query) {
        let request = query_request::parse(call, &container.definition.dialect())?;
        query_request::check_reach(call, &container, &request.query)?;
    }
    feed::reply(call, &container.rid.to_string(), "Conflicts", Vec::new())
}
