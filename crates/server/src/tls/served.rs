//! The certificate used in handshakes, which can be replaced while the server runs: operators' certificates are valid
//! for weeks, the server's own for two years, and a database runs longer than that.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use parking_lot::RwLock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use storage::WallClock;
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::Pem;
use super::authority::Authority;

/// The pause between two checks of the certificate; SIGHUP triggers one at once.
const LOOK_PAUSE: Duration = Duration::from_hours(1);

/// The source of the current certificate.
pub(super) enum Source {
    /// The operator's files.
    Files { certificate: PathBuf, key: PathBuf },
    /// A folder of the server, in which it is renewed in time.
    Folder { folder: PathBuf, names: Vec<String> },
    /// Created for a store in memory, which does not run that long.
    Memory(Pem),
}

impl Source {
    /// Returns the certificate to serve at that time.
    pub(super) fn certificate(&self, now_seconds: u64) -> Result<Pem> {
        match self {
            Source::Files { certificate, key } => Pem::read(certificate, key),
            Source::Folder { folder, names } => {
                Authority::kept(folder, now_seconds)?.certificate_in(folder, names, now_seconds)
            }
            Source::Memory(pem) => Ok(pem.clone()),
        }
    }
}

/// The certificate used in handshakes now.
#[derive(Debug)]
pub(super) struct Served(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Served {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read()))
    }
}

/// Keeps the served certificate up to date.
pub(crate) struct Renewal {
    source: Source,
    served: Arc<Served>,
}

impl Renewal {
    pub(super) fn new(source: Source, now_seconds: u64) -> Result<Renewal> {
        let first = source.certificate(now_seconds)?.certified()?;
        Ok(Renewal { source, served: Arc::new(Served(RwLock::new(Arc::new(first)))) })
    }

    pub(super) fn served(&self) -> Arc<Served> {
        Arc::clone(&self.served)
    }

    /// Checks the source; returns whether its certificate is new. An invalid one is not served: the old one stays.
    pub(super) fn look(&self, now_seconds: u64) -> Result<bool> {
        let found = self.source.certificate(now_seconds)?.certified()?;
        let is_new = found.cert != self.served.0.read().cert;
        if is_new {
            *self.served.0.write() = Arc::new(found);
        }
        Ok(is_new)
    }

    /// Checks periodically, and when a signal requests it. Runs until dropped.
    pub(crate) async fn keep(self, clock: Arc<dyn WallClock>, mut hangup: Signal) {
        let this = Arc::new(self);
        loop {
            let _ = timeout(LOOK_PAUSE, hangup.recv()).await;
            let (worker, now_seconds) = (Arc::clone(&this), clock.wall().seconds());
            match spawn_blocking(move || worker.look(now_seconds)).await {
                Ok(Ok(true)) => tracing::info!("serving a new certificate to new connections"),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => tracing::error!("the certificate is unchanged: {error:#}"),
                Err(error) => tracing::error!("reloading the certificate failed: {error}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const NOW: u64 = 1_800_000_000;
    const DAY_SECONDS: u64 = 24 * 60 * 60;

    fn names() -> Vec<String> {
        vec!["localhost".to_owned()]
    }

    fn write(folder: &Path, pem: &Pem) {
        fs::write(folder.join("c.pem"), &pem.certificate).unwrap();
        fs::write(folder.join("k.pem"), &pem.key).unwrap();
    }

    fn leaf(renewal: &Renewal) -> Vec<u8> {
        renewal.served.0.read().cert[0].to_vec()
    }

    #[test]
    fn a_certificate_of_ours_is_renewed_before_it_ends() {
        let data = tempfile::tempdir().unwrap();
        let source = Source::Folder { folder: data.path().join("tls"), names: names() };
        let renewal = Renewal::new(source, NOW).unwrap();
        let first = leaf(&renewal);
        assert!(!renewal.look(NOW + 700 * DAY_SECONDS).unwrap());
        assert_eq!(leaf(&renewal), first);
        assert!(renewal.look(NOW + 780 * DAY_SECONDS).unwrap());
        assert_ne!(leaf(&renewal), first);
    }

    #[test]
    fn the_operators_new_files_are_served_and_broken_ones_are_not() {
        let data = tempfile::tempdir().unwrap();
        let authority = Authority::made(NOW).unwrap();
        let [first, second] = [(); 2].map(|()| authority.certificate(&names(), NOW).unwrap());
        write(data.path(), &first);
        let source = Source::Files { certificate: data.path().join("c.pem"), key: data.path().join("k.pem") };
        let renewal = Renewal::new(source, NOW).unwrap();
        let old = leaf(&renewal);
        assert!(!renewal.look(NOW).unwrap());
        // Between the two files of a renewal: a certificate and a key that do not match.
        fs::write(data.path().join("c.pem"), &second.certificate).unwrap();
        let refusal = format!("{:#}", renewal.look(NOW).unwrap_err());
        assert!(refusal.contains("c.pem"), "{refusal}");
        assert_eq!(leaf(&renewal), old);
        write(data.path(), &second);
        assert!(renewal.look(NOW).unwrap());
        assert_ne!(leaf(&renewal), old);
    }
}
