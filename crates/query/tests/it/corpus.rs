//! Every input that the fuzz targets found worth keeping, and every one that once broke something, tried again.
//!
//! The targets are in `/fuzz`. Nothing is timed: the budget of each evaluation bounds its work, and an input for which
//! it does not would be noticed by how long this test takes.

#[path = "../corpus/cases.rs"]
mod cases;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_text_of_the_corpus_is_read_or_refused() {
    replay::replay("syntax", cases::check_syntax);
}

#[test]
fn every_evaluation_of_the_corpus_agrees_with_itself() {
    replay::replay("evaluation", cases::check_evaluation);
}
