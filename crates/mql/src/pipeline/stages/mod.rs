//! The stages, one file each or a few that belong together.

pub(crate) mod bucket;
pub(crate) mod bucket_auto;
pub(crate) mod change_stream;
pub(crate) mod densify;
pub(crate) mod facet;
pub(crate) mod fill;
pub(crate) mod geo_near;
pub(crate) mod granularity;
pub(crate) mod graph_lookup;
pub(crate) mod group;
mod join_table;
pub(crate) mod limit_skip;
pub(crate) mod lookup;
pub(crate) mod matching;
pub(crate) mod order;
pub(crate) mod out;
pub(crate) mod project;
pub(crate) mod redact;
pub(crate) mod replace_root;
pub(crate) mod union_with;
pub(crate) mod unwind;
