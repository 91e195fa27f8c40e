//! Replays the fuzz corpus: inputs with distinct coverage, and inputs that once failed.
//!
//! The target is in `/fuzz`.

#[path = "../corpus/cases.rs"]
mod cases;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_input_of_the_corpus_is_read_or_refused() {
    replay::replay("rntbd", cases::check_rntbd);
}
