//! The command line: one table of commands, one file each, and the settings of the other table as options of all.
//!
//! A command that could not be done ends with 2; 1 is for one that was done and found something wrong.

mod backup;
mod bar;
mod cert;
mod check;
mod clock;
mod compact;
mod completions;
mod config;
mod export;
mod import;
mod keys;
mod man;
mod offline;
mod restore;
mod serve;
mod status;
mod top;
mod ttl;
mod verify_log;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, ValueHint};

use crate::logging;
use crate::settings::{Group, Kind, Layer, Setting, Settings, TABLE};

const NAME: &str = "bolide";
const ABOUT: &str =
    "A document database that speaks Azure Cosmos DB's protocols and keeps its time-to-live contract";

const AFTER_HELP: &str = "Every option can also be set in the environment (--test-clock is BOLIDE_TEST_CLOCK) or in the \
                          configuration file (test-clock = true). The command line wins, then the environment.";

/// One command.
struct Subcommand {
    name: &'static str,
    about: &'static str,
    /// The settings that it uses. Others stand in the environment and in the file for the sake of other commands; on the command
    /// line they can only be a mistake.
    groups: &'static [Group],
    arguments: fn(clap::Command) -> clap::Command,
    run: fn(&ArgMatches, &Settings) -> Result<ExitCode>,
}

/// The row of a file here: its `Request` are the arguments, its `run` does it.
macro_rules! command {
    ($name:literal, $module:ident, $groups:expr, $about:literal) => {
        Subcommand {
            name: $name,
            about: $about,
            groups: $groups,
            arguments: <$module::Request as Args>::augment_args,
            run: |matches, settings| {
                $module::run(&<$module::Request as FromArgMatches>::from_arg_matches(matches)?, settings)
            },
        }
    };
}

use Group::{Access, Client, Logging, Source, Storage, Time};

/// What a tool needs to know that talks to a running server.
const ONLINE: &[Group] = &[Source, Access, Logging, Client];

/// What a tool needs to know that opens a data directory itself.
const OFFLINE: &[Group] = &[Source, Storage, Time, Logging];

/// Every command.
#[rustfmt::skip]
static COMMANDS: &[Subcommand] = &[
    command!("serve", serve, &Group::ALL, "Run the server; this is what happens without a command, too"),
    command!("config", config, &Group::ALL,
        "Print the effective configuration as TOML, with the origin of each value, and check it"),
    command!("cert", cert, &[Source, Storage, Access, Logging],
        "Print where the root certificate is and how each platform is told to trust it"),
    command!("export", export, ONLINE,
        "Write the living items of containers and collections into files: JSON lines, JSON arrays, BSON dumps"),
    command!("import", import, ONLINE,
        "Write items out of such files, or of those of other tools, into containers and collections"),
    command!("keys", keys, ONLINE, "Tell which keys a running server's account has, or have a new one made"),
    command!("status", status, ONLINE,
        "Tell how a running server is: readiness, clock, store, purge, containers; ends with 1 if something is not well"),
    command!("top", top, ONLINE, "Watch a running server: requests, latency, purge, containers, each second anew"),
    command!("ttl", ttl, ONLINE, "Report and forecast what expires, try another TTL, hold items, steer the purge"),
    command!("clock", clock, ONLINE,
        "Tell the time of a running server, accept or reject that of a suspect clock, move a test clock forward; ends with 1 if it is suspect"),
    command!("check", check, OFFLINE,
        "Inspect a data directory that no server has open, and with --repair mend what follows from its items"),
    command!("backup", backup, &[Source, Storage, Access, Time, Logging, Client],
        "Keep everything that a running server has, or a data directory named with --data, in one file, as of one instant"),
    command!("restore", restore, OFFLINE,
        "Make a data directory of a backup"),
    command!("compact", compact, OFFLINE,
        "Rewrite the files of a data directory that no server has open without what was removed"),
    command!("verify-log", verify_log, OFFLINE,
        "Verify a deletion record: an exported one, or those of a data directory that is named with --data"),
    command!("completions", completions, &[], "Print what a shell needs to complete commands and options"),
    command!("man", man, &[], "Print the manual page, or write those of all commands"),
];

/// Does what the command line says.
pub(crate) fn run() -> ExitCode {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    perform(&matches).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

fn perform(matches: &ArgMatches) -> Result<ExitCode> {
    let (name, arguments) = matches.subcommand().unwrap_or((COMMANDS[0].name, matches));
    let command = COMMANDS.iter().find(|command| command.name == name);
    let command = command.expect("clap knows the commands of the table only");
    refuse_what_is_not_used(command, matches)?;
    let settings = Settings::load(given(matches), &environment())?;
    logging::begin(&settings)?;
    (command.run)(arguments, &settings)
}

/// An option that changes nothing is one from which something was expected.
fn refuse_what_is_not_used(command: &Subcommand, matches: &ArgMatches) -> Result<()> {
    let unused =
        TABLE.iter().find(|setting| is_given(matches, setting) && !command.groups.contains(&setting.group));
    if let Some(setting) = unused {
        let (option, command) = (setting.name, command.name);
        bail!(
            "--{option} has no meaning for 'bolide {command}': 'bolide {command} --help' lists what it takes"
        );
    }
    Ok(())
}

/// Tells what is odd about where the settings come from.
fn remark(settings: &Settings) {
    for remark in settings.remarks() {
        tracing::warn!("{remark}");
    }
}

/// Variables that are no Unicode are none of ours.
fn environment() -> Vec<(String, String)> {
    let variables = std::env::vars_os();
    variables.filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?))).collect()
}

