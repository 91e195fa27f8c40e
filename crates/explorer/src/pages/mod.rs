//! The pages, one file for each subject.

pub(crate) mod clock;
pub(crate) mod container;
pub(crate) mod create;
pub(crate) mod feed;
pub(crate) mod help;
pub(crate) mod holds;
pub(crate) mod home;
pub(crate) mod item;
pub(crate) mod keys;
pub(crate) mod purge;
pub(crate) mod query;
pub(crate) mod settings;
pub(crate) mod sign_in;
pub(crate) mod timeline;
pub(crate) mod ttl_fields;
pub(crate) mod users;
