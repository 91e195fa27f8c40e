//! Replays every input in the corpora of the fuzz targets, and every one that once revealed a defect.
//!
//! The targets are in `/fuzz`.

#[path = "../corpus/cases.rs"]
mod cases;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_backup_of_the_corpus_is_read_or_refused() {
    replay::replay("backup", cases::check_backup);
}

#[test]
fn every_damaged_directory_of_the_corpus_is_recovered_or_refused() {
    replay::replay("recovery", cases::check_recovery);
}
