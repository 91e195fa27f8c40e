//! Data directories opened by a tool itself: no server may have them open at the same time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use storage::{ClockOptions, EmbeddedOptions, EmbeddedStore, Error, TestClock, WallClock};

use crate::serve;
use crate::settings::Settings;

/// Returns the directory named by the settings.
pub(super) fn directory(settings: &Settings) -> Result<PathBuf> {
    match settings.one_of(&["data", "memory"])? {
        Some(("memory", _)) => bail!("what is in memory has no data directory: name one with --data"),
        _ => Ok(settings.always("data").into()),
    }
}

/// Returns the options to open it with the machine's clock.
pub(super) fn options(settings: &Settings, path: &Path) -> EmbeddedOptions {
    options_at(settings, path, serve::clock())
}

/// Returns the options to open it with another clock.
pub(super) fn options_at(settings: &Settings, path: &Path, clock: Arc<dyn WallClock>) -> EmbeddedOptions {
    let mut clock = ClockOptions::new(clock);
    clock.test_clock = TestClock::running(settings.flag("test-clock"));
    clock.max_clock_jump = settings.seconds("max-clock-jump");
    clock.max_start_gap = settings.seconds("max-start-gap");
    let mut options = EmbeddedOptions::new(path, clock);
    options.cache_bytes = settings.number("cache-memory");
    options.reserve_bytes = settings.number("disk-reserve");
    options
}

/// Opens an existing store.
pub(super) fn open(settings: &Settings) -> Result<(EmbeddedStore, PathBuf)> {
    let path = directory(settings)?;
    if !path.join("bolide.store").is_file() && !path.join("keyspaces").is_dir() {
        bail!("there is no store in '{}': name its directory with --data", path.display());
    }
    let store = EmbeddedStore::open(options(settings, &path)).map_err(|error| {
        let remedy = match &error {
            Error::Corrupt { .. } => {
                "; nothing can be repaired in a file that cannot be read: restore a backup"
            }
            _ => "",
        };
        anyhow!("cannot open the data directory '{}': {error}{remedy}", path.display())
    })?;
    Ok((store, path))
}
