//! Changes of the schema: databases, containers, offers, lifecycle settings, and the rules by which items expire.

pub(crate) mod containers;
pub(crate) mod guard;
mod lifecycle;
pub(crate) mod policies;
pub(crate) mod retire;
