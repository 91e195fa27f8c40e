//! The engine through its own door, over the memory store, with time in the test's hand.

mod archive;
mod batches;
mod catalog;
mod charges;
mod clock;
mod collection_model;
mod collections;
mod concurrency;
mod countings;
mod deletions;
mod evidence_model;
mod expiry;
mod feed;
mod forecast;
mod history;
mod history_model;
mod holds;
mod items;
mod purge;
mod queries;
mod query_ways;
mod sliding;
mod throughput;
mod watch;
mod wishes;
mod world;
