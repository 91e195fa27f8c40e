//! How operators address one item of either API.

use document::PartitionKey;

use super::error::{Error, Result};

/// The address of an item.
#[derive(Debug, Clone, PartialEq)]
pub enum ItemAddress {
    /// An item of a container: partition key and id.
    Id(PartitionKey, String),
    /// A document of a collection: `_id`.
    DocumentId(bson::Value),
}

impl ItemAddress {
    /// Returns the address of the document whose `_id` this is in Extended JSON.
    pub fn from_extended_json(id: &str) -> Result<ItemAddress> {
        let wrong =
            |why: bson::Error| Error::invalid(format!("'_id' cannot be read as Extended JSON: {why}"));
        bson::parse_extended_json(id).map(ItemAddress::DocumentId).map_err(wrong)
    }

    /// Returns the `_id` of a document in Extended JSON.
    pub fn to_extended_json(&self) -> Option<String> {
        match self {
            ItemAddress::DocumentId(id) => Some(bson::to_extended_json(id.view(), true)),
            ItemAddress::Id(..) => None,
        }
    }
}
