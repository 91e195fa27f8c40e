//! The bare store beneath inserts.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bolide_bench::client::Server;
use bolide_bench::documents::{DataSet, Shape};
use bolide_bench::drive::load;
use bolide_bench::peer::{BolideRest, Indexing};

use super::{Bare, CONNECTIONS, Options, Results, SIZES};

/// Fills a server with one container, stops it, and makes the bare store commit the same.
pub(super) fn measure(binary: &Path, options: &Options, results: &mut Results) -> Result<()> {
    for (name, indexing) in [("every path", Indexing::EveryPath), ("one path", Indexing::OnePath)] {
        let directory = std::env::temp_dir().join(format!("bolide-bench-bare-{}", std::process::id()));
        let server = Arc::new(Server::start_in(binary, &directory, &[])?);
        let peer = BolideRest::new(Arc::clone(&server), binary, indexing)?;
        load(
            &peer,
            &DataSet::new("c1024", Shape::of_size(SIZES[0]), options.items().max(20_000)),
            CONNECTIONS,
        )?;
        drop(peer);
        Arc::into_inner(server).context("another peer still has the server")?.stop()?;
        let seconds = options.length().as_secs() + 2;
        let mut command = Command::new(&options.baselines);
        command.arg("store").arg(&directory).args([CONNECTIONS.to_string(), seconds.to_string()]);
        let output = command.output().context("cannot start the baselines");
        let _ = std::fs::remove_dir_all(&directory);
        let output = output?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "the bare store: {}", String::from_utf8_lossy(&output.stderr));
        println!("bare store, {name}: {}", text.trim());
        let number = |key: &str| -> Result<f64> {
            let rest = text.split(&format!("{key}=")).nth(1).context("no such number")?;
            Ok(rest.split_whitespace().next().unwrap_or_default().parse()?)
        };
        results.bare.push(Bare {
            indexing: name,
            cpu_us: number("cpu_us")?,
            per_second: number("per_second")?,
            entries: number("entries")? as u64,
        });
    }
    Ok(())
}
