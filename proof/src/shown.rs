//! The distance of the time that a server shows from the machine's (T34), measured from outside and compared with the
//! server's own figure.

use anyhow::{Context, Result, ensure};
use bolide_bench::client::Client;

use crate::ledger::wall_clock;

/// The most that shown time may be from the machine's after a kill. A restart within one boot adds a tenth of a second at most;
/// a second is the unit of `_ts` and `ttl`, and where the server's log begins to warn.
pub const OFFSET_MOST_SECONDS: f64 = 1.0;

/// Times are shown in milliseconds.
const RESOLUTION_SECONDS: f64 = 0.002;

/// Asks a server for its time; returns by how many seconds it is certainly ahead of the machine's, negative if it is
/// behind. The test clock's advance is not part of it.
pub fn offset_seconds(client: &mut Client) -> Result<f64> {
    let before = wall_clock();
    let page = client.plain("GET", "/metrics", "", "")?.expect(200)?.body;
    let after = wall_clock();
    let figure = |name: &str| figure(&page, name).with_context(|| format!("no {name} in the metrics"));
    let shown = figure("bolide_time_seconds")? - figure("bolide_test_clock_advance_seconds")?;
    let offset = figure("bolide_clock_offset_seconds")?;
    let possible = shown - after - RESOLUTION_SECONDS..=shown - before + RESOLUTION_SECONDS;
    ensure!(
        possible.contains(&offset),
        "the server says that its time is {offset} s ahead, it is {possible:?}"
    );
    Ok(certain(shown, before, after))
}

/// Returns how far `shown` lies outside of the interval of the request.
fn certain(shown: f64, before: f64, after: f64) -> f64 {
    (shown - after).max(0.0) + (shown - before).min(0.0)
}

fn figure(page: &str, name: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t34_only_what_is_certain_counts() {
        for (shown, ahead) in [(104.0, 2.0), (102.0, 0.0), (101.0, 0.0), (100.0, 0.0), (97.5, -2.5)] {
            assert!((certain(shown, 100.0, 102.0) - ahead).abs() < 1e-9, "{shown}");
        }
    }

    #[test]
    fn figures_are_read_by_their_whole_name() {
        let page = "# TYPE bolide_time gauge\nbolide_time_seconds 12.5\nbolide_time 3\n";
        assert_eq!(figure(page, "bolide_time"), Some(3.0));
        assert_eq!(figure(page, "bolide_time_seconds"), Some(12.5));
        assert_eq!(figure(page, "bolide"), None);
    }
}
