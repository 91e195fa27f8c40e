//! The table of settings: one row each, from which everything else is generated: the options of the command line, the
//! environment variables, the keys of the file, `bolide config`, completions, the manual page, and the list in
//! docs/configuration.md.
//!
//! A new setting is one row here and the line that reads it.

/// A setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// `test-clock` is `--test-clock`, `BOLIDE_TEST_CLOCK` and `test-clock = true`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The default, as text of its kind. Flags are off by default.
    pub(crate) default: Option<&'static str>,
    pub(crate) help: &'static str,
    pub(crate) group: Group,
}

/// The kind of value a setting has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// On or off; off by default.
    Flag,
    /// Any text, with a placeholder for help.
    Text(&'static str),
    /// A text that is never printed.
    Secret(&'static str),
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// An integer between two bounds, inclusive.
    Number { least: u64, most: u64 },
    /// A duration in whole seconds.
    Seconds,
}

/// The group of a setting: groups are listed together, and each command lists the groups it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Source,
    Storage,
    Access,
    NoSql,
    Mongo,
    Time,
    Throughput,
    Limits,
    Logging,
    Client,
}

impl Group {
    /// All groups, in the order of their listing.
    pub(crate) const ALL: [Group; 10] = [
        Group::Source,
        Group::Storage,
        Group::Access,
        Group::NoSql,
        Group::Mongo,
        Group::Time,
        Group::Throughput,
        Group::Limits,
        Group::Logging,
        Group::Client,
    ];

    /// Returns the heading.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Group::Source => "Configuration",
            Group::Storage => "Storage",
            Group::Access => "Keys and certificates",
            Group::NoSql => "NoSQL API",
            Group::Mongo => "MongoDB API",
            Group::Time => "Time",
            Group::Throughput => "Throughput",
            Group::Limits => "Limits",
            Group::Logging => "Logging",
            Group::Client => "Connection to a running server",
        }
    }
}

/// Former names of settings, accepted for one version: the former and the current name.
const FORMER_NAMES: [(&str, &str); 1] = [("max-strangers", "max-unauthenticated-connections")];

const fn flag(group: Group, name: &'static str, help: &'static str) -> Setting {
    Setting { name, kind: Kind::Flag, default: None, help, group }
}

const fn text(group: Group, name: &'static str, what: &'static str, help: &'static str) -> Setting {
    Setting { name, kind: Kind::Text(what), default: None, help, group }
}

const fn secret(group: Group, name: &'static str, what: &'static str, help: &'static str) -> Setting {
    Setting { name, kind: Kind::Secret(what), default: None, help, group }
}

const fn choice(
    group: Group,
    name: &'static str,
    choices: &'static [&'static str],
    help: &'static str,
) -> Setting {
    Setting { name, kind: Kind::Choice(choices), default: None, help, group }
}

const fn number(group: Group, name: &'static str, least: u64, most: u64, help: &'static str) -> Setting {
    Setting { name, kind: Kind::Number { least, most }, default: None, help, group }
}

const fn seconds(group: Group, name: &'static str, help: &'static str) -> Setting {
    Setting { name, kind: Kind::Seconds, default: None, help, group }
}

impl Setting {
    const fn or(self, default: &'static str) -> Setting {
        Setting { default: Some(default), ..self }
    }

    /// Returns the name of the environment variable.
    pub(crate) fn variable(&self) -> String {
        variable(self.name)
    }

