//! The primary key in a file of the operator's: read at the start, and again on SIGHUP, so that it is replaced without a restart.

use std::fs::OpenOptions;
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use account::{Key, Keyring, Kind};
use anyhow::{Context, Result, bail};
use telemetry::{AuditOutcome, AuditSink};
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;

use crate::audit::{self, AuditLog};
use crate::key_strength;

/// Keys are far shorter; what is longer is another file, or a device.
const BYTES_MAX: u64 = 64 * 1024;

/// A file that holds a key and nothing else.
#[derive(Debug, Clone)]
pub(crate) struct KeyFile {
    path: PathBuf,
    /// An address of the server that others can reach.
    reachable: Option<SocketAddr>,
}

impl KeyFile {
    /// The setting that names the file.
    pub(crate) const SETTING: &str = "key-file";

    pub(crate) fn new(path: impl Into<PathBuf>) -> KeyFile {
        KeyFile { path: path.into(), reachable: None }
    }

    /// The same, of a server that others can reach there: a key has to be long enough for that.
    pub(crate) fn reached_at(self, reachable: Option<SocketAddr>) -> KeyFile {
        KeyFile { reachable, ..self }
    }

    /// What stands in it, which may be no key. Nothing of it is ever in an error.
    pub(crate) fn text(&self) -> Result<String> {
        let text =
            self.read().with_context(|| format!("cannot read the key file '{}'", self.path.display()))?;
        Ok(text.trim().to_owned())
    }

    fn read(&self) -> Result<String> {
        let mut text = String::new();
        OpenOptions::new().read(true).open(&self.path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
        if text.len() as u64 > BYTES_MAX {
            bail!("it is longer than {BYTES_MAX} bytes");
        }
        Ok(text)
    }

    /// Gives the account the key that is there now; its fingerprint if that is another one. The emulator's key is none to change
    /// to: what it is guarded by, such as the address listened on, is looked at when the server starts.
    fn look(&self, keys: &Keyring) -> Result<Option<String>> {
        let key = Key::parse(&self.text()?)
            .with_context(|| format!("the key file '{}' holds no key", self.path.display()))?;
        let what = format!("the key in the file '{}'", self.path.display());
        key_strength::check(&key, &what, self.reachable)?;
        let fingerprint = key.fingerprint();
        if key.is_public() && !keys.is_public() {
            bail!(
                "the key file '{}' holds the emulator's key, which everybody knows: it is taken at a start only",
                self.path.display()
            );
        }
        Ok(keys.give(Kind::Primary, key, KeyFile::SETTING).then_some(fingerprint))
    }

    /// Looks whenever a signal asks for it. Runs until the process ends.
    pub(crate) async fn keep(self, keys: Keyring, audit: Option<Arc<AuditLog>>, mut hangups: Signal) {
        let tell = |key: Option<String>, outcome| {
            if let Some(log) = &audit {
                log.take(audit::of_server("reload-key", key, outcome));
            }
        };
        while hangups.recv().await.is_some() {
            let (file, ring) = (self.clone(), keys.clone());
            match spawn_blocking(move || file.look(&ring)).await {
                Ok(Ok(Some(fingerprint))) => {
                    tracing::warn!(
                        "the primary key of the account was replaced by the one in '{}'; the new one is {fingerprint}",
                        self.path.display()
                    );
                    tell(Some(format!("{} key {fingerprint}", Kind::Primary.name())), AuditOutcome::Success);
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => {
                    tracing::error!("the primary key stays as it is: {error:#}");
                    tell(None, AuditOutcome::Failure);
                }
                Err(error) => {
                    tracing::error!("looking for the primary key failed: {error}");
                    tell(None, AuditOutcome::Failure);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use account::EMULATOR_KEY;

    use super::*;

    #[test]
    fn a_new_key_counts_and_what_is_none_is_named_and_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let (file, keys) = (KeyFile::new(&path), Keyring::of(Key::parse("b25l").unwrap()));
        fs::write(&path, "b25l\n").unwrap();
        assert_eq!(file.look(&keys).unwrap(), None, "the same key is no change");
        fs::write(&path, " dHdv\n").unwrap();
        assert_eq!(file.look(&keys).unwrap(), Some(Key::parse("dHdv").unwrap().fingerprint()));
        assert!(keys.holder("dHdv").is_some() && keys.holder("b25l").is_none());
        let long = "x".repeat(BYTES_MAX as usize + 1);
        for (text, why) in [
            ("secret!", "base64"),
            ("", "base64"),
            (EMULATOR_KEY, "everybody knows"),
            (long.as_str(), "longer"),
        ] {
            fs::write(&path, text).unwrap();
            let refusal = format!("{:#}", file.look(&keys).unwrap_err());
            assert!(refusal.contains(why) && refusal.contains(path.to_str().unwrap()), "{refusal}");
            assert!(text.is_empty() || !refusal.contains(text), "{refusal}");
        }
        fs::write(&path, "dHdv").unwrap();
        let open = file.clone().reached_at(Some("0.0.0.0:1".parse().unwrap()));
        let refusal = format!("{:#}", open.look(&keys).unwrap_err());
        assert!(refusal.contains("has 24 bits") && refusal.contains(path.to_str().unwrap()), "{refusal}");
        fs::remove_file(&path).unwrap();
        let refusal = format!("{:#}", file.look(&keys).unwrap_err());
        assert!(refusal.contains(path.to_str().unwrap()) && refusal.contains("No such file"), "{refusal}");
        assert!(keys.holder("dHdv").is_some(), "the old one stays");
    }
}
