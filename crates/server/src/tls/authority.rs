//! The server's own certificate authority: a root that clients trust once, and certificates that it signs as names and
//! dates require.
//!
//! ```text
//!   tls/root.pem         the root, public; created once
//!   tls/root-key.pem     its private key, for the owner only: its holder can impersonate any server to these clients
//!   tls/certificate.pem  the server's certificate, followed by the root
//!   tls/key.pem          its private key; the first line lists the names
//! ```
//!
//! This module does not parse X.509: whether a certificate is acceptable is decided by the same code that Rust clients
//! use. The root is not parsed either: its name follows from its key, so that the signer always matches the file.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};

use super::{Pem, armoured};
use crate::files::{self, Readers};
use crate::host_name;

pub(super) const ROOT: &str = "root.pem";
const ROOT_KEY: &str = "root-key.pem";
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";

const DAY_SECONDS: u64 = 24 * 60 * 60;
const ROOT_DAYS: u64 = 20 * 365;
/// The lifetime of a certificate. Apple's systems accept none longer than 825 days.
const CERTIFICATE_DAYS: u64 = 800;
/// The remaining lifetime below which a certificate is renewed.
const RENEWAL_DAYS: u64 = 30;

/// A certificate authority.
pub(super) struct Authority {
    key: KeyPair,
    root: CertificateDer<'static>,
}

impl Authority {
    /// Creates an authority.
    pub(super) fn made(now_seconds: u64) -> Result<Self> {
        let make = || -> Result<_, rcgen::Error> {
            let key = KeyPair::generate()?;
            let mut params = root_params(&key);
            valid(&mut params, now_seconds, ROOT_DAYS);
            let root = params.self_signed(&key)?.der().clone();
            Ok(Self { key, root })
        };
        make().context("cannot create a root certificate")
    }

    /// Loads the authority in the folder, or creates one there.
    pub(super) fn kept(folder: &Path, now_seconds: u64) -> Result<Self> {
        let (root, key) = (folder.join(ROOT), folder.join(ROOT_KEY));
        if root.exists() && key.exists() {
            return Self::read(&root, &key);
        }
        let made = Self::made(now_seconds)?;
        files::create_private_directory(folder).context("cannot create the folder")?;
        let secret = armoured("PRIVATE KEY", made.key.serialized_der());
        // The root comes last: if it exists, so does its key.
        files::replace(&key, secret.as_bytes(), Readers::Owner)
            .and_then(|()| files::replace(&root, made.root().as_bytes(), Readers::All))
            .context("cannot save a root certificate")?;
        Ok(made)
    }

    fn read(root: &Path, key: &Path) -> Result<Self> {
        let text = |path: &Path| {
            fs::read_to_string(path).with_context(|| format!("cannot read '{}'", path.display()))
        };
        let remedy = || {
            format!(
                "'{}' and '{}' are no root and its key; without them new ones are made",
                root.display(),
                key.display()
            )
        };
        let certificate = CertificateDer::from_pem_slice(text(root)?.as_bytes()).with_context(remedy)?;
        let private = PrivateKeyDer::from_pem_slice(text(key)?.as_bytes()).with_context(remedy)?;
        let key = KeyPair::try_from(&private).with_context(remedy)?;
        Ok(Self { key, root: certificate })
    }

    /// Returns the root as PEM.
    pub(super) fn root(&self) -> String {
        armoured("CERTIFICATE", &self.root)
    }

    /// Returns the certificate in the folder, or a new one if that one has other names, comes from another authority or
    /// is about to expire.
    pub(super) fn certificate_in(&self, folder: &Path, names: &[String], now_seconds: u64) -> Result<Pem> {
        let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
        if let Ok(pem) = Pem::read(&certificate, &key)
            && self.is_good(&pem, names, now_seconds + RENEWAL_DAYS * DAY_SECONDS)
        {
            return Ok(pem);
        }
        let pem = self.certificate(names, now_seconds)?;
        files::replace(&key, pem.key.as_bytes(), Readers::Owner)
            .and_then(|()| files::replace(&certificate, pem.certificate.as_bytes(), Readers::All))
            .context("cannot save a certificate")?;
        Ok(pem)
    }

    /// Issues a certificate.
    pub(super) fn certificate(&self, names: &[String], now_seconds: u64) -> Result<Pem> {
        let make = || -> Result<Pem, rcgen::Error> {
            let key = KeyPair::generate()?;
            let mut params = CertificateParams::new(names)?;
            params.distinguished_name.push(DnType::CommonName, "bolide");
            params.is_ca = IsCa::ExplicitNoCa;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            params.use_authority_key_identifier_extension = true;
            valid(&mut params, now_seconds, CERTIFICATE_DAYS);
            let certificate = params.signed_by(&key, &Issuer::new(root_params(&self.key), &self.key))?;
            Ok(Pem {
                certificate: armoured("CERTIFICATE", certificate.der()) + &self.root(),
                key: heading(names) + &armoured("PRIVATE KEY", key.serialized_der()),
                source: "the server's own certificate".to_owned(),
            })
        };
        make().context("cannot create a certificate")
    }

    /// Returns whether clients that trust the root would accept it at that time under each of the names, and it has no
    /// others.
    fn is_good(&self, pem: &Pem, names: &[String], seconds: u64) -> bool {
        let then = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let check = || {
            let mut roots = RootCertStore::empty();
            roots.add(self.root.clone()).ok()?;
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().ok()?;
            let chain = pem.chain().ok()?;
            let accepts = |name: &String| {
                let name = host_name::parse(name)?;
                verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], then).ok()
            };
            names.iter().all(|name| accepts(name).is_some()).then_some(())
        };
        pem.key.starts_with(&heading(names)) && pem.certified().is_ok() && check().is_some()
    }
}

