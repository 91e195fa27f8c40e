//! The primary key in a file of the operator: read at the start, and again on SIGHUP, so that it can be replaced
//! without a restart.

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

/// The largest key file; keys are far shorter, a longer file is something else.
const BYTES_MAX: u64 = 64 * 1024;

/// A file that contains a key and nothing else.
#[derive(Debug, Clone)]
pub(crate) struct KeyFile {
    path: PathBuf,
    /// An address of the server that other machines can reach.
    reachable: Option<SocketAddr>,
}

impl KeyFile {
    /// The setting that names the file.
    pub(crate) const SETTING: &str = "key-file";

    pub(crate) fn new(path: impl Into<PathBuf>) -> KeyFile {
        KeyFile { path: path.into(), reachable: None }
    }

    /// Sets the address that other machines can reach, which requires a long key.
    pub(crate) fn reached_at(self, reachable: Option<SocketAddr>) -> KeyFile {
        KeyFile { reachable, ..self }
    }

    /// Reads the text, which may not be a key. Errors contain nothing of it.
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

    /// Sets the account's key to that in the file; returns its fingerprint if it has changed. The emulator's key is not
    /// accepted: its restrictions, such as the listen address, are checked only at the start.
    fn look(&self, keys: &Keyring) -> Result<Option<String>> {
        let key = Key::parse(&self.text()?)
            .with_context(|| format!("the key file '{}' contains no key", self.path.display()))?;
        let what = format!("the key in the file '{}'", self.path.display());
        key_strength::check(&key, &what, self.reachable)?;
        let fingerprint = key.fingerprint();
        if key.is_public() && !keys.is_public() {
            bail!(
                "the key file '{}' contains the emulator's key, which is public: it is accepted only at the start",
                self.path.display()
            );
        }
        Ok(keys.set_from_setting(Kind::Primary, key, KeyFile::SETTING).then_some(fingerprint))
    }

    /// Reloads the key whenever a signal requests it. Runs until the process ends.
    pub(crate) async fn keep(self, keys: Keyring, audit: Option<Arc<AuditLog>>, mut hangups: Signal) {
        let tell = |key: Option<String>, outcome| {
            if let Some(log) = &audit {
                log.record(audit::of_server("reload-key", key, outcome));
            }
        };
        while hangups.recv().await.is_some() {
            let (file, ring) = (self.clone(), keys.clone());
            match spawn_blocking(move || file.look(&ring)).await {
                Ok(Ok(Some(fingerprint))) => {
                    tracing::warn!(
                        "replaced the account's primary key by the one in '{}'; its fingerprint is {fingerprint}",
                        self.path.display()
                    );
                    tell(Some(format!("{} key {fingerprint}", Kind::Primary.name())), AuditOutcome::Success);
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => {
                    tracing::error!("the primary key is unchanged: {error:#}");
                    tell(None, AuditOutcome::Failure);
                }
                Err(error) => {
                    tracing::error!("reloading the primary key failed: {error}");
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
        assert!(keys.authenticate("dHdv").is_some() && keys.authenticate("b25l").is_none());
        let long = "x".repeat(BYTES_MAX as usize + 1);
        for (text, why) in [
            ("secret!", "base64"),
            ("", "base64"),
            (EMULATOR_KEY, "which is public"),
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
        assert!(keys.authenticate("dHdv").is_some(), "the old one stays");
    }
}
