//! Benchmarks of Bolide: the cost of operations beside other databases, its growth with size, and the impact of the
//! purge.
//!
//! ```text
//! cargo run --release -- SERVER compare OPTIONS           everything, into a report: `cargo xtask bench` does it
//! cargo run --release -- SERVER cost [rounds] [names]     server CPU for each operation, of every API
//! cargo run --release -- SERVER direct [rounds]           direct mode beside REST
//! cargo run --release -- SERVER verdicts [rounds] [seconds] [names]   aims beside PostgreSQL, decided
//! cargo run --release -- SERVER grow [items]              costs, memory, disk and starts from 10,000 items up
//! cargo run --release -- SERVER storm [items] [seconds]   many items expire in one instant under users
//! cargo run --release -- SERVER steady [seconds] [ttl]    items expire as fast as they are inserted
//! cargo run --release -- SERVER churn [minutes]           the same for long, with readers: does anything grow?
//! cargo run --release -- SERVER quota [items]             400 RU/s, enforced and used up
//! cargo run --release -- SERVER crowd [containers]        expiries in many containers at once, one of them huge
//! ```
//!
//! `SERVER` is the binary to measure. Figures and what they mean: docs/benchmarks and docs/purge.md.

mod compare;
mod cost;
mod direct;
mod grow;
mod load;
mod purge;
mod report;
mod svg;
mod verdicts;

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use bolide_bench::churn;
use bolide_bench::steady::{Plan, steady};

const USAGE: &str = "usage: bolide-bench SERVER compare OPTIONS | cost [rounds] [names] | direct [rounds] | verdicts [rounds] [seconds] [names] | grow [items] | \
     storm [items] [seconds] | steady [seconds] [ttl] | churn [minutes] | quota [items] | crowd [containers]";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| arguments.get(at).map_or(Ok(default), |text| text.parse());
    let (Some(server), Some(scenario)) = (arguments.first(), arguments.get(1)) else { bail!(USAGE) };
    let server = Path::new(server);
    match scenario.as_str() {
        "compare" => compare::run(server, &arguments[2..]),
        "cost" => cost::run(server, &arguments[2..]),
        "direct" => direct::run(server, number(2, 3)?),
        "verdicts" => {
            let seconds = arguments.get(3).map_or(Ok(5.0), |text| text.parse())?;
            let extent = verdicts::Extent {
                rounds: number(2, 7)?,
                length: Duration::try_from_secs_f64(seconds)?,
                names: arguments.get(4..).unwrap_or_default(),
                baselines: &std::env::current_exe()?.with_file_name("bolide-baselines"),
            };
            verdicts::run(server, &extent)
        }
        "grow" => grow::run(server, number(2, 1_000_000)?).map(drop),
        "storm" => purge::storm(server, number(2, 1_000_000)?, Duration::from_secs(number(3, 30)?)).map(drop),
        "churn" => {
            let length = Duration::from_secs(60 * number(2, 30)?);
            churn::run(server, length).map(|churn| churn.show())
        }
        "steady" => steady(server, Plan::new(number(2, 300)?, number(3, 20)?)),
        "quota" => purge::quota(server, number(2, 100_000)?),
        "crowd" => purge::crowd(server, number(2, 1000)?),
        _ => bail!(USAGE),
    }
}
