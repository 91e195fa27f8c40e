//! The table of settings: one row each, and everything is made from it: the arguments of the command line, the
//! names in the environment, the keys of the file, `bolide config`, completions, the manual page, and the list in docs/configuration.md.
//!
//! A new setting is one row here and the line that reads it.

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// `test-clock` is `--test-clock`, `BOLIDE_TEST_CLOCK` and `test-clock = true`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What holds when nobody says anything, as text of that kind. Flags are off.
    pub(crate) default: Option<&'static str>,
    pub(crate) help: &'static str,
    pub(crate) group: Group,
}

/// What a setting's text must be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// On or off; off unless said otherwise.
    Flag,
    /// Anything; the word tells people what it is.
    Text(&'static str),
    /// As text, but never shown.
    Secret(&'static str),
    /// One of these.
    Choice(&'static [&'static str]),
    /// A whole number between two, both included.
    Number { least: u64, most: u64 },
    /// A time in whole seconds.
    Seconds,
}

/// What a setting is about: settings of a group stand together, and a command shows those that concern it.
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
    /// All of them, in the order in which they are shown.
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

    /// What stands above them.
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
            Group::Client => "Tools that talk to a running server",
        }
    }
}

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

    /// The name in the environment.
    pub(crate) fn variable(&self) -> String {
        format!("BOLIDE_{}", self.name.to_ascii_uppercase().replace('-', "_"))
    }

    /// Whether it may stand in the configuration file; the file's own name may not.
    pub(crate) fn is_for_files(&self) -> bool {
        self.name != "config"
    }

    /// What stands behind it on the command line; nothing behind a flag.
    pub(crate) fn value_name(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Flag => None,
            Kind::Text(what) | Kind::Secret(what) => Some(what),
            Kind::Choice(_) => Some("CHOICE"),
            Kind::Number { .. } => Some("NUMBER"),
            Kind::Seconds => Some("SECONDS"),
        }
    }

    /// What its text must be.
    pub(crate) fn rule(&self) -> String {
        match &self.kind {
            Kind::Flag => "true or false".to_owned(),
            Kind::Text(_) | Kind::Secret(_) => "text".to_owned(),
            Kind::Choice(choices) => listed(choices),
            Kind::Number { least, most } => format!("a number from {least} to {most}"),
            Kind::Seconds => "a positive number of seconds".to_owned(),
        }
    }

    /// Whether a text follows the rule.
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

/// `a, b or c`
fn listed(choices: &[&str]) -> String {
    match choices {
        [but @ .., last] if !but.is_empty() => format!("{} or {last}", but.join(", ")),
        all => all.join(""),
    }
}

/// Whether a flag is on, in the words that people use for it.
pub(crate) fn parse_flag(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" | "" => Some(false),
        _ => None,
    }
}

/// The row of a name.
pub(crate) fn find(name: &str) -> Option<&'static Setting> {
    TABLE.iter().find(|setting| setting.name == name)
}

use Group::{Access, Client, Limits, Logging, Mongo, NoSql, Source, Storage, Throughput, Time};

