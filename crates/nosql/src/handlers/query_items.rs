//! `POST /docs` of a query. It is evaluated whole, over all ranges in its scope, so that clients never have to
//! merge results themselves.

use std::sync::Arc;

use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;
use crate::{feed, items};

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    call.check_session(&container)?;
    let query = feed::item_query(call, &container)?;
    let (scope, range) = call.scope(&container)?;
    feed::check_reach(call, &container, &query)?;
    let (page, handle) = (call.head.page()?, Arc::clone(&container));
    let ask = move |engine: &engine::Engine| {
        let request = items::query_request(Some(&query), scope, page);
        Ok(engine.query(&handle, &request)?)
    };
    let page = call.blocking(ask).await?;
    items::page_reply(call, &container, range, &page)
}
