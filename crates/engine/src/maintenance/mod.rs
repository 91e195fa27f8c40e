//! Background work and operators' work: the purge, holds, index builds, the integrity check, forecasts, and removal
//! of dropped data.

pub mod check;
pub(crate) mod disable_expiry;
pub(crate) mod drop_gc;
pub(crate) mod forecast;
pub(crate) mod hold;
pub(crate) mod index_build;
pub(crate) mod outlook;
pub(crate) mod purge;
pub(crate) mod reset;