    /// Returns the former name, if it has one.
    pub(crate) fn former_name(&self) -> Option<&'static str> {
        FORMER_NAMES.iter().find(|(_, name)| *name == self.name).map(|(former, _)| *former)
    }

    /// Returns the name of the environment variable of the former name.
    pub(crate) fn former_variable(&self) -> Option<String> {
        self.former_name().map(variable)
    }

    /// Returns whether the configuration file may contain it; it may not name itself.
    pub(crate) fn is_for_files(&self) -> bool {
        self.name != "config"
    }

    /// Returns the placeholder for the value on the command line; `None` for a flag.
    pub(crate) fn value_name(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Flag => None,
            Kind::Text(what) | Kind::Secret(what) => Some(what),
            Kind::Choice(_) => Some("CHOICE"),
            Kind::Number { .. } => Some("NUMBER"),
            Kind::Seconds => Some("SECONDS"),
        }
    }

    /// Describes valid values.
    pub(crate) fn rule(&self) -> String {
        match &self.kind {
            Kind::Flag => "true or false".to_owned(),
            Kind::Text(_) | Kind::Secret(_) => "text".to_owned(),
            Kind::Choice(choices) => listed(choices),
            Kind::Number { least, most } => format!("a number from {least} to {most}"),
            Kind::Seconds => "a positive number of seconds".to_owned(),
        }
    }

    /// Returns whether a text is valid.
    pub(crate) fn admits(&self, text: &str) -> bool {
        let number = || text.trim().parse::<u64>().ok();
        match &self.kind {
            Kind::Text(_) | Kind::Secret(_) => true,
            Kind::Flag => parse_flag(text).is_some(),
            Kind::Choice(choices) => choices.contains(&text),
            Kind::Number { least, most } => number().is_some_and(|number| (*least..=*most).contains(&number)),
            Kind::Seconds => number().is_some_and(|number| (1..=u64::from(u32::MAX)).contains(&number)),
        }
    }
}

fn variable(name: &str) -> String {
    format!("BOLIDE_{}", name.to_ascii_uppercase().replace('-', "_"))
}

/// Formats `a, b or c`.
fn listed(choices: &[&str]) -> String {
    match choices {
        [but @ .., last] if !but.is_empty() => format!("{} or {last}", but.join(", ")),
        all => all.join(""),
    }
}

/// Parses a flag in its usual spellings.
pub(crate) fn parse_flag(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" | "" => Some(false),
        _ => None,
    }
}

/// Returns the row with this name.
pub(crate) fn find(name: &str) -> Option<&'static Setting> {
    TABLE.iter().find(|setting| setting.name == name)
}

use Group::{Access, Client, Limits, Logging, Mongo, NoSql, Source, Storage, Throughput, Time};

