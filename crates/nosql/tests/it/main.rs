//! The front end as clients see it: a real server in this process, raw HTTP over a socket, a memory store and a
//! clock that only the test moves.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod account;
mod admin;
mod audit;
mod auth;
mod batch;
mod bulk_ranges;
mod changes;
mod client;
mod clock;
mod containers;
mod continuations;
mod corpus;
mod direct;
mod direct_addresses;
mod direct_clients_that_leave;
mod direct_lsns;
mod direct_memory;
mod direct_records;
mod direct_refusals;
mod direct_replay;
mod direct_rights;
mod direct_time;
mod direct_unauthenticated;
mod durations;
mod evidence;
mod forms;
mod gateway;
mod hierarchical_keys;
mod hostile;
mod http2;
mod hybrid_row;
mod ids;
mod items;
mod joined;
mod joined_elements;
mod keys;
mod lsns;
mod offers;
mod overload;
mod permissions;
mod queries;
mod ranges;
mod refusals;
mod reset;
mod rid;
mod sessions;
mod signature;
mod subresources;
mod tls;
mod transfer;
mod ttl;
mod ttl_modes;
