//! A lower bound for servers of the protocol: the same loop with an empty handler.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::process::{Process, free_port, new_folder};
use super::rest::{Channel, Dialect, RestConnection};
use super::wire::WireConnection;
use super::{About, Connection, Measured, Peer};
use crate::documents::DataSet;
use crate::workload::Kind;

/// The protocol of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loop {
    Http,
    Wire,
}

pub struct Floor {
    process: Process,
    of: Loop,
    address: String,
    about: About,
}

impl Floor {
    /// Starts it; `binary` is the program of `baselines/`.
    pub fn start(binary: &Path, of: Loop) -> Result<Floor> {
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let word = match of {
            Loop::Http => "http",
            Loop::Wire => "wire",
        };
        let mut command = Command::new(binary);
        command.args([word, &address]);
        let process = Process::start(&mut command, new_folder("floor"), port)?;
        let about = About {
            version: "bench/baselines".to_owned(),
            settings: "answers every request with the same 1 KB document".to_owned(),
            durability: "nothing is kept".to_owned(),
        };
        Ok(Floor { process, of, address, about })
    }
}

impl Peer for Floor {
    fn name(&self) -> &str {
        match self.of {
            Loop::Http => "empty http loop",
            Loop::Wire => "empty wire loop",
        }
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn supports(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Read | Kind::Insert)
    }

    fn prepare(&self, _: &DataSet) -> Result<()> {
        Ok(())
    }

    fn connect(&self, set: &DataSet) -> Result<Box<dyn Connection>> {
        Ok(match self.of {
            Loop::Http => {
                let channel = Channel::one(&self.address, None)?;
                Box::new(RestConnection::connect(&self.address, channel, set, Dialect::Header)?)
            }
            Loop::Wire => Box::new(WireConnection::connect(&self.address, set)?),
        })
    }

    fn measured(&self) -> &dyn Measured {
        &self.process
    }
}
