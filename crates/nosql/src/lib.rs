//! The `NoSQL` front end: the REST protocol that the official Cosmos DB SDKs speak, over an [`engine::Engine`].
//!
//! Protocol only: parse, translate, answer, map errors. It contains no rule about items, time or expiry, and does not
//! touch the disk. This crate, `server` and the `mongo` front end are the only ones that use an async runtime.
//!
//! The folders, each using those before it: `protocol` (header names, errors and their codes, paths), `message` (a request
//! and its answer as types, whichever protocol carries them), `http` and `direct` (their forms in HTTP and in direct mode), `auth`, `handlers` (one file per
//! operation), `admin`, `service`.
//!
//! The path of a request: `service::listener` accepts and bounds the connection, `service` finds the route
//! (`service::routes`, one table), authenticates (`auth`, which hands out the pass without which the engine cannot be
//! reached, after `auth::grant` if the request came with a resource token), reads the body and runs the handler;
//! `message::reply` adds what every answer carries, `http::answer` writes it; `service::over_direct` does the same with
//! frames, many requests at once; `protocol::error` is the one place where an error becomes a status code.

mod admin;
mod auth;
mod direct;
mod handlers;
mod http;
mod message;
mod protocol;
mod service;

pub use auth::{WallSeconds, tenant};
pub use handlers::admin_hooks::{AdminHooks, Commands, CreatedData, InitialData, Reset};
pub use message::connections::{Connections, OpenConnections};
pub use message::request::Channel;
pub use protocol::consistency::{AccountSettings, Consistency};
pub use protocol::gateway::Gateway;
pub use protocol::limits;
pub use protocol::limits::Limits;
pub use service::direct_mode::DirectSettings;
pub use service::listener::serve;
pub use service::pages::{Pages, SharedBody, Visitor};
pub use service::{Service, Tls};
