//! Files that the program creates: readable by their owner alone unless others must read them, because they contain
//! user data; and small ones that are replaced atomically, so that after a crash either the old or the new one is
//! complete.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The modes of private files and directories.
const OWNERS_FILE: u32 = 0o600;
const OWNERS_DIRECTORY: u32 = 0o700;

/// Returns options that create private files. An existing file keeps its mode.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(OWNERS_FILE);
    options
}

/// Creates an empty private file, replacing an existing one, which others may have open. A path that is not a regular
/// file, such as a pipe, a terminal or a link, is opened as it is.
pub(crate) fn create_private(path: &Path) -> io::Result<fs::File> {
    if fs::symlink_metadata(path).is_ok_and(|known| !known.is_file()) {
        let file = private().write(true).create(true).truncate(true).open(path)?;
        make_private(&file)?;
        return Ok(file);
    }
    remove_if_there(path)?;
    private().write(true).create_new(true).open(path)
}

/// Removes a file, if it exists.
fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Restricts a file to its owner. A pipe or a terminal stays as it is.
pub(crate) fn make_private(file: &fs::File) -> io::Result<()> {
    let known = file.metadata()?;
    if known.is_file() && known.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(OWNERS_FILE))?;
    }
    Ok(())
}

/// Creates a directory and its missing parents, all of them private. Existing ones stay as they are.
pub(crate) fn create_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(OWNERS_DIRECTORY).create(path)
}

/// Warns if all users of the machine can read a directory with user data.
pub(crate) fn warn_if_public(what: &str, path: &Path) {
    let Ok(mode) = fs::metadata(path).map(|known| known.permissions().mode() & 0o777) else { return };
    if mode & 0o007 != 0 {
        let shown = path.display();
        tracing::warn!(
            "every user of this machine can read the {what} '{shown}' (mode {mode:o}): run chmod 700 '{shown}'"
        );
    }
}

/// The readers of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// The user that runs the server.
    Owner,
    /// All users of the machine.
    All,
}

/// Replaces or creates a file; it is on disk on return.
pub(crate) fn replace(path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let mode = match readers {
        Readers::Owner => OWNERS_FILE,
        Readers::All => 0o644,
    };
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    // The remains of a crash might be readable by others.
    remove_if_there(&fresh)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    OpenOptions::new().read(true).open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_made_is_its_owners_and_directories_that_are_there_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let above = folder.path().join("above");
        fs::create_dir(&above).unwrap();
        fs::set_permissions(&above, Permissions::from_mode(0o755)).unwrap();
        let inner = above.join("one/two");
        create_private_directory(&inner).unwrap();
        create_private_directory(&inner).unwrap();
        assert_eq!([&above, &above.join("one"), &inner].map(|path| mode_of(path)), [0o755, 0o700, 0o700]);
        let file = inner.join("file");
        fs::write(&file, "of before").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        create_private(&file).unwrap();
        assert_eq!((mode_of(&file), fs::read(&file).unwrap()), (0o600, Vec::new()));
    }

    #[test]
    fn a_reader_of_the_old_file_does_not_read_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("backup"), folder.path().join("link"));
        fs::write(&path, "of before").unwrap();
        let mut reader = OpenOptions::new().read(true).open(&path).unwrap();
        create_private(&path).unwrap().write_all(b"of now").unwrap();
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!((read.as_str(), fs::read(&path).unwrap()), ("of before", b"of now".to_vec()));
        // Like /dev/stdout: the target is written to, and the link stays.
        std::os::unix::fs::symlink(&path, &link).unwrap();
        create_private(&link).unwrap().write_all(b"by the link").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"by the link");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        create_private(Path::new("/dev/null")).unwrap();
        assert!(create_private(folder.path()).is_err());
    }

    #[test]
    fn a_file_is_replaced_whole_and_only_its_readers_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let mode = || mode_of(&path);
        fs::write(folder.path().join("secret.new"), "left behind").unwrap();
        replace(&path, b"one", Readers::Owner).unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode()), (b"one".to_vec(), 0o600));
        replace(&path, b"two", Readers::All).unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode() & 0o077 | 0o600), (b"two".to_vec(), mode()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else stays");
        assert!(replace(&folder.path().join("none/x"), b"", Readers::Owner).is_err());
    }
}
