//! Small files that are replaced whole: after a crash there is the old one or the new one, and never half of either.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Whoever runs the server.
    Owner,
    /// All users of the machine.
    Everybody,
}

/// Puts a file in the place of another one or where there was none, on disk when this returns.
pub(crate) fn replace(path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::Everybody => 0o644,
    };
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    // What a crash left behind might be readable by others.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    OpenOptions::new().read(true).open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_only_its_readers_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        fs::write(folder.path().join("secret.new"), "left behind").unwrap();
        replace(&path, b"one", Readers::Owner).unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode()), (b"one".to_vec(), 0o600));
        replace(&path, b"two", Readers::Everybody).unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode() & 0o077 | 0o600), (b"two".to_vec(), mode()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else stays");
        assert!(replace(&folder.path().join("none/x"), b"", Readers::Owner).is_err());
    }
}
