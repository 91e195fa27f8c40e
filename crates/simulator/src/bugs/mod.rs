//! Defects for the binary `planted-bugs`: each is a small textual change to the engine or the store, and each must be caught
//! by some seed.
//!
//! The texts must occur exactly once in their file; a test checks that, and fails when the code has changed and the table has not.

mod evidence;
mod expiry;
mod features;
mod lsns;
mod sliding;
mod ttl_modes;

/// One defect.
#[derive(Debug, Clone, Copy)]
pub struct Bug {
    /// The defect, in a few words.
    pub name: &'static str,
    /// The changes that plant it.
    pub edits: &'static [Edit],
}

/// One change to one file.
#[derive(Debug, Clone, Copy)]
pub struct Edit {
    /// The file, from the workspace's root.
    pub file: &'static str,
    /// Text that occurs exactly once in it.
    pub text: &'static str,
    /// The text that replaces it.
    pub replacement: &'static str,
}

const fn edit(file: &'static str, text: &'static str, replacement: &'static str) -> Edit {
    Edit { file, text, replacement }
}

/// Returns all defects.
pub fn all() -> impl Iterator<Item = &'static Bug> {
    [expiry::BUGS, features::BUGS, evidence::BUGS, ttl_modes::BUGS, lsns::BUGS, sliding::BUGS]
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_planted_bug_still_finds_its_place() {
        for bug in all() {
            for edit in bug.edits {
                let path = format!("{}/../../{}", env!("CARGO_MANIFEST_DIR"), edit.file);
                let source = std::fs::read_to_string(&path).unwrap();
                assert_eq!(source.matches(edit.text).count(), 1, "{}: {}", bug.name, edit.text);
            }
        }
    }

    #[test]
    fn planted_bugs_have_names_of_their_own() {
        for (index, bug) in all().enumerate() {
            assert!(all().take(index).all(|other| other.name != bug.name), "{}", bug.name);
        }
    }
}
