//! The version of MongoDB that clients should take this server for.

/// The version whose wire protocol `hello` announces.
pub(crate) const VERSION: [i32; 4] = [8, 0, 0, 0];

/// Returns the version as text.
pub(crate) fn version() -> String {
    VERSION[..3].iter().map(ToString::to_string).collect::<Vec<_>>().join(".")
}
