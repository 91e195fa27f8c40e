//! `GET /docs`: the living items, page by page.

use std::sync::Arc;

use crate::call::Call;
use crate::error::Error;
use crate::items;
use crate::response::Reply;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    call.check_session(&container)?;
    let (scope, range) = call.scope(&container)?;
    let (page, handle) = (call.head.page()?, Arc::clone(&container));
    let ask =
        move |engine: &engine::Engine| Ok(engine.query(&handle, &items::query_request(None, scope, page))?);
    let page = call.blocking(ask).await?;
    items::page_reply(call, &container, range, &page)
}
