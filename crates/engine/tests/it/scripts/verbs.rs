//! The table of commands: one row here, one function in the file of its group.

use super::call::Call;
use super::stage::Stage;
use super::{Answer, documents, dump, feeds, items, owners, queries, upkeep};

/// Runs a command.
type Verb = fn(&mut Stage, &mut Call<'_>) -> Answer;

const VERBS: &[(&str, Verb)] = &[
    ("store", owners::store),
    ("container", owners::container),
    ("collection", owners::collection),
    ("policy", owners::policy),
    ("drop", owners::drop_owner),
    ("hold", owners::hold),
    ("lift", owners::lift),
    ("held", owners::held),
    ("create", items::create),
    ("put", items::put),
    ("fill", items::fill),
    ("replace", items::replace),
    ("patch", items::patch),
    ("delete", items::delete),
    ("get", items::get),
    ("batch", items::batch),
    ("empty", items::empty),
    ("index", documents::index),
    ("reindex", documents::reindex),
    ("unindex", documents::unindex),
    ("walk", documents::walk),
    ("find", documents::find),
    ("query", queries::query),
    ("plan", queries::plan),
    ("ids", queries::ids),
    ("count", queries::count),
    ("usage", queries::usage),
    ("forecast", queries::forecast),
    ("dryrun", queries::dry_run),
    ("feed", feeds::feed),
    ("history", feeds::history),
    ("archive", feeds::archive),
    ("deletions", feeds::deletions),
    ("advance", upkeep::advance),
    ("clock", upkeep::clock),
    ("now", upkeep::now),
    ("purge", upkeep::purge),
    ("pause", upkeep::pause),
    ("resume", upkeep::resume),
    ("backlog", upkeep::backlog),
    ("retention", upkeep::retention),
    ("commits", upkeep::commits),
    ("restart", upkeep::restart),
    ("kill", upkeep::kill),
    ("crash", upkeep::crash),
    ("dump", dump::dump),
];

/// The function of a command.
pub(super) fn find(verb: &str) -> Verb {
    let known = VERBS.iter().find(|(name, _)| *name == verb);
    known.unwrap_or_else(|| panic!("no such command: {verb}")).1
}

/// Returns whether a line has a command that only the memory store supports: its disk loses commits that were not synced, and a
/// memory store that is dropped has not been closed.
pub(super) fn is_for_memory_alone(line: &str) -> bool {
    line.starts_with("> crash") || line.starts_with("> kill")
}

/// The README describes every command, and no others.
#[test]
fn the_page_names_every_command() {
    let page = include_str!("../../scripts/README.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let described: Vec<&str> = rows.filter_map(|row| row.split([' ', '`']).next()).collect();
    let known: Vec<&str> = VERBS.iter().map(|(name, _)| *name).collect();
    assert_eq!(described, known);
}
