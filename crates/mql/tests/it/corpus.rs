//! Replays the fuzz corpora: inputs with distinct coverage, and inputs that once failed.
//!
//! The targets are in `/fuzz`. Nothing is timed: the budget of each evaluation bounds its work, and an input for which
//! it does not would be noticed by how long this test takes.

use replay::replay;

#[path = "../corpus/cases.rs"]
mod cases;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_filter_of_the_corpus_agrees_with_itself() {
    replay("filter", cases::check_filter);
}

#[test]
fn every_update_of_the_corpus_makes_what_may_be_stored() {
    replay("update", cases::check_update);
}

#[test]
fn every_pipeline_of_the_corpus_gives_the_same_rows_again() {
    replay("pipeline", cases::check_pipeline);
}
