//! The description of the machine.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

const SYNCS: usize = 50;

pub(super) fn describe() -> String {
    let processor = line_of("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned());
    let memory = line_of("/proc/meminfo", "MemTotal").unwrap_or_default();
    let gib =
        memory.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1048576.0;
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{cores} cores ({processor}), {gib:.0} GiB, Linux {}; the generator runs beside the servers",
        kernel.trim()
    )
}

/// Returns the value of the first line of that name.
fn line_of(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Returns the load average of the last 1, 5 and 15 minutes.
pub fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(", ")
}

/// Returns the duration of a small write and its sync.
pub(super) fn sync_cost(folder: &Path) -> String {
    match syncs(&folder.join("sync-probe")) {
        Ok(mut times) => {
            times.sort_unstable();
            let ms = |at: usize| times[at].as_secs_f64() * 1e3;
            format!(
                "4 KB written and synced take {:.2} ms in the middle, {:.2} ms at worst",
                ms(SYNCS / 2),
                ms(SYNCS - 1)
            )
        }
        Err(error) => format!("not known: {error}"),
    }
}

fn syncs(path: &Path) -> std::io::Result<Vec<Duration>> {
    let mut file = std::fs::File::create(path)?;
    let mut times = Vec::new();
    for _ in 0..SYNCS {
        let began = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        times.push(began.elapsed());
    }
    std::fs::remove_file(path)?;
    Ok(times)
}
