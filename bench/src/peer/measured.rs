//! What is measured of a peer while the generator uses it: its processes and files, as the system shows them.

use anyhow::Result;

use super::process::{Process, folder_bytes};
use crate::client::Server;

/// The processes and files of a peer.
pub trait Measured: Send + Sync {
    /// Returns the CPU seconds that all its processes have used so far.
    fn cpu_seconds(&self) -> Result<f64>;
    /// Returns the numbers of all its processes.
    fn processes(&self) -> Result<Vec<u32>>;
    /// Returns whether work waits or runs that earlier operations have left for later.
    fn has_deferred_work(&self) -> Result<bool> {
        Ok(false)
    }
    /// Returns the resident memory of all its processes.
    fn resident_mib(&self) -> Result<u64>;
    /// Returns the bytes of its files.
    fn disk_bytes(&self) -> Result<u64>;
}

impl Measured for Server {
    fn cpu_seconds(&self) -> Result<f64> {
        Server::cpu_seconds(self)
    }

    fn processes(&self) -> Result<Vec<u32>> {
        Ok(vec![self.pid()])
    }

    fn has_deferred_work(&self) -> Result<bool> {
        Server::has_deferred_work(self)
    }

    fn resident_mib(&self) -> Result<u64> {
        Server::resident_mib(self)
    }

    fn disk_bytes(&self) -> Result<u64> {
        folder_bytes(self.directory())
    }
}

impl Measured for Process {
    fn cpu_seconds(&self) -> Result<f64> {
        Process::cpu_seconds(self)
    }

    fn processes(&self) -> Result<Vec<u32>> {
        self.all()
    }

    fn resident_mib(&self) -> Result<u64> {
        Process::resident_mib(self)
    }

    fn disk_bytes(&self) -> Result<u64> {
        Process::disk_bytes(self)
    }
}
