//! Every message that the fuzz target found worth keeping, and every one that once broke something, tried again.
//!
//! The target is in `/fuzz`.

use std::path::Path;

#[path = "../corpus/cases.rs"]
mod cases;

#[test]
fn every_message_of_the_corpus_is_read_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/message");
    let entries = std::fs::read_dir(&folder).expect("the folder is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    for file in files {
        // Shown only if the check fails.
        println!("{}", file.display());
        cases::check_message(&std::fs::read(&file).expect("it can be read"));
    }
}
