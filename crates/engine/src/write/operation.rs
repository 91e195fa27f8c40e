//! The operations that a client may request on one item, and the error of a batch of them.

use document::Document;

use crate::definition::patch::Patch;
use crate::types::error::Error;
use crate::types::request::{ItemName, Precondition};

/// One operation on one item.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Insert; refused if a living item has the id.
    Create {
        /// The item as the client sent it.
        body: Document,
    },
    /// Insert, or replace the living item of that id.
    Upsert {
        /// The item as the client sent it.
        body: Document,
        /// Checked only if a living item is there.
        precondition: Precondition,
    },
    /// Replace a living item.
    Replace {
        /// Which item.
        name: ItemName,
        /// Its new body, with the same id and partition key.
        body: Document,
        /// Condition on the current version.
        precondition: Precondition,
    },
    /// Change parts of a living item.
    Patch {
        /// Which item.
        name: ItemName,
        /// The operations and their condition.
        patch: Patch,
        /// Condition on the current version.
        precondition: Precondition,
    },
    /// Remove a living item.
    Delete {
        /// Which item.
        name: ItemName,
        /// Condition on the current version.
        precondition: Precondition,
    },
    /// Read a living item (in a batch: as its neighbours left it).
    Read {
        /// Which item.
        name: ItemName,
        /// `IfNoneMatch` turns an unchanged item into [`Effect::NotModified`].
        precondition: Precondition,
    },
}

/// The error of a transactional batch, which changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchError {
    /// The operation that failed; `None` if the batch as a whole did.
    pub index: Option<usize>,
    /// Its error.
    pub error: Error,
}

impl From<Error> for BatchError {
    fn from(error: Error) -> BatchError {
        BatchError { index: None, error }
    }
}

impl From<storage::Error> for BatchError {
    fn from(error: storage::Error) -> BatchError {
        Error::from(error).into()
    }
}
