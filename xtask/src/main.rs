//! Automation of the repository: `cargo xtask <command>`.
//!
//! ```text
//! test [--long]                         everything; --long adds what is big
//! tidy                                  rules about the source tree
//! deny                                  licences, bans, sources and published weaknesses of dependencies
//! compat [SUITE]                        official clients against a live server; all of them without a name
//!                                       (python, js, rust, go, java, java-direct, published, go-published, mongo-python, mongo-js,
//!                                       mongo-rust, mongo-go, mongo-java, mongo-published, mongo-go-published, explorer)
//! tour                                  runs the code blocks of the README, the guides and the pages of docs
//! package [--check]                     builds the Debian package; --check also installs it and lints what is beside it
//! bench [--quick|--long]                measures beside other databases into docs/benchmarks; --quick in fifteen minutes
//! proof [--quick|--long] [CHECK …]      kills, power loss, failing disks, overload against the binary: docs/reliability.md
//! fuzz <target> <seconds>               looks for inputs that break a language: see fuzz/README.md
//! ```
//!
//! Suites install their packages into ignored folders. A missing tool is named loudly; with `CI=true` it is a failure.
//! Every child process has a deadline.

#![expect(
    clippy::disallowed_methods,
    reason = "automation starts processes and waits for them; it is no part of the server"
)]

mod bench;
mod compat;
mod deny;
mod extent;
mod fuzz;
mod go;
mod go_results;
mod java;
mod package;
mod paths;
mod process;
mod proof;
mod published;
mod relay;
mod report;
mod rust;
mod server;
mod tidy;
mod tour;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::extent::Extent;
use crate::report::Report;
use crate::server::{Build, Tested};

const USAGE: &str = "usage: cargo xtask test [--long] | tidy | deny | compat [SUITE] | tour | package [--check] | \
     bench [--quick|--long] | proof [--quick|--long] [CHECK …] | \
     fuzz <target> <seconds>: see fuzz/README.md";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut report = Report::new();
    match dispatch(&arguments, &mut report) {
        Ok(()) => report.finish(),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(arguments: &[String], report: &mut Report) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test"] => all(report, Tier::Short),
        ["test", "--long"] => all(report, Tier::Long),
        ["tidy"] => tidy::check(report),
        ["deny"] => report.beside(deny::parts()),
        ["compat"] => {
            let (tier, server) = (Tier::Short, Tested::new(Tier::Short.build()));
            report.beside(compat::parts(&server, tier));
        }
        ["compat", name] => match compat::Suite::named(name) {
            Some(suite) => compat::one(report, suite),
            None => bail!("{USAGE}"),
        },
        ["fuzz", name, seconds] => match fuzz::TARGETS.iter().find(|target| target.name == *name) {
            Some(target) => fuzz::run(report, *target, seconds.parse()?),
            None => bail!("{USAGE}"),
        },
        ["bench"] => bench::run(report, Extent::Full),
        ["bench", "--quick"] => bench::run(report, Extent::Quick),
        ["bench", "--long"] => bench::run(report, Extent::Long),
        ["proof", "--quick", names @ ..] => proof::run(report, Extent::Quick, names),
        ["proof", "--long", names @ ..] => proof::run(report, Extent::Long, names),
        ["proof", names @ ..] => proof::run(report, Extent::Full, names),
        ["package"] => compat::with_server(report, Build::Release, |report, binary| {
            package::build_one(report, binary);
        }),
        ["package", "--check"] => {
            compat::with_server(report, Build::Release, |report, binary| {
                package::check(report, binary, Build::Release);
            });
        }
        ["tour"] => compat::one(report, compat::Suite::Tour),
        _ => bail!("{USAGE}"),
    }
    Ok(())
}

/// How much of the tests to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Less than half an hour on two cores from nothing; the aim is 25 minutes.
    Short,
    /// Also the big ones: a million items, many kills, many seeds.
    Long,
}

impl Tier {
    /// Returns the build of the server to test.
    pub(crate) fn build(self) -> Build {
        match self {
            Self::Short => Build::Tested,
            Self::Long => Build::Release,
        }
    }
}

/// Runs everything, cheap checks first, even if something before it failed.
fn all(report: &mut Report, tier: Tier) {
    tidy::check(report);
    rust::format(report);
    let server = Tested::new(tier.build());
    let mut parts = vec![server.part()];
    parts.extend(rust::parts());
    parts.extend(deny::parts());
    parts.extend(compat::parts(&server, tier));
    report.beside(parts);
    // Measured parts have the machine for themselves.
    rust::simulator(report, tier);
    proof::run(report, if tier == Tier::Long { Extent::Long } else { Extent::Quick }, &[]);
    compat::with_server(report, tier.build(), |report, binary| {
        package::check(report, binary, tier.build());
    });
    if tier == Tier::Long {
        rust::long_tests(report);
    }
}
