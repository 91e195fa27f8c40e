//! A container of items, through `serde`.

use std::sync::Arc;

use document::{Document, PartitionKey, Value};
use engine::{Engine, ItemName, Operation, Precondition, QueryRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Rows fetched at a time; all of them are returned.
const PAGE_ROWS: usize = 1000;

/// A container. Cheap to clone; writes return when they are durable.
#[derive(Clone)]
pub struct Container {
    engine: Arc<Engine>,
    container: Arc<engine::Container>,
}

impl Container {
    pub(crate) fn new(engine: Arc<Engine>, container: Arc<engine::Container>) -> Container {
        Container { engine, container }
    }

    /// Creates an item; fails if an item with its id exists.
    pub fn create(&self, item: &impl Serialize) -> Result<()> {
        self.write(None, Operation::Create { body: body(item)? })
    }

    /// Creates an item, or replaces the one with its id. Either restarts its countdown.
    pub fn upsert(&self, item: &impl Serialize) -> Result<()> {
        self.write(None, Operation::Upsert { body: body(item)?, precondition: Precondition::None })
    }

    /// Deletes an item; returns false if there is none.
    pub fn delete(&self, key: impl Serialize, id: &str) -> Result<bool> {
        let name = ItemName::Id(id.to_owned());
        let delete = Operation::Delete { name, precondition: Precondition::None };
        found(self.write(Some(partition_key(&key)?), delete)).map(|found| found.is_some())
    }

    /// Reads an item, with its system properties. A key of several levels is an array.
    pub fn read<T: DeserializeOwned>(&self, key: impl Serialize, id: &str) -> Result<Option<T>> {
        let name = ItemName::Id(id.to_owned());
        let outcome = self.engine.read(&self.container, &partition_key(&key)?, &name, &Precondition::None);
        let Some(outcome) = found(outcome.map_err(Error::from))? else { return Ok(None) };
        if let Some(begun) = outcome.renewal.as_ref().and_then(|renewal| self.engine.renew(renewal)) {
            // The read has succeeded, whether or not the item's countdown could be restarted.
            let _ = begun.wait();
        }
        outcome.item.map(|item| Ok(serde_json::from_slice(&item.to_json())?)).transpose()
    }

    /// Returns all rows of a query over the items that have not expired. Parameters are named with their `@`.
    pub fn query<T: DeserializeOwned>(
        &self,
        text: &str,
        parameters: &[(&str, serde_json::Value)],
    ) -> Result<Vec<T>> {
        let named = |(name, value): &(&str, serde_json::Value)| {
            let value = document::parse_json(value.to_string().as_bytes())?;
            Ok(((*name).to_owned(), value))
        };
        let parameters: Vec<(String, Value)> = parameters.iter().map(named).collect::<Result<_>>()?;
        let query = query::parse(text, &parameters, &self.container.definition.dialect())?;
        let mut request = QueryRequest::new(Some(&query), PAGE_ROWS);
        let mut rows = Vec::new();
        loop {
            let page = self.engine.query(&self.container, &request)?;
            let _ = self.engine.renew_all(&page.renewals);
            for row in &page.rows {
                rows.push(serde_json::from_slice(row)?);
            }
            request.continuation = page.continuation;
            if request.continuation.is_none() {
                return Ok(rows);
            }
        }
    }

    fn write(&self, key: Option<PartitionKey>, operation: Operation) -> Result<()> {
        self.engine.write(&self.container, key, operation).wait()?;
        Ok(())
    }
}

/// Turns "not found" into `None`.
fn found<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Err(Error::Engine(engine::Error::NotFound { .. })) => Ok(None),
        other => other.map(Some),
    }
}

fn body(item: &impl Serialize) -> Result<Document> {
    Ok(Document::decode_body(&serde_json::to_vec(item)?)?)
}

fn partition_key(key: &impl Serialize) -> Result<PartitionKey> {
    let text = serde_json::to_string(key)?;
    let levels = if text.starts_with('[') { text } else { format!("[{text}]") };
    Ok(PartitionKey::from_header(&levels)?)
}
