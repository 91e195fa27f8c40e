//! Replays the fuzz corpora: inputs with distinct coverage, and inputs that once failed.
//!
//! The targets are in `/fuzz`. No check measures time: the budget of each evaluation bounds its work, and a failure to
//! do so shows in the duration of this test.

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
