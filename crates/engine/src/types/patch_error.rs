//! Why a patch was refused.

/// A patch that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch has the wrong form.
    #[error("The patch is invalid: {message}.")]
    Malformed {
        /// What is wrong with it.
        message: String,
    },
    /// The condition is not a valid filter.
    #[error("The condition of the patch is invalid: {0}.")]
    Condition(query::Error),
    /// An operation changes what is protected.
    #[error("For Operation({index}): the path '{path}' cannot be patched, {reason}.")]
    Protected {
        /// The operation's position, from 1.
        index: usize,
        /// The path.
        path: String,
        /// Why not.
        reason: String,
    },
    /// An operation does not fit the item.
    #[error("For Operation({index}): {operation} at '{path}' is not possible, {reason}.")]
    Inapplicable {
        /// The operation's position, from 1.
        index: usize,
        /// Its name.
        operation: &'static str,
        /// The path.
        path: String,
        /// Why not.
        reason: String,
    },
}
