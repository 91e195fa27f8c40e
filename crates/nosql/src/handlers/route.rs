//! A row of the route tables.

use std::future::Future;
use std::pin::Pin;

use crate::handlers::call::Call;
use crate::message::reply::Reply;
use crate::message::request::Verb;
use crate::protocol::error::Error;

/// The future result of a handler.
pub(crate) type Answer<'a> = Pin<Box<dyn Future<Output = Result<Reply, Error>> + Send + 'a>>;

/// One row of the table.
pub(crate) struct Route {
    pub(crate) verb: Verb,
    pub(crate) path: &'static [&'static str],
    pub(crate) name: &'static str,
    pub(crate) run: for<'a> fn(&'a Call) -> Answer<'a>,
}

impl Route {
    pub(crate) const fn new(
        verb: Verb,
        path: &'static [&'static str],
        name: &'static str,
        run: for<'a> fn(&'a Call) -> Answer<'a>,
    ) -> Route {
        Route { verb, path, name, run }
    }
}
