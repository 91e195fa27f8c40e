//! What commands and answers are made of: typed fields, errors and their codes, replies, write concerns, times, limits.

pub(crate) mod batch_builder;
pub(crate) mod cancellation;
pub(crate) mod clock;
pub(crate) mod error;
pub(crate) mod fields;
pub mod limits;
pub(crate) mod offload;
pub(crate) mod operation_time;
pub(crate) mod random;
pub(crate) mod redacted;
pub(crate) mod reply;
pub(crate) mod settings;
pub(crate) mod verbosity;
pub(crate) mod version;
pub(crate) mod write_concern;
pub(crate) mod write_errors;
