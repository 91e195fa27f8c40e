//! `GET /docs`: the items that have not expired, page by page.

use std::sync::Arc;

use engine::QueryRequest;

use crate::handlers::call::Call;
use crate::handlers::items;
use crate::message::reply::Reply;
use crate::protocol::activity;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    call.check_session(&container)?;
    let scope = call.scope(&container)?;
    let full_page = call.account().gateway.full_page();
    let (page, seed, handle) = (call.head.page()?, activity::numbers().0, Arc::clone(&container));
    let answer = call.cancellable(move |engine, cancel| {
        let request = QueryRequest {
            query: None,
            scope,
            max_items: page.max_items,
            full_page,
            continuation: page.continuation,
            resume_filter: None,
            seed,
            cancel,
        };
        Ok(engine.query(&handle, &request)?)
    });
    items::page_reply(call, &container, answer.await?)
}
