//! Keys that were made here, in the file `keys.json` of the data directory: `{"secondary": "<base64>", …}`.
//!
//! Only the owner may read it, and it is replaced whole. A key that the operator gives is never in it.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use account::{Entry, Forgetful, Key, Keyring, Kind, Origin, Vault};
use anyhow::{Context, Result, bail};
use document::{Object, Value};

use crate::data_location::DataLocation;
use crate::files::{self, Readers};

const FILE: &str = "keys.json";

/// Four keys are far shorter.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Where keys are kept.
pub(crate) fn file(place: &DataLocation) -> Option<PathBuf> {
    match place {
        DataLocation::Directory(data) => Some(data.join(FILE)),
        DataLocation::Memory => None,
    }
}

/// The keys that were made here before.
pub(crate) fn kept(place: &DataLocation) -> Result<Vec<Entry>> {
    match file(place) {
        Some(path) => read(&path).with_context(|| format!("cannot read the keys in '{}'", path.display())),
        None => Ok(Vec::new()),
    }
}

/// The account's keys: those that were kept, and the primary one, which may be one of them. New ones are kept beside them.
pub(crate) fn ring(place: &DataLocation, kept: Vec<Entry>, primary: Entry) -> Keyring {
    let entries = kept.into_iter().chain([primary]);
    match file(place) {
        Some(path) => Keyring::new(entries, KeyFile(path)),
        None => Keyring::new(entries, Forgetful),
    }
}

fn read(path: &Path) -> Result<Vec<Entry>> {
    let file = match fs::OpenOptions::new().read(true).open(path) {
        // A path that is no directory is refused where the store is opened, which says so.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        file => file?,
    };
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        tracing::warn!("others can read the keys in '{}': chmod 600 it", path.display());
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        bail!("the file is longer than {FILE_BYTES_MAX} bytes");
    }
    let Ok(Value::Object(members)) = document::parse_json(&bytes) else { bail!("it is no JSON object") };
    members.iter().map(|(name, value)| entry(name, value)).collect()
}

fn entry(name: &str, value: &Value) -> Result<Entry> {
    let Some(kind) = Kind::named(name) else { bail!("'{name}' is no kind of key") };
    let Some(text) = value.as_str() else { bail!("the {name} key is no text") };
    let key = Key::parse(text).with_context(|| format!("the {name} key cannot be used"))?;
    Ok(Entry { kind, key, origin: Origin::Made })
}

/// The file as a place to keep keys in.
struct KeyFile(PathBuf);

impl Vault for KeyFile {
    fn keep(&self, made: &[(Kind, &Key)]) -> io::Result<()> {
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
        Entry { kind: Kind::Primary, key: Key::parse(text).unwrap(), origin: Origin::Given("key") }
    }

    #[test]
    fn made_keys_outlive_the_process_and_given_ones_are_not_written_down() {
        let data = tempfile::tempdir().unwrap();
        let place = DataLocation::Directory(data.path().to_owned());
        assert!(kept(&place).unwrap().is_empty());
        let ring = ring(&place, Vec::new(), given("c2VjcmV0"));
        let (second, reader) =
            (ring.regenerate(Kind::Secondary).unwrap(), ring.regenerate(Kind::PrimaryReadonly).unwrap());
        let text = fs::read_to_string(data.path().join(FILE)).unwrap();
        assert!(!text.contains("c2VjcmV0"), "{text}");
        let mode = fs::metadata(data.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = super::ring(&place, kept(&place).unwrap(), given("c2VjcmV0"));
        assert_eq!(again.holder(second.reveal()).unwrap().kind, Kind::Secondary);
        assert_eq!(again.holder(reader.reveal()).unwrap().kind, Kind::PrimaryReadonly);
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
        let place = DataLocation::Directory(data.path().to_owned());
        let long = "x".repeat(FILE_BYTES_MAX as usize + 1);
        for (text, why) in [
            ("", "no JSON object"),
            ("[]", "no JSON object"),
            (r#"{"third":"c2VjcmV0"}"#, "'third'"),
            (r#"{"secondary":1}"#, "no text"),
            (r#"{"secondary":"secret!"}"#, "cannot be used"),
            (&long, "longer"),
        ] {
            fs::write(data.path().join(FILE), text).unwrap();
            let refusal = format!("{:#}", kept(&place).unwrap_err());
            assert!(refusal.contains(why) && refusal.contains("keys.json"), "{refusal}");
            assert!(!refusal.contains("secret!"), "{refusal}");
        }
    }
}
