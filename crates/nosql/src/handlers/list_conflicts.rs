//! `GET /conflicts`, and queries over conflicts: always empty, because one store has one order of writes.

use crate::handlers::call::Call;
use crate::handlers::feed;
use crate::handlers::query_request;
use crate::message::reply::Reply;
use crate::message::request::Verb;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    if call.head.verb()? == Some(Verb::Query) {
        let request = query_request::parse(call, &container.definition.dialect())?;
        query_request::check_reach(call, &container, &request.query)?;
    }
    feed::reply(call, &container.rid.to_string(), "Conflicts", Vec::new())
}
