//! Replays the fuzz corpora: inputs with distinct coverage, and inputs that once failed.
//!
//! The targets are in `/fuzz`.

#[path = "../corpus/cases.rs"]
mod cases;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_damaged_store_of_the_corpus_is_used_or_refused() {
    replay::replay("store", cases::check_store);
}

#[test]
fn every_token_of_the_corpus_is_followed_or_refused() {
    replay::replay("token", cases::check_token);
}