/// The command line as clap sees it.
fn command() -> clap::Command {
    command_with(option)
}

/// The same for people and their shells. What texts may be is not told to clap otherwise, because a wrong one shall be
/// refused in the same words wherever it came from.
fn described() -> clap::Command {
    command_with(|setting| match setting.kind {
        Kind::Choice(choices) => {
            option(setting).value_parser(PossibleValuesParser::new(choices)).hide_possible_values(true)
        }
        _ => option(setting),
    })
}

fn command_with(option: fn(&'static Setting) -> Arg) -> clap::Command {
    let subcommands = COMMANDS.iter().map(|command| {
        let own = TABLE.iter().map(|setting| option(setting).hide(!command.groups.contains(&setting.group)));
        (command.arguments)(clap::Command::new(command.name)).about(command.about).args(own)
    });
    clap::Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(AFTER_HELP)
        .subcommands(subcommands)
        .args(TABLE.iter().map(option))
}

/// A setting as an option.
fn option(setting: &'static Setting) -> Arg {
    let default = setting.default.map(|default| format!(" [default: {default}]")).unwrap_or_default();
    let arg = Arg::new(setting.name)
        .long(setting.name)
        .global(true)
        .help_heading(setting.group.title())
        .help(format!("{}{}{default}", setting.help, choices(setting)));
    match setting.value_name() {
        None => arg.action(ArgAction::SetTrue),
        Some("FILE") => arg.value_name("FILE").value_hint(ValueHint::FilePath),
        Some("DIR") => arg.value_name("DIR").value_hint(ValueHint::DirPath),
        Some(name) => arg.value_name(name),
    }
}

fn choices(setting: &Setting) -> String {
    match setting.kind {
        Kind::Choice(choices) => format!(" [{}]", choices.join(", ")),
        _ => String::new(),
    }
}

/// The settings on the command line, before a command or behind it.
fn given(matches: &ArgMatches) -> Layer {
    let text = |setting: &'static Setting| {
        is_given(matches, setting).then(|| match setting.kind {
            Kind::Flag => (setting.name, "true".to_owned()),
            _ => (setting.name, matches.get_one::<String>(setting.name).cloned().unwrap_or_default()),
        })
    };
    Layer::from_command_line(TABLE.iter().filter_map(text))
}

fn is_given(matches: &ArgMatches, setting: &Setting) -> bool {
    matches.value_source(setting.name) == Some(ValueSource::CommandLine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_finds_nothing_wrong_with_the_tables() {
        command().debug_assert();
        described().debug_assert();
    }

    #[test]
    fn options_stand_before_or_behind_a_command() {
        for line in [
            &["bolide", "--memory", "--data", "d", "serve"][..],
            &["bolide", "serve", "--data", "d", "--memory"],
        ] {
            let settings = Settings::new(vec![given(&command().get_matches_from(line))]).unwrap();
            assert!(settings.flag("memory"), "{line:?}");
            assert_eq!(settings.given("data"), Some("d"), "{line:?}");
            assert_eq!(settings.given("listen"), None, "{line:?}");
        }
    }

    #[test]
    fn an_option_that_a_command_does_not_use_is_refused_wherever_it_stands() {
        let refusal = |line: &[&str]| {
            let matches = command().get_matches_from(line);
            let used = COMMANDS.iter().find(|command| Some(command.name) == matches.subcommand_name());
            refuse_what_is_not_used(used.unwrap(), &matches).err().map(|error| error.to_string())
        };
        for (line, option) in [
            (&["bolide", "export", "--dir", "e", "--data", "d"][..], "--data"),
            (&["bolide", "--test-clock", "status"], "--test-clock"),
            (&["bolide", "check", "--url", "http://h"], "--url"),
            (&["bolide", "man", "--memory"], "--memory"),
        ] {
            let refusal = refusal(line).unwrap_or_else(|| panic!("{line:?}"));
            assert!(refusal.contains(option), "{refusal}");
            assert!(line.iter().any(|word| refusal.contains(&format!("'bolide {word}'"))), "{refusal}");
        }
        for line in [
            &["bolide", "backup", "--to", "f", "--data", "d"][..],
            &["bolide", "--key", "k", "export", "--dir", "e", "--url", "http://h", "--log", "debug"],
            &["bolide", "config", "--mongo-listen", "off"],
        ] {
            assert_eq!(refusal(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_command_shows_the_settings_that_concern_it() {
        let help = |name: &str| {
            let mut all = command();
            all.build();
            all.find_subcommand_mut(name).unwrap().render_long_help().to_string()
        };
        assert!(help("verify-log").contains("--data") && !help("verify-log").contains("--mongo-listen"));
        assert!(help("serve").contains("--mongo-listen"));
    }
}
