//! The MongoDB front end over real sockets.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod audit;
mod authentication;
mod bulk_write;
mod change_streams;
mod charges;
mod client;
mod collations;
mod collections;
mod corpus;
mod cursors;
mod custom_actions;
mod diagnostics;
mod explain;
mod fail_points;
mod figures;
mod find_by_id;
mod handshake;
mod hostile;
mod index_agreement;
mod keys;
mod limits;
mod lists;
mod meta;
mod output;
mod overload;
mod random_documents;
mod refusals;
mod roles;
mod scram;
mod sessions;
mod shares;
mod spill;
mod sweep;
mod system_collections;
mod text;
mod tls;
mod transactions;
mod turns;
mod views;
mod waiting_writes;
mod writes;
