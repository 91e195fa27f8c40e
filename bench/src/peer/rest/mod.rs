//! Bolide over signed REST. The same requests go to every server of the protocol.

mod channel;
mod connection;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};

pub(super) use self::channel::Channel;
pub(super) use self::connection::{Dialect, RestConnection, occurrences};
use super::socket::{Trust, trust_in};
use super::{About, Connection, Measured, Peer};
use crate::client::Server;
use crate::documents::DataSet;
use crate::workload::Kind;

/// Which paths of a document are indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexing {
    /// All of them: the service's default.
    EveryPath,
    /// All of them, and the composite index of the other peers: partition key and `n`.
    EveryPathAndComposite,
    /// Only the one that is queried.
    OnePath,
}

impl Indexing {
    fn policy(self) -> &'static str {
        match self {
            Indexing::EveryPath => "",
            Indexing::EveryPathAndComposite => {
                ",\"indexingPolicy\":{\"compositeIndexes\":[[{\"path\":\"/pk\"},{\"path\":\"/n\"}]]}"
            }
            Indexing::OnePath => {
                ",\"indexingPolicy\":{\"indexingMode\":\"consistent\",\"automatic\":true,\
                 \"includedPaths\":[{\"path\":\"/group/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}]}"
            }
        }
    }
}

/// What requests are sent in.
enum Transport {
    Plain,
    Tls(Trust),
    Http2,
}

pub struct BolideRest {
    server: Arc<Server>,
    indexing: Indexing,
    transport: Transport,
    about: About,
}

impl BolideRest {
    pub fn new(server: Arc<Server>, binary: &Path, indexing: Indexing) -> Result<BolideRest> {
        let paths = match indexing {
            Indexing::EveryPath => "every path indexed (the default policy)",
            Indexing::EveryPathAndComposite => "every path indexed, and (pk, n) as a composite index",
            Indexing::OnePath => "one path indexed",
        };
        let about = About {
            version: version(binary)?,
            settings: format!("default settings; signed requests; {paths}"),
            durability: "synced to disk, in group commits".to_owned(),
        };
        Ok(BolideRest { server, indexing, transport: Transport::Plain, about })
    }

    /// Returns the same peer with connections inside TLS, as SDKs that require it.
    pub fn inside_tls(self) -> Result<BolideRest> {
        let trust = trust_in(self.server.directory())?;
        Ok(self.by(Transport::Tls(trust), "inside TLS"))
    }

    /// Returns the same peer with connections of HTTP/2, without TLS.
    pub fn over_http2(self) -> BolideRest {
        self.by(Transport::Http2, "HTTP/2 without TLS")
    }

    fn by(self, transport: Transport, name: &str) -> BolideRest {
        let settings = format!("{}; {name}", self.about.settings);
        BolideRest { transport, about: About { settings, ..self.about }, ..self }
    }
}

pub(super) fn version(binary: &Path) -> Result<String> {
    super::process::first_line(std::process::Command::new(binary).arg("--version"))
}

impl Peer for BolideRest {
    fn name(&self) -> &str {
        match (self.indexing, &self.transport) {
            (Indexing::OnePath, _) => "bolide rest, one path",
            (Indexing::EveryPathAndComposite, _) => "bolide rest, (pk, n)",
            (Indexing::EveryPath, Transport::Plain) => "bolide rest",
            (Indexing::EveryPath, Transport::Tls(_)) => "bolide rest, tls",
            (Indexing::EveryPath, Transport::Http2) => "bolide rest, http/2",
        }
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn supports(&self, kind: Kind) -> bool {
        // Without an index on `n` these two would measure something different.
        self.indexing != Indexing::OnePath || !matches!(kind, Kind::Top | Kind::Count)
    }

    fn prepare(&self, set: &DataSet) -> Result<()> {
        prepare(&self.server.address, set, self.indexing.policy())
    }

    fn connect(&self, set: &DataSet) -> Result<Box<dyn Connection>> {
        let address = &self.server.address;
        let channel = match &self.transport {
            Transport::Plain => Channel::one(address, None),
            Transport::Tls(trust) => Channel::one(address, Some(trust)),
            Transport::Http2 => Channel::two(address),
        }?;
        Ok(Box::new(RestConnection::connect(address, channel, set, Dialect::Header)?))
    }

    fn measured(&self) -> &dyn Measured {
        &*self.server
    }
}

/// Creates the database, unless it exists, and a container whose items may have a time to live.
pub(super) fn prepare(address: &str, set: &DataSet, more: &str) -> Result<()> {
    let mut connection =
        RestConnection::connect(address, Channel::one(address, None)?, set, Dialect::Header)?;
    let status = connection.send("POST", "dbs", "", "", "", "{\"id\":\"db\"}")?;
    ensure!(matches!(status, 201 | 409), "{status} for a database: {}", connection.shown());
    let body = format!(
        "{{\"id\":\"{}\",\"partitionKey\":{{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}},\
         \"defaultTtl\":-1{more}}}",
        set.name
    );
    let status = connection.send("POST", "colls", "dbs/db", "/dbs/db/colls", "", &body)?;
    ensure!(status == 201, "{status} for a container: {}", connection.shown());
    Ok(())
}
