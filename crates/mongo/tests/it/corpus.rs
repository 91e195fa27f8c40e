//! Replays every input that the fuzz targets kept, and every one that once broke something.
//!
//! The targets are in `/fuzz`.

#[path = "../corpus/cases.rs"]
mod cases;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_message_of_the_corpus_is_read_or_refused() {
    replay::replay("message", cases::check_message);
}

#[test]
fn every_proof_of_the_corpus_is_read_or_refused() {
    replay::replay("scram", cases::check_scram);
}

#[test]
fn every_resume_token_of_the_corpus_is_read_or_refused() {
    replay::replay("resume", cases::check_resume);
}