/// Returns the first line of a key file.
fn heading(names: &[String]) -> String {
    format!("# {}\n", names.join(", "))
}

/// Returns the parameters of the root for a key. Its name distinguishes roots that a client trusts side by side.
fn root_params(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    let digits: Vec<String> =
        params.key_identifier(key).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name.push(DnType::CommonName, format!("Bolide root {}", digits.concat()));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params
}

/// From a day ago, so that clocks may differ.
fn valid(params: &mut CertificateParams, now_seconds: u64, days: u64) {
    let today = now_seconds / DAY_SECONDS;
    let date = |day: u64| {
        let (year, month, day) = calendar::date_of(day as i64);
        date_time_ymd(year as i32, month as u8, day as u8)
    };
    params.not_before = date(today.saturating_sub(1));
    params.not_after = date(today + days);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn names(extra: &[&str]) -> Vec<String> {
        ["localhost", "127.0.0.1", "::1"].iter().chain(extra).map(|name| (*name).to_owned()).collect()
    }

    /// Returns the certificate served by a start at that time, and its root.
    fn start(folder: &Path, names: &[String], now: u64) -> (String, String) {
        let authority = Authority::kept(folder, now).unwrap();
        let pem = authority.certificate_in(folder, names, now).unwrap();
        assert!(authority.is_good(&pem, names, now), "clients accept what is served");
        (pem.certificate, authority.root())
    }

    #[test]
    fn both_are_made_once_and_only_the_owner_reads_the_keys() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("tls");
        let first = start(&folder, &names(&[]), NOW);
        assert_eq!(start(&folder, &names(&[]), NOW + DAY_SECONDS), first);
        assert!(first.0.ends_with(&first.1), "a client that trusts certificate.pem trusts the root with it");
        let mode = |name: &str| fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(KEY), mode(ROOT_KEY)), (0o600, 0o600));
    }

    #[test]
    fn other_names_or_the_end_in_sight_make_a_new_certificate_under_the_same_root() {
        let data = tempfile::tempdir().unwrap();
        let (first, root) = start(data.path(), &names(&[]), NOW);
        let (more, same) = start(data.path(), &names(&["db.example.org"]), NOW);
        assert!(more != first && same == root);
        let (fewer, same) = start(data.path(), &names(&[]), NOW);
        assert!(fewer != more && same == root, "a name that is taken back is not served any longer");
        let late = NOW + (CERTIFICATE_DAYS - RENEWAL_DAYS - 1) * DAY_SECONDS;
        assert_eq!(start(data.path(), &names(&[]), late).0, fewer);
        let (renewed, same) = start(data.path(), &names(&[]), late + 2 * DAY_SECONDS);
        assert!(renewed != fewer && same == root);
    }

    #[test]
    fn a_certificate_and_a_key_that_do_not_belong_together_are_replaced() {
        let data = tempfile::tempdir().unwrap();
        let (first, root) = start(data.path(), &names(&[]), NOW);
        let other = Authority::made(NOW).unwrap().certificate(&names(&[]), NOW).unwrap();
        fs::write(data.path().join(KEY), &other.key).unwrap();
        let (second, same) = start(data.path(), &names(&[]), NOW);
        assert!(second != first && same == root);
        fs::write(data.path().join(CERTIFICATE), &other.certificate).unwrap();
        fs::write(data.path().join(KEY), &other.key).unwrap();
        assert_ne!(start(data.path(), &names(&[]), NOW).0, other.certificate, "another authority's");
    }

    #[test]
    fn a_self_signed_certificate_of_older_data_makes_way() {
        let data = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let old = CertificateParams::new(names(&[])).unwrap().self_signed(&key).unwrap();
        fs::write(data.path().join(CERTIFICATE), armoured("CERTIFICATE", old.der())).unwrap();
        fs::write(data.path().join(KEY), armoured("PRIVATE KEY", key.serialized_der())).unwrap();
        let (now, root) = start(data.path(), &names(&[]), NOW);
        assert!(now.ends_with(&root));
    }

    #[test]
    fn a_wrong_name_and_a_wrong_time_are_not_good() {
        let authority = Authority::made(NOW).unwrap();
        let pem = authority.certificate(&names(&["*.example.net"]), NOW).unwrap();
        assert!(authority.is_good(&pem, &names(&["*.example.net"]), NOW));
        assert!(!authority.is_good(&pem, &names(&["elsewhere.org"]), NOW));
        assert!(!authority.is_good(&pem, &names(&["*.example.net"]), NOW - 3 * DAY_SECONDS));
        assert!(!authority.is_good(&pem, &names(&["*.example.net"]), NOW + 801 * DAY_SECONDS));
        assert!(!Authority::made(NOW).unwrap().is_good(&pem, &names(&["*.example.net"]), NOW));
    }

    #[test]
    fn a_broken_root_is_named_with_its_remedy() {
        let data = tempfile::tempdir().unwrap();
        start(data.path(), &names(&[]), NOW);
        fs::write(data.path().join(ROOT_KEY), "nonsense").unwrap();
        let refusal = format!("{:#}", Authority::kept(data.path(), NOW).err().unwrap());
        assert!(refusal.contains("root-key.pem") && refusal.contains("new ones are made"), "{refusal}");
    }
}
