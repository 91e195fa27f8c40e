//! Replays a corpus. The tests of the crates whose targets are fuzzed include this file.

use std::path::Path;

/// Gives every input of a target's corpus to its check.
pub(crate) fn replay(target: &str, check: fn(&[u8])) {
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
