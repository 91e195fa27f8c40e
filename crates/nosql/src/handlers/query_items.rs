//! `POST /docs` of a query. It is evaluated whole, over all ranges in its scope, so that clients need not merge
//! results themselves, though they may. A strict gateway refuses what they would have to merge, unless the query names
//! its range.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::{Container, Engine, FullPage, QueryPage, QueryRequest, ResumeFilter, Scope};
use query::Query;

use crate::handlers::call::Call;
use crate::handlers::items;
use crate::handlers::query_request;
use crate::message::reply::Reply;
use crate::message::request::PageRequest;
use crate::protocol::activity;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    refuse_feed(call)?;
    call.check_session(&container)?;
    let request = query_request::parse(call, &container.definition.dialect())?;
    let scope = call.scope(&container)?;
    query_request::check_reach(call, &container, &request.query)?;
    let (page, seed) = (call.head.page()?, activity::numbers().0);
    let question = Question {
        query: request.query,
        resume_filter: request.resume_filter,
        scope,
        page,
        full_page: call.account().gateway.full_page(),
        seed,
        container: Arc::clone(&container),
    };
    // Most queries take less time than the detour over another thread.
    let brief = call.engine().query_briefly(&container, &question.request(Arc::default()));
    let page = match brief {
        Some(page) => page,
        None => call.cancellable(move |engine, cancel| question.ask(engine, cancel)).await?,
    };
    items::page_reply(call, &container, page)
}

/// Refuses a query over the change feed: as a plain query it would have rows that did not change, and no position to
/// continue from.
fn refuse_feed(call: &Call) -> Result<(), Error> {
    if call.head.feed_mode().is_none() {
        return Ok(());
    }
    Err(Error::BadRequest(
        "A change feed with a query is not supported. Read the feed without a query (GET with 'a-im'), or query the items \
         without 'a-im'."
            .to_owned(),
    ))
}

/// A query with its parameters.
struct Question {
    query: Query,
    resume_filter: Option<ResumeFilter>,
    scope: Scope,
    page: PageRequest,
    full_page: FullPage,
    seed: u64,
    container: Arc<Container>,
}

impl Question {
    fn request(&self, cancel: Arc<AtomicBool>) -> QueryRequest<'_> {
        QueryRequest {
            query: Some(&self.query),
            scope: self.scope.clone(),
            max_items: self.page.max_items,
            full_page: self.full_page,
            continuation: self.page.continuation.clone(),
            resume_filter: self.resume_filter.clone(),
            seed: self.seed,
            cancel,
        }
    }

    fn ask(&self, engine: &Engine, cancel: Arc<AtomicBool>) -> Result<QueryPage, Error> {
        Ok(engine.query(&self.container, &self.request(cancel))?)
    }
}
