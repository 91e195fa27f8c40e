//! `POST /docs` of a query. It is evaluated whole, over all ranges in its scope, so that clients need not merge
//! results themselves, though they may.

use std::sync::Arc;

use engine::QueryRequest;

use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;
use crate::{activity, items, query_request};

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    call.check_session(&container)?;
    let request = query_request::parse(call, &container.definition.dialect())?;
    let (scope, range) = call.scope(&container)?;
    query_request::check_reach(call, &container, &request.query)?;
    let (page, seed, handle) = (call.head.page()?, activity::numbers().0, Arc::clone(&container));
    let answer = call.cancellable(move |engine, cancel| {
        let request = QueryRequest {
            query: Some(&request.query),
            scope,
            max_items: page.max_items,
            continuation: page.continuation,
            resume_filter: request.resume_filter,
            seed,
            cancel,
        };
        let page = engine.query(&handle, &request)?;
        // Each item was there when it was read, whether or not its countdown could be restarted.
        let _ = engine.touch_all(&page.touches);
        Ok(page)
    });
    let page = answer.await?;
    items::page_reply(call, &container, range, page)
}
