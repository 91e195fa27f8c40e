//! Checks a server binary: `bolide-proof SERVER CHECK [options]`; `all` runs every check, with `--quick` those that take
//! seconds, and `bolide-proof list [options]` prints their names.
//!
//! ```text
//! --seed N       everything random follows from it; another one each time unless given
//! --count N      how many rounds, in place of what the check does by itself
//! --quick        the short form that the test suite runs; --long the one that takes its time
//! --directory D  where data directories are made; one that failed stays there
//! ```

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use bolide_proof::{CHECKS, Check, Effort, Outcome, Setting};

const USAGE: &str = "usage: bolide-proof SERVER CHECK|all [--seed N] [--count N] [--quick|--long] [--directory D] | list [--quick|--long]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether every requested check held.
fn run(arguments: &[String]) -> Result<bool> {
    if let [word, rest @ ..] = arguments
        && word == "list"
    {
        let effort = options(Setting::new(""), rest)?.effort;
        CHECKS.iter().filter(|check| check.from <= effort).for_each(|check| println!("{}", check.name));
        return Ok(true);
    }
    let [server, name, rest @ ..] = arguments else { bail!("{}", usage()) };
    let setting = options(Setting::new(server), rest)?;
    let is_one_of_all = |check: &Check| name == "all" && check.from <= setting.effort;
    let chosen: Vec<&Check> =
        CHECKS.iter().filter(|check| check.name == name || is_one_of_all(check)).collect();
    if chosen.is_empty() {
        bail!("no check is called '{name}'\n{}", usage());
    }
    let mut good = true;
    for check in chosen {
        println!("{}: {} (seed {})", check.name, check.what, setting.seed);
        match setting.within(check) {
            Ok(Outcome::Held(figures)) => println!("{}: held: {figures}", check.name),
            Ok(Outcome::Skipped(why)) => println!("{}: NOT CHECKED: {why}", check.name),
            Err(error) => {
                println!("{}: FAILED with seed {}: {error:#}", check.name, setting.seed);
                println!("{}: what it left is in {}", check.name, setting.place(check).display());
                good = false;
            }
        }
    }
    Ok(good)
}

fn options(mut setting: Setting, mut rest: &[String]) -> Result<Setting> {
    while let [option, more @ ..] = rest {
        let value = || more.first().with_context(|| format!("{option} wants a value"));
        rest = match option.as_str() {
            "--quick" | "--long" => {
                setting.effort = if option == "--quick" { Effort::Quick } else { Effort::Long };
                more
            }
            "--seed" => {
                setting.seed = value()?.parse()?;
                &more[1..]
            }
            "--count" => {
                setting.count = Some(value()?.parse()?);
                &more[1..]
            }
            "--directory" => {
                setting.directory = value()?.into();
                &more[1..]
            }
            _ => bail!("{option} is no option\n{}", usage()),
        };
    }
    Ok(setting)
}

fn usage() -> String {
    let checks = CHECKS.iter().map(|check| format!("  {:12} {}\n", check.name, check.what));
    format!("{USAGE}\n{}", checks.collect::<String>())
}
