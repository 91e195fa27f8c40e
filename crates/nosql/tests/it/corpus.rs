//! Replays every input that the fuzz target kept, and every one that once broke something.
//!
//! The target is in `/fuzz`.

#[path = "../corpus/cases.rs"]
mod cases;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_request_of_the_corpus_is_answered() {
    replay::replay("request", cases::check_request);
}
