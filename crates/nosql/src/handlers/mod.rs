//! One file per operation of the protocol, under the operation's own name; `routes` maps paths to them.

#![allow(
    clippy::unused_async,
    reason = "the table wants one shape of handler, also for those that never wait"
)]

pub(crate) mod admin_hooks;
pub(crate) mod batch;
pub(crate) mod call;
pub(crate) mod change_feed;
pub(crate) mod container_body;
pub(crate) mod feed;
pub(crate) mod items;
pub(crate) mod query_metrics;
pub(crate) mod query_request;
pub(crate) mod quota;
pub(crate) mod resources;
pub(crate) mod route;
pub(crate) mod subresources;

pub(crate) mod batch_items;
pub(crate) mod create_container;
pub(crate) mod create_database;
pub(crate) mod create_item;
pub(crate) mod create_resource;
pub(crate) mod delete_container;
pub(crate) mod delete_database;
pub(crate) mod delete_item;
pub(crate) mod delete_partition;
pub(crate) mod delete_resource;
pub(crate) mod execute_sproc;
pub(crate) mod list_conflicts;
pub(crate) mod list_containers;
pub(crate) mod list_databases;
pub(crate) mod list_items;
pub(crate) mod list_offers;
pub(crate) mod list_resources;
pub(crate) mod not_supported;
pub(crate) mod patch_item;
pub(crate) mod plan_query;
pub(crate) mod query_items;
pub(crate) mod read_account;
pub(crate) mod read_change_feed;
pub(crate) mod read_conflict;
pub(crate) mod read_container;
pub(crate) mod read_database;
pub(crate) mod read_item;
pub(crate) mod read_offer;
pub(crate) mod read_pkranges;
pub(crate) mod read_resource;
pub(crate) mod replace_container;
pub(crate) mod replace_item;
pub(crate) mod replace_offer;
pub(crate) mod replace_resource;
pub(crate) mod upsert_item;
