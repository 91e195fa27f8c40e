//! The folders of the repository. Everything that is installed or built goes below `compat/.cache` or cargo's target
//! folder; git ignores both.

use std::path::{Path, PathBuf};

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository").to_path_buf()
}

/// Returns the folder of one SDK suite.
pub(crate) fn compat(name: &str) -> PathBuf {
    root().join("compat").join(name)
}

/// Returns the folder of installed packages and unpacked archives.
pub(crate) fn cache() -> PathBuf {
    root().join("compat/.cache")
}

/// Returns cargo's target folder for the main workspace. Cargo starts in the root, so a relative path begins there.
pub(crate) fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Returns all files below `folder` with one of these extensions, sorted; hidden folders, build output and installed packages
/// are left out.
pub(crate) fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if path.is_dir() {
                let foreign =
                    ["target", "node_modules", "__pycache__", "bolide-data"].contains(&name.as_str());
                if !foreign && !name.starts_with('.') {
                    waiting.push(path);
                }
            } else if path.extension().is_some_and(|end| extensions.iter().any(|wanted| end == *wanted)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the path as people write it: relative to the root.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
