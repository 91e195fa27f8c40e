//! Replays the fuzz corpora: inputs with distinct coverage, and inputs that once failed.
//!
//! The targets are in `/fuzz`.

#[path = "../corpus/cases.rs"]
mod cases;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_text_of_the_corpus_is_read_or_refused() {
    replay::replay("json", cases::check_json);
}

#[test]
fn every_body_of_the_corpus_is_read_or_refused() {
    replay::replay("binary", cases::check_binary);
}

#[test]
fn every_key_of_the_corpus_sorts_as_its_value_does() {
    replay::replay("key", cases::check_key);
}
