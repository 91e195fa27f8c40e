//! How much is measured, and where the programs and the report are.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// In about fifteen minutes.
    Quick,
    /// In about an hour.
    Full,
    /// Also ten million items, forty times the cache, and half an hour of churn.
    Long,
}

pub struct Options {
    pub extent: Extent,
    /// The folder of the report.
    pub out: PathBuf,
    /// The program of `baselines/`.
    pub(super) baselines: PathBuf,
    /// npm's folder of cosmosdb-server.
    pub(super) cosmos: Option<PathBuf>,
}

impl Options {
    /// Reads the command line.
    pub(super) fn parse(arguments: &[String]) -> Result<Options> {
        let mut options = Options {
            extent: Extent::Full,
            out: PathBuf::from("."),
            baselines: std::env::current_exe()?.with_file_name("bolide-baselines"),
            cosmos: None,
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => options.extent = Extent::Quick,
                "--long" => options.extent = Extent::Long,
                "--out" => options.out = words.next().context("--out DIR")?.into(),
                "--baselines" => options.baselines = words.next().context("--baselines FILE")?.into(),
                "--cosmosdb-server" => options.cosmos = words.next().map(PathBuf::from),
                other => bail!("compare does not know '{other}'"),
            }
        }
        Ok(options)
    }

    pub(super) fn most_items(&self) -> u64 {
        match self.extent {
            Extent::Quick => 100_000,
            Extent::Full => 1_000_000,
            Extent::Long => 10_000_000,
        }
    }

    pub(super) fn items(&self) -> u64 {
        if self.extent == Extent::Quick { 10_000 } else { 50_000 }
    }

    pub(super) fn rounds(&self) -> u64 {
        match self.extent {
            Extent::Quick => 1,
            Extent::Full => 3,
            Extent::Long => 5,
        }
    }

    /// Returns the number of rounds of a verdict and their length.
    pub(super) fn verdict_rounds(&self) -> (u64, Duration) {
        if self.extent == Extent::Quick {
            (7, Duration::from_millis(500))
        } else {
            (7, Duration::from_secs(5))
        }
    }

    pub(super) fn length(&self) -> Duration {
        if self.extent == Extent::Quick { Duration::from_millis(700) } else { Duration::from_secs(2) }
    }
}
