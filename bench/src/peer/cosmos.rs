//! cosmosdb-server, an emulator in JavaScript: no authentication, no disk.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::process::{Process, first_line, free_port, new_folder};
use super::rest::{Channel, Dialect, RestConnection, prepare};
use super::{About, Connection, Measured, Peer};
use crate::documents::DataSet;
use crate::workload::Kind;

pub struct CosmosServer {
    process: Process,
    address: String,
    about: About,
}

impl CosmosServer {
    /// Starts it; `package` is the folder that npm made.
    pub fn start(package: &Path) -> Result<CosmosServer> {
        let port = free_port()?;
        // Its command line has no option for kept connections; its library has.
        let script = format!(
            "require({:?}).createHttpServer({{ keepAlive: true }}).listen({port}, '127.0.0.1')",
            package.to_string_lossy()
        );
        let mut command = Command::new("node");
        command.args(["-e", &script]);
        let process = Process::start(&mut command, new_folder("cosmos"), port)?;
        let manifest = std::fs::read_to_string(package.join("package.json"))?;
        let version = manifest.split("\"version\": \"").nth(1).and_then(|rest| rest.split('"').next());
        let node = first_line(Command::new("node").arg("--version"))?;
        let about = About {
            version: format!("@vercel/cosmosdb-server {} on node {node}", version.unwrap_or("?")),
            settings: "plain HTTP, keepAlive; it checks no signature and lets nothing expire".to_owned(),
            durability: "none: in memory".to_owned(),
        };
        Ok(CosmosServer { process, address: format!("127.0.0.1:{port}"), about })
    }
}

impl Peer for CosmosServer {
    fn name(&self) -> &str {
        "cosmosdb-server"
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn supports(&self, kind: Kind) -> bool {
        !matches!(kind, Kind::Patch | Kind::Tail)
    }

    fn prepare(&self, set: &DataSet) -> Result<()> {
        prepare(&self.address, set, "")
    }

    fn connect(&self, set: &DataSet) -> Result<Box<dyn Connection>> {
        let channel = Channel::one(&self.address, None)?;
        Ok(Box::new(RestConnection::connect(&self.address, channel, set, Dialect::Text)?))
    }

    fn measured(&self) -> &dyn Measured {
        &self.process
    }
}
