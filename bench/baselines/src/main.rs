//! Lower bounds for any server.
//!
//! ```text
//! bolide-baselines http ADDRESS                          HTTP with the server's settings and an empty handler
//! bolide-baselines wire ADDRESS                          OP_MSG with an empty handler
//! bolide-baselines store DATA WRITERS SECONDS            commits like those that filled DATA, straight into a store
//! ```

mod http;
mod store;
mod wire;

use std::path::Path;

use anyhow::{Result, bail};

/// The server's allocator: with another one the loops would not be comparable.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// As many workers as the server has.
const WORKERS: usize = 4;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["http", address] => runtime()?.block_on(http::serve(address)),
        ["wire", address] => runtime()?.block_on(wire::serve(address)),
        ["store", data, writers, seconds] => store::run(Path::new(data), writers.parse()?, seconds.parse()?),
        _ => bail!("usage: bolide-baselines http ADDRESS | wire ADDRESS | store DATA WRITERS SECONDS"),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?)
}
