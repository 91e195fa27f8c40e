//! The peers of the generator: one trait for the process, one for a connection, one file for each protocol.

mod cosmos;
mod direct;
mod floor;
mod http;
mod http2;
mod measured;
mod postgres;
mod process;
mod redis;
mod rest;
mod socket;
mod wire;

use anyhow::Result;

pub use cosmos::CosmosServer;
pub use direct::{BolideDirect, DirectConnection};
pub use floor::{Floor, Loop};
pub use measured::Measured;
pub use postgres::Postgres;
pub use redis::Redis;
pub use rest::{BolideRest, Indexing};
pub use wire::BolideWire;

use crate::documents::DataSet;
use crate::workload::{Kind, Operation};

/// The description of a peer in a report.
#[derive(Debug, Clone)]
pub struct About {
    /// Its name, with its version.
    pub version: String,
    pub settings: String,
    /// The durability of an acknowledged write.
    pub durability: String,
}

/// A server under measurement, with its own process or processes.
pub trait Peer: Send + Sync {
    fn name(&self) -> &str;
    fn about(&self) -> &About;
    fn supports(&self, kind: Kind) -> bool;
    /// Creates the container, collection or table of a set of documents.
    fn prepare(&self, set: &DataSet) -> Result<()>;
    fn connect(&self, set: &DataSet) -> Result<Box<dyn Connection>>;
    /// Returns its processes and files.
    fn measured(&self) -> &dyn Measured;
    /// Makes the server write what it has changed only in memory, where it can be told to.
    fn write_out(&self) -> Result<()> {
        Ok(())
    }
    /// Returns the settings and indexes that the server itself reports, one a line.
    fn configuration(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// One kept connection.
pub trait Connection: Send {
    /// Runs one operation; any answer but success is an error.
    fn run(&mut self, operation: Operation) -> Result<()>;
    /// Tells the server that no operation follows, where it would otherwise wait for more before it does deferred work.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
    /// Returns how many documents the last answer had, or the number in it.
    fn rows(&self) -> Result<usize>;
}