/// All settings.
#[rustfmt::skip]
pub(crate) static TABLE: &[Setting] = &[
    text(Source, "config", "FILE", "Read settings from this TOML file"),
    flag(Source, "emulator-env",
        "Also read the environment variables of the vNext emulator: PORT, DATA_PATH, KEY_FILE, LOG_LEVEL and others"),

    text(Storage, "data", "DIR", "Store data in this directory; for a new store it must be empty or not exist").or("./bolide-data"),
    flag(Storage, "memory", "Store data in memory only; it is lost when the server stops"),
    secret(Storage, "storage", "URL", "Store data in a PostgreSQL cluster (not supported yet)"),
    choice(Storage, "durability", &["sync", "buffered"],
        "What an acknowledged write survives: `sync` a power loss, `buffered` the end of the process only").or("sync"),
    number(Storage, "cache-memory", 1_048_576, 1_099_511_627_776,
        "Memory for the block cache, in bytes; a quarter of it is for allocator overhead").or("268435456"),
    number(Storage, "disk-reserve", 0, 1_099_511_627_776,
        "Bytes of the data directory's disk, at most a twentieth of it, reserved for deletes, the purge and the store itself").or("268435456"),
    number(Storage, "purge-share", 1, 90,
        "Percentage of the writer's time that the purge may take from users when expired items have waited for seconds").or("33"),
    number(Storage, "partitions", 1, 200,
        "Smallest number of physical partitions of a new container; its throughput may require more").or("1"),
    text(Storage, "archive-root", "DIR",
        "Let containers archive expired items before they are purged, in directories below this one"),
    text(Storage, "seed", "FILE",
        "Create the databases, containers, collections and items of this JSON file at the start, unless they exist"),
    flag(Storage, "allow-reset", "Let the admin API empty the store (POST /_bolide/reset); 'test-clock' implies it"),

    secret(Access, "key", "KEY",
        "The account key in base64, at least 256 bits where other machines can reach the server (openssl rand -base64 32). Default on loopback: the well-known emulator key"),
    text(Access, "key-file", "FILE", "Read the account key from this file, and again on SIGHUP"),
    text(Access, "tls-cert", "FILE",
        "The TLS certificate with its chain, in PEM. Default: issued at the first start by an authority in the data directory"),
    text(Access, "tls-key", "FILE", "The private key of the TLS certificate, in PEM"),
    text(Access, "tls-name", "NAMES",
        "Further host names or addresses for the server's own certificate, comma separated, beside localhost, loopback and the machine's name"),

    text(NoSql, "listen", "ADDRESS", "Address of the NoSQL API; port 0 uses a free one").or("127.0.0.1:8081"),
    choice(NoSql, "explorer", &["on", "off"], "Serve the explorer at /_explorer/, on the port of the NoSQL API").or("on"),
    choice(NoSql, "direct", &["on", "off"],
        "Serve clients in direct mode, the default of .NET and Java, on the port of the NoSQL API with TLS").or("on"),
    text(NoSql, "public-address", "HOST:PORT",
        "Host and port that the account document and the addresses of direct mode name. Default: those of the client's own request"),
    choice(NoSql, "default-consistency", &["strong", "bounded-staleness", "session", "consistent-prefix", "eventual"],
        "Consistency level of the account; requests for a stronger one are refused. Default: session, and none is refused"),
    flag(NoSql, "strict-gateway",
        "Refuse queries over several partition keys that the service's gateway refuses, and let an empty page follow a full one of unordered rows, as it does"),

    text(Mongo, "mongo-listen", "ADDRESS",
        "Address of the MongoDB API, or 'off'; port 0 uses a free one, and so does port 0 in 'listen'").or("127.0.0.1:10255"),
    text(Mongo, "mongo-advertise", "HOST:PORT",
        "Host and port under which MongoDB clients reach this server. Default: the address they connected to"),
    choice(Mongo, "mongo-profile", &["replica-set", "standalone", "sharded"],
        "Topology that the MongoDB API reports").or("replica-set"),
    text(Mongo, "mongo-user", "NAME", "MongoDB user whose password is the account key").or("bolide"),
    flag(Mongo, "mongo-auth",
        "Require authentication on the MongoDB API even on loopback with the emulator key; with any other key it is always required"),
    flag(Mongo, "mongo-test-commands", "Enable the commands of MongoDB's test suites, above all fail points"),

    flag(Time, "test-clock", "Let the admin API advance the clock, for tests"),
    flag(Time, "stopped-clock",
        "Stop the clock except for advances by the admin API, for tests whose speed must not matter; requires 'test-clock'"),
    seconds(Time, "max-clock-jump",
        "How far the wall clock may get ahead of the boot-time clock, or behind the time shown, before the clock is suspect").or("3600"),
    seconds(Time, "max-start-gap",
        "How far past the last known time the wall clock may be at the start before the clock is suspect").or("2592000"),

    flag(Throughput, "enforce-throughput",
        "Refuse requests beyond the provisioned throughput: 429 on the NoSQL API, error 16500 on the MongoDB API"),
    flag(Throughput, "burst-capacity",
        "With 'enforce-throughput', save up to five minutes of unused throughput for bursts of up to 3000 RU/s"),

    number(Limits, "max-connections", 1, 1_000_000,
        "Largest number of connections of the NoSQL API; each needs a file descriptor (ulimit -n)").or("12000"),
    number(Limits, "mongo-max-connections", 1, 1_000_000,
        "Largest number of connections of the MongoDB API; each needs a file descriptor (ulimit -n)").or("12000"),
    number(Limits, "max-unauthenticated-connections", 1, 1_000_000,
        "Largest number of unauthenticated connections from one address, both APIs together; an IPv6 /64 is one address. Beyond it the oldest silent one, or the oldest, is closed").or("2048"),
    number(Limits, "max-requests", 1, 2048,
        "Largest number of single writes and other brief requests that run at once, both APIs together; others wait").or("1000"),
    number(Limits, "max-queries", 1, 1024,
        "Largest number of queries that run at once, both APIs together; others wait. At most half of 'blocking-threads'. Default: four per processor, at least eight"),
    seconds(Limits, "max-queue-wait",
        "How long requests wait for a permit before they are refused and told to retry; under lasting overload a tenth of it").or("5"),
    number(Limits, "request-memory", 67_108_864, 1_099_511_627_776,
        "Largest number of bytes of requests and answers held at once, both APIs together; beyond it requests are refused").or("536870912"),
    number(Limits, "max-body-bytes", 65_536, 16_777_216, "Largest body of a request of the NoSQL API").or("2097152"),
    number(Limits, "max-header-bytes", 8192, 1_048_576,
        "Largest request line and headers of the NoSQL API").or("65536"),
    seconds(Limits, "idle-timeout", "How long a connection of the NoSQL API may be idle between two requests").or("120"),
    seconds(Limits, "mongo-idle-timeout",
        "How long a connection of the MongoDB API may be idle between two messages").or("1800"),
    seconds(Limits, "body-timeout", "How long the body of a request may take to arrive").or("60"),
    seconds(Limits, "max-query-time",
        "How long a page of a query of the NoSQL API may run").or("300"),
    seconds(Limits, "mongo-max-query-time",
        "How long a MongoDB command that reads may run, except getMore. Default: unlimited or maxTimeMS, as with MongoDB, because an interrupted aggregate with $merge leaves half of its writes"),
    number(Limits, "mongo-max-cursors", 1, 1_000_000,
        "Largest number of open cursors of the MongoDB API; one user holds at most three quarters of what others leave").or("10000"),
    seconds(Limits, "mongo-cursor-timeout", "How long a MongoDB cursor may be idle").or("600"),
    number(Limits, "mongo-max-transactions", 1, 1_000_000,
        "Largest number of open MongoDB transactions; one user holds at most three quarters of what others leave").or("1000"),
    seconds(Limits, "mongo-transaction-lifetime", "How long a MongoDB transaction may last").or("60"),
    number(Limits, "mongo-idle-memory", 1_048_576, 1_099_511_627_776,
        "Largest number of bytes in open MongoDB cursors and transactions between two requests; one user holds at most three quarters of what others leave, and beyond that its largest idle cursor or transaction is closed").or("268435456"),
    number(Limits, "query-memory", 1_048_576, 68_719_476_736,
        "Memory for a page of a query of the NoSQL API, in bytes: for sorted rows, groups and distinct rows").or("67108864"),
    number(Limits, "mongo-stage-memory", 1_048_576, 68_719_476_736,
        "Memory for one stage of a MongoDB pipeline, in bytes").or("104857600"),
    number(Limits, "mongo-scratch-space", 0, 1_099_511_627_776,
        "Total size of scratch files in the data directory, in bytes, for sorts and groups of MongoDB pipelines that exceed their memory; 0 disables them").or("10737418240"),
    number(Limits, "blocking-threads", 4, 4096, "Largest number of threads for MongoDB commands that read much and for other long work; queries of the NoSQL API have threads of their own; they exist only while needed").or("128"),
    seconds(Limits, "drain-timeout", "How long a shutdown waits for running requests").or("10"),

    text(Logging, "log", "FILTER",
        "Log level for standard error: error, warn, info, debug, trace or off; also for one component (engine=debug)").or("warn"),
    choice(Logging, "log-format", &["text", "json"], "Format of log lines").or("text"),
    text(Logging, "slow-ms", "MILLISECONDS",
        "Log operations of both APIs that take this long or longer; 0 logs all, 'off' none").or("500"),
    flag(Logging, "slow-log-texts",
        "Log slow queries with their values and parameters. Default: only their shape"),
    text(Logging, "audit-log", "FILE",
        "Write sign-ins, refusals and changes of keys, users, rules and settings to this file, as JSON lines. Default: off"),
    number(Logging, "audit-log-size", 65_536, 1_099_511_627_776,
        "Size in bytes at which a file of the audit log is rotated").or("67108864"),
    number(Logging, "audit-log-files", 1, 1000,
        "Number of audit log files to keep, including the current one; older ones are removed").or("10"),

    text(Client, "url", "URL", "URL of the server to connect to").or("http://127.0.0.1:8081/"),
    text(Client, "ca", "FILE", "Certificate authority to trust with https, in PEM"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_is_in_order() {
        let names: BTreeSet<&str> = TABLE.iter().map(|setting| setting.name).collect();
        assert_eq!(names.len(), TABLE.len(), "a name stands twice");
        for setting in TABLE {
            let name = setting.name;
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
            assert!(!setting.help.is_empty() && !setting.help.ends_with('.'), "{name}");
            assert!(!setting.help.contains("[default"), "{name}: the default is told from the row");
            if let Some(default) = setting.default {
                assert!(setting.admits(default), "{name}");
                assert_ne!(setting.kind, Kind::Flag, "{name}: flags are off");
                assert!(!matches!(setting.kind, Kind::Secret(_)), "{name}");
            }
        }
    }

    #[test]
    fn groups_stand_together_in_their_order() {
        let mut groups: Vec<Group> = TABLE.iter().map(|setting| setting.group).collect();
        groups.dedup();
        assert_eq!(groups, Group::ALL);
    }

    #[test]
    fn each_kind_has_its_rule() {
        for (name, rule, good, bad) in [
            ("memory", "true or false", &["yes", "ON", "0", ""][..], &["perhaps"][..]),
            ("durability", "sync or buffered", &["sync"], &["maybe", "Sync", ""]),
            ("mongo-profile", "replica-set, standalone or sharded", &["sharded"], &["cluster"]),
            ("partitions", "a number from 1 to 200", &["1", " 200 "], &["0", "-1", "201", "many", ""]),
            (
                "max-start-gap",
                "a positive number of seconds",
                &["1", "4294967295"],
                &["0", "-1", "1h", "1.5", "99999999999", ""],
            ),
        ] {
            let setting = find(name).unwrap();
            assert_eq!(setting.rule(), rule);
            assert!(good.iter().all(|text| setting.admits(text)), "{name}");
            assert!(!bad.iter().any(|text| setting.admits(text)), "{name}");
        }
    }

    /// `UPDATE_DOCS=1` rewrites the table in the documentation.
    #[test]
    fn the_documentation_has_every_row() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (before, rest) = text.split_once(BEGIN).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        let wanted = format!("{before}{BEGIN}\n{}{END}{after}", markdown());
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &wanted).unwrap();
        } else {
            assert_eq!(text, wanted, "run this test with UPDATE_DOCS=1");
        }
    }

    const BEGIN: &str = "<!-- the table of settings begins -->";
    const END: &str = "<!-- the table of settings ends -->";

    fn markdown() -> String {
        let mut lines = Vec::new();
        for group in Group::ALL {
            lines.push(format!(
                "\n### {}\n\n| Setting | Value | Default | |\n|---|---|---|---|",
                group.title()
            ));
            for setting in TABLE.iter().filter(|setting| setting.group == group) {
                let default = setting.default.map(|default| format!("`{default}`"));
                let (name, rule, help) = (setting.name, setting.rule(), setting.help);
                lines.push(format!("| `{name}` | {rule} | {} | {help} |", default.unwrap_or_default()));
            }
        }
        lines.join("\n") + "\n\n"
    }
}
