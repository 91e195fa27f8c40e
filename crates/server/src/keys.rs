//! Generated keys, in the file `keys.json` of the data directory: `{"secondary": "<base64>", …}`.
//!
//! Only the owner may read it, and it is replaced atomically. It never contains a key set by the operator.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use account::{Entry, Key, KeySource, KeyStore, Keyring, Kind, NoKeyStore};
use anyhow::{Context, Result, bail};
use document::{Object, Value};

use crate::data_location::DataLocation;
use crate::files::{self, Readers};

const FILE: &str = "keys.json";

/// The largest key file; four keys are far shorter.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Returns the path of the key file.
pub(crate) fn file(location: &DataLocation) -> Option<PathBuf> {
    match location {
        DataLocation::Directory(data) => Some(data.join(FILE)),
        DataLocation::Memory => None,
    }
}

/// Returns the keys generated earlier.
pub(crate) fn kept(location: &DataLocation) -> Result<Vec<Entry>> {
    match file(location) {
        Some(path) => read(&path).with_context(|| format!("cannot read the keys in '{}'", path.display())),
        None => Ok(Vec::new()),
    }
}

/// Creates the key ring: the saved keys, and the primary one, which may be one of them. Keys generated later are saved
/// with them.
pub(crate) fn ring(location: &DataLocation, kept: Vec<Entry>, primary: Entry) -> Keyring {
    let entries = kept.into_iter().chain([primary]);
    match file(location) {
        Some(path) => Keyring::new(entries, KeyFile(path)),
        None => Keyring::new(entries, NoKeyStore),
    }
}

fn read(path: &Path) -> Result<Vec<Entry>> {
    let file = match fs::OpenOptions::new().read(true).open(path) {
        // A path that is not a directory is refused when the store is opened.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        file => file?,
    };
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        tracing::warn!("other users can read the keys in '{}': run chmod 600 '{0}'", path.display());
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        bail!("the file is longer than {FILE_BYTES_MAX} bytes");
    }
    let Ok(Value::Object(members)) = document::parse_json(&bytes) else { bail!("it is not a JSON object") };
    members.iter().map(|(name, value)| entry(name, value)).collect()
}

fn entry(name: &str, value: &Value) -> Result<Entry> {
    let Some(kind) = Kind::named(name) else { bail!("'{name}' is no kind of key") };
    let Some(text) = value.as_str() else { bail!("the {name} key is not a string") };
    let key = Key::parse(text).with_context(|| format!("the {name} key cannot be used"))?;
    Ok(Entry { kind, key, source: KeySource::Generated })
}

/// The key file as a key store.
struct KeyFile(PathBuf);

impl KeyStore for KeyFile {
    fn save(&self, made: &[(Kind, &Key)]) -> io::Result<()> {
        let mut members = Object::new();
        for (kind, key) in made {
            members.insert(kind.name(), key.reveal());
        }
        files::replace(&self.0, Value::Object(members).to_json().as_bytes(), Readers::Owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> Entry {
        Entry { kind: Kind::Primary, key: Key::parse(text).unwrap(), source: KeySource::Setting("key") }
    }

    #[test]
    fn made_keys_outlive_the_process_and_given_ones_are_not_written_down() {
        let data = tempfile::tempdir().unwrap();
        let location = DataLocation::Directory(data.path().to_owned());
        assert!(kept(&location).unwrap().is_empty());
        let ring = ring(&location, Vec::new(), given("c2VjcmV0"));
        let (second, reader) =
            (ring.regenerate(Kind::Secondary).unwrap(), ring.regenerate(Kind::PrimaryReadonly).unwrap());
        let text = fs::read_to_string(data.path().join(FILE)).unwrap();
        assert!(!text.contains("c2VjcmV0"), "{text}");
        let mode = fs::metadata(data.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = super::ring(&location, kept(&location).unwrap(), given("c2VjcmV0"));
        assert_eq!(again.authenticate(second.reveal()).unwrap().kind, Kind::Secondary);
        assert_eq!(again.authenticate(reader.reveal()).unwrap().kind, Kind::PrimaryReadonly);
    }

    #[test]
    fn a_store_in_memory_keeps_nothing() {
        let ring = ring(&DataLocation::Memory, Vec::new(), given("c2VjcmV0"));
        ring.regenerate(Kind::Secondary).unwrap();
        assert!(kept(&DataLocation::Memory).unwrap().is_empty());
    }

    #[test]
    fn a_file_that_is_not_in_order_is_named_and_not_shown() {
        let data = tempfile::tempdir().unwrap();
        let location = DataLocation::Directory(data.path().to_owned());
        let long = "x".repeat(FILE_BYTES_MAX as usize + 1);
        for (text, why) in [
            ("", "not a JSON object"),
            ("[]", "not a JSON object"),
            (r#"{"third":"c2VjcmV0"}"#, "'third'"),
            (r#"{"secondary":1}"#, "not a string"),
            (r#"{"secondary":"secret!"}"#, "cannot be used"),
            (&long, "longer"),
        ] {
            fs::write(data.path().join(FILE), text).unwrap();
            let refusal = format!("{:#}", kept(&location).unwrap_err());
            assert!(refusal.contains(why) && refusal.contains("keys.json"), "{refusal}");
            assert!(!refusal.contains("secret!"), "{refusal}");
        }
    }
}
