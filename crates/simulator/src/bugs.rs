//! Defects for the binary `planted-bugs`: each is one textual change to the engine or the store, and each must be caught by
//! some seed.

/// One defect.
#[derive(Debug, Clone, Copy)]
pub struct Bug {
    /// What goes wrong, in a few words.
    pub name: &'static str,
    /// The file, from the workspace's root.
    pub file: &'static str,
    /// Text that occurs exactly once in it.
    pub text: &'static str,
    /// What takes its place.
    pub replacement: &'static str,
}

/// All defects.
pub const BUGS: &[Bug] = &[];
