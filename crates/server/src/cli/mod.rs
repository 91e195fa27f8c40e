//! The command line: one table of commands, one file each, and the table of settings as options of all commands.
//!
//! Exit status 2 means that the command failed; 1 that it succeeded and found a problem.

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
mod transfer_arguments;
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

/// A command.
struct Subcommand {
    name: &'static str,
    about: &'static str,
    /// The settings that it uses. The environment and the file may contain settings of other commands; on the command
    /// line they can only be a mistake.
    groups: &'static [Group],
    arguments: fn(clap::Command) -> clap::Command,
    run: fn(&ArgMatches, &Settings) -> Result<ExitCode>,
}

/// Makes a row from a module: its `Request` has the arguments, its `run` executes the command.
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

/// The settings of a tool that talks to a running server.
const ONLINE: &[Group] = &[Source, Access, Logging, Client];

/// The settings of a tool that opens a data directory itself.
const OFFLINE: &[Group] = &[Source, Storage, Time, Logging];

/// All commands.
#[rustfmt::skip]
static COMMANDS: &[Subcommand] = &[
    command!("serve", serve, &Group::ALL, "Run the server (the default command)"),
    command!("config", config, &Group::ALL,
        "Show the effective settings as TOML and where each comes from, and check them"),
    command!("cert", cert, &[Source, Storage, Access, Logging],
        "Show the root certificate and how to trust it on each platform"),
    command!("export", export, ONLINE,
        "Export the items of containers and collections that have not expired to files: JSON lines, JSON arrays or BSON dumps"),
    command!("import", import, ONLINE,
        "Import items from files of 'bolide export' or other tools into containers and collections"),
    command!("keys", keys, ONLINE, "List the account keys of a running server, or regenerate one"),
    command!("status", status, ONLINE,
        "Show server health: readiness, clock, store, purge, containers; exits with status 1 if unhealthy"),
    command!("top", top, ONLINE, "Watch a running server: requests, latency, purge, containers"),
    command!("ttl", ttl, ONLINE, "Report and forecast expiry, try another TTL, hold items, control the purge"),
    command!("clock", clock, ONLINE,
        "Show the clock of a running server, accept or reject a suspect one, advance a test clock; exits with status 1 if it is suspect"),
    command!("check", check, OFFLINE,
        "Check the integrity of a data directory that no server has open, and with --repair rebuild what is derived from its items"),
    command!("backup", backup, &[Source, Storage, Access, Time, Logging, Client],
        "Back up a running server, or a data directory named with --data, to one file, as of one instant"),
    command!("restore", restore, OFFLINE,
        "Restore a backup to a new data directory"),
    command!("compact", compact, OFFLINE,
        "Rewrite the files of a data directory that no server has open without removed data"),
    command!("verify-log", verify_log, OFFLINE,
        "Verify a deletion record: an exported one, or those of a data directory named with --data"),
    command!("completions", completions, &[], "Print a completion script for a shell"),
    command!("man", man, &[], "Print the manual page, or write those of all commands"),
];

/// Parses the command line and runs the command.
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
    let command = command.expect("clap knows only the commands of the table");
    refuse_what_is_not_used(command, matches)?;
    let settings = Settings::load(given(matches), &environment())?;
    logging::begin(&settings)?;
    (command.run)(arguments, &settings)
}

/// Refuses options that the command does not use: the user expects an effect from them.
fn refuse_what_is_not_used(command: &Subcommand, matches: &ArgMatches) -> Result<()> {
    let unused =
        TABLE.iter().find(|setting| is_given(matches, setting) && !command.groups.contains(&setting.group));
    if let Some(setting) = unused {
        let (option, command) = (setting.name, command.name);
        bail!("'bolide {command}' does not use --{option}: see 'bolide {command} --help'");
    }
    Ok(())
}

/// Logs warnings about the sources of the settings.
fn remark(settings: &Settings) {
    for remark in settings.remarks() {
        tracing::warn!("{remark}");
    }
}

/// Variables that are not Unicode cannot be settings.
fn environment() -> Vec<(String, String)> {
    let variables = std::env::vars_os();
    variables.filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?))).collect()
}

/// Returns the command line for clap.
fn command() -> clap::Command {
    command_with(option)
}

/// Returns the command line for help, shells and manual pages, with the possible values. Clap does not validate them
/// otherwise, so that a wrong value is refused with the same message wherever it comes from.
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

/// Returns a setting as an option.
fn option(setting: &'static Setting) -> Arg {
    let default = setting.default.map(|default| format!(" [default: {default}]")).unwrap_or_default();
    let arg = Arg::new(setting.name)
        .long(setting.name)
        .global(true)
        .help_heading(setting.group.title())
        .help(format!("{}{}{default}", setting.help, choices(setting)));
    let arg = setting.former_name().into_iter().fold(arg, Arg::alias);
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

/// Returns the settings on the command line, before or after a command.
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
    fn a_former_name_is_an_option() {
        let line = ["bolide", "--max-strangers", "7"];
        let settings = Settings::load(given(&command().get_matches_from(line)), &[]).unwrap();
        assert_eq!(settings.number("max-unauthenticated-connections"), 7);
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
