//! Every input that the fuzz targets found worth keeping, and every one that once broke something, tried again.
//!
//! The targets are in `/fuzz`. Nothing is timed: the budget of each evaluation bounds its work, and an input for which
//! it does not would be noticed by how long this test takes.

use std::path::Path;

#[path = "../corpus/cases.rs"]
mod cases;

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

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(target);
    let entries = std::fs::read_dir(&folder).expect("the folder is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    for file in files {
        // Shown only if the check fails.
        println!("{}", file.display());
        check(&std::fs::read(&file).expect("it can be read"));
    }
}
