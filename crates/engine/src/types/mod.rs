//! Types that every folder uses: errors, limits, sequences, LSNs, charges, and the parts of requests.

pub(crate) mod alarm;
pub(crate) mod charge;
pub(crate) mod definition_error;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod index_report;
pub(crate) mod item_address;
pub mod limits;
pub(crate) mod lsn;
pub(crate) mod patch_error;
pub(crate) mod request;
pub(crate) mod throughput;