/// Every setting.
#[rustfmt::skip]
pub(crate) static TABLE: &[Setting] = &[
    text(Source, "config", "FILE", "Read settings from this TOML file"),
    flag(Source, "emulator-env",
        "Understand the environment names of the vNext emulator, too: PORT, DATA_PATH, KEY_FILE, LOG_LEVEL and others"),

    text(Storage, "data", "DIR", "Keep data in this directory; where there is no store yet it must hold nothing else").or("./bolide-data"),
    flag(Storage, "memory", "Keep data in memory only; it is gone when the server stops"),
    secret(Storage, "storage", "URL", "Keep data in a PostgreSQL cluster (not supported yet)"),
    choice(Storage, "durability", &["sync", "buffered"],
        "When a write counts as done: `sync` on disk, `buffered` in the operating system").or("sync"),
    number(Storage, "cache-memory", 1_048_576, 1_099_511_627_776,
        "Memory for blocks of the data directory that were read: three quarters of it are their bytes, the rest is what rounding and gaps take").or("268435456"),
    number(Storage, "disk-reserve", 0, 1_099_511_627_776,
        "Bytes of the data directory's disk, a twentieth of it at most, that only deletions, the purge and the store's own work may use").or("268435456"),
    number(Storage, "purge-share", 1, 90,
        "Percent of the time of the store's writer that the purge takes when expired items have waited for seconds and users leave nothing unused").or("25"),
    number(Storage, "partitions", 1, 200,
        "The fewest physical partitions of a new container; its throughput may ask for more").or("1"),
    text(Storage, "archive-root", "DIR",
        "Let containers archive what expires before it is purged, in directories below this one"),
    text(Storage, "seed", "FILE",
        "Make the databases, containers, collections and items of this JSON file at the start, where they are not there yet"),
    flag(Storage, "allow-reset", "Let the admin API empty the store (POST /_bolide/reset); 'test-clock' implies it"),

    secret(Access, "key", "KEY",
        "The account key, base64, of at least 256 bits where others can reach the server (openssl rand -base64 32). On loopback the well-known emulator key is the default"),
    text(Access, "key-file", "FILE", "Read the account key from this file, and again on SIGHUP"),
    text(Access, "tls-cert", "FILE",
        "The certificate for TLS, PEM, with its chain; without it one is made at the first start, and an authority that signs it, in the data directory"),
    text(Access, "tls-key", "FILE", "The private key of that certificate, PEM"),
    text(Access, "tls-name", "NAMES",
        "Further host names or addresses, comma separated, that the certificate made here is for; localhost, loopback and the machine's name are always"),

    text(NoSql, "listen", "ADDRESS", "Address of the NoSQL API; port 0 takes a free one").or("127.0.0.1:8081"),
    choice(NoSql, "explorer", &["on", "off"], "Pages for people at /_explorer/, on the port of the NoSQL API").or("on"),

    text(Mongo, "mongo-listen", "ADDRESS",
        "Address of the MongoDB API, or 'off'; port 0 takes a free one, as does 'listen' with port 0").or("127.0.0.1:10255"),
    text(Mongo, "mongo-advertise", "HOST:PORT",
        "The host and port under which MongoDB clients reach this server; without it the address they reached"),
    choice(Mongo, "mongo-profile", &["replica-set", "standalone", "sharded"],
        "What the MongoDB API says it is").or("replica-set"),
    text(Mongo, "mongo-user", "NAME", "The MongoDB user whose password is the account key").or("bolide"),
    flag(Mongo, "mongo-auth",
        "Require authentication on the MongoDB API also on loopback; it is required anyway when a key is given"),
    flag(Mongo, "mongo-test-commands", "Offer the commands of MongoDB's test suites, fail points above all"),

    flag(Time, "test-clock", "Let the admin API move the clock forward, for tests"),
    flag(Time, "stopped-clock",
        "Let time stand still but for what the admin API moves it, for tests that are never too slow; needs 'test-clock'"),
    seconds(Time, "max-clock-jump",
        "How far the wall clock may get ahead of the boot-time clock, or behind the time shown, before it is suspect").or("3600"),
    seconds(Time, "max-start-gap",
        "How far past the last known time the wall clock may be at the start, before it is suspect").or("2592000"),

    flag(Throughput, "enforce-throughput",
        "Refuse requests beyond the provisioned throughput: 429 on the NoSQL API, error 16500 on the MongoDB API"),
    flag(Throughput, "burst-capacity",
        "With it, keep up to five minutes of unused throughput for bursts of up to 3000 units a second"),

    number(Limits, "max-connections", 1, 1_000_000,
        "Connections of the NoSQL API; each needs a file descriptor (ulimit -n)").or("12000"),
    number(Limits, "mongo-max-connections", 1, 1_000_000,
        "Connections of the MongoDB API; each needs a file descriptor (ulimit -n)").or("12000"),
    number(Limits, "max-strangers", 1, 1_000_000,
        "Connections of one address, both APIs together, on which nothing was authenticated yet; an IPv6 /64 is one address. One more ends the oldest of them that has said nothing, or the oldest").or("2048"),
    number(Limits, "max-requests", 1, 2048,
        "Single writes and other brief requests that are worked on at once, both APIs together; others wait").or("1000"),
    number(Limits, "max-queries", 1, 1024,
        "Queries that are worked on at once, both APIs together; others wait. At most half of 'blocking-threads'; without it four for each processor, and eight at least"),
    seconds(Limits, "max-queue-wait",
        "How long requests wait for their turn before they are refused, to be sent again; while more comes than can be done, a tenth of it").or("5"),
    number(Limits, "request-memory", 67_108_864, 1_099_511_627_776,
        "Bytes of requests and answers that are held at once, both APIs together, before more are refused").or("536870912"),
    number(Limits, "max-body-bytes", 65_536, 16_777_216, "The body of a request of the NoSQL API").or("2097152"),
    number(Limits, "max-header-bytes", 8192, 1_048_576,
        "Request line and headers of a request of the NoSQL API").or("65536"),
    seconds(Limits, "idle-timeout", "How long a connection of the NoSQL API may be silent between two requests").or("120"),
    seconds(Limits, "mongo-idle-timeout",
        "How long a connection of the MongoDB API may be silent between two messages").or("1800"),
    seconds(Limits, "body-timeout", "How long the body of a request may take to arrive").or("60"),
    seconds(Limits, "max-query-time",
        "How long a page of a query of the NoSQL API may take").or("300"),
    seconds(Limits, "mongo-max-query-time",
        "How long a MongoDB command that reads may take, getMore aside; without it as long as maxTimeMS says or it needs, as with MongoDB, because an aggregate with $merge that is broken off leaves a half of what it should write"),
    number(Limits, "mongo-max-cursors", 1, 1_000_000,
        "Cursors of the MongoDB API that are open at once; a user holds at most three quarters of what others leave").or("10000"),
    seconds(Limits, "mongo-cursor-timeout", "How long such a cursor may rest").or("600"),
    number(Limits, "mongo-max-transactions", 1, 1_000_000,
        "MongoDB transactions that are open at once; a user holds at most three quarters of what others leave").or("1000"),
    seconds(Limits, "mongo-transaction-lifetime", "How long such a transaction may last").or("60"),
    number(Limits, "mongo-idle-memory", 1_048_576, 1_099_511_627_776,
        "Bytes that rest in open MongoDB cursors and transactions between two requests; a user holds at most three quarters of what others leave, and beyond that its largest idle cursor or transaction is ended").or("268435456"),
    number(Limits, "query-memory", 1_048_576, 68_719_476_736,
        "Bytes that a page of a query of the NoSQL API may keep in memory: rows that are sorted, groups, distinct rows").or("67108864"),
    number(Limits, "mongo-stage-memory", 1_048_576, 68_719_476_736,
        "Bytes that one stage of a MongoDB pipeline may keep in memory").or("104857600"),
    number(Limits, "mongo-scratch-space", 0, 1_099_511_627_776,
        "Bytes of scratch files in the data directory for sorts and groups of MongoDB pipelines that exceed their memory, all together; 0 refuses them").or("10737418240"),
    number(Limits, "blocking-threads", 4, 4096, "Threads for queries and other long work; they exist while there is some").or("128"),
    seconds(Limits, "drain-timeout", "How long a shutdown waits for requests under way").or("10"),

    text(Logging, "log", "FILTER",
        "What is logged to standard error: error, warn, info, debug, trace or off, also for one part (engine=debug)").or("warn"),
    choice(Logging, "log-format", &["text", "json"], "The form of a line of the log").or("text"),
    text(Logging, "slow-ms", "MILLISECONDS",
        "Log operations that take this long or longer, on both APIs; 0 logs all of them, 'off' none").or("500"),
    flag(Logging, "slow-log-texts",
        "Show queries in that log as they came, with values and parameters; without it their shape alone"),
    text(Logging, "audit-log", "FILE",
        "Write sign-ins, refusals and changes of keys, users, rules and settings to this file as JSON lines; off by default"),
    number(Logging, "audit-log-size", 65_536, 1_099_511_627_776,
        "Bytes of a file of the audit log; what would exceed them begins another file").or("67108864"),
    number(Logging, "audit-log-files", 1, 1000,
        "Files of the audit log that are kept, the current one included; the oldest is removed").or("10"),

    text(Client, "url", "URL", "The server that a tool talks to").or("http://127.0.0.1:8081/"),
    text(Client, "ca", "FILE", "The authority, PEM, that a tool trusts with https"),
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

    /// `UPDATE_DOCS=1` writes the table anew.
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
