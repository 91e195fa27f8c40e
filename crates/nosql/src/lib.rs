//! The `NoSQL` front end: the REST protocol that the official Cosmos DB SDKs speak, over an [`engine::Engine`].
//!
//! Protocol only: parse, translate, answer, map errors. No rule about items, time or expiry lives here, and
//! nothing here touches the disk. This room, `server` and the `mongo` front end are the only ones that know an
//! async runtime.
//!
//! The life of a request: `listener` accepts and bounds the connection, `service` finds the route (`routes`, one
//! table), authenticates (`auth`, which hands out the pass without which the engine cannot be reached, after
//! `grant` if the request came with a resource token), reads
//! the body and runs the handler (`handlers`, one file per operation); `response` adds what every answer
//! carries; `error` is the one place where an error becomes a status code.

mod activity;
mod admin;
mod audit;
mod auth;
mod batch;
mod belongings;
mod body;
mod call;
mod called;
mod catch;
mod change_feed;
mod date;
mod doors;
mod error;
mod feed;
mod framing;
mod grant;
mod handlers;
mod headers;
mod items;
mod json;
pub mod limits;
mod listener;
mod metrics;
mod names;
mod pages;
mod path;
mod payer;
mod query_metrics;
mod query_request;
mod readiness;
mod record;
mod request;
mod resources;
mod response;
mod routes;
mod service;
mod session;
mod socket;
mod throughput;
mod tokens;
mod unread;

pub use auth::{WallSeconds, tenant};
pub use doors::{Again, Commands, Doors, Made, Reset};
pub use limits::Limits;
pub use listener::serve;
pub use pages::{Pages, SharedBody, Visitor};
pub use request::Channel;
pub use service::{Service, Tls};
