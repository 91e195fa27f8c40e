//! The server's certificate: the operator's, or a self-signed one that is made at the first start and kept.
//!
//! A self-signed certificate proves nothing to somebody who has never seen it. Clients that should check it are given the
//! file `tls/certificate.pem` of the data directory as their authority; a store in memory makes a new one at each start.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::{Certificate, Mongo, Place};

const FOLDER: &str = "tls";
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";

/// What TLS needs, for every port that speaks it.
pub(crate) fn config(source: &Certificate, place: &Place, names: &[String]) -> Result<Arc<ServerConfig>> {
    let pem = match (source, place) {
        (Certificate::Given { certificate, key }, _) => Pem::read(certificate, key)?,
        (Certificate::Own, Place::Directory(data)) => Pem::kept(&data.join(FOLDER), names)?,
        (Certificate::Own, Place::Memory) => Pem::made(names)?,
    };
    pem.config().map(Arc::new)
}

/// The names under which clients may know this server.
pub(crate) fn names(mongo: Option<&Mongo>) -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let advertised =
        mongo.and_then(|mongo| mongo.advertise.as_deref()).and_then(|name| name.rsplit_once(':'));
    let address = mongo.map(|mongo| mongo.listen.ip()).filter(|address| !address.is_unspecified());
    names.push(machine.trim().to_owned());
    names.extend(advertised.map(|(host, _)| host.trim_matches(['[', ']']).to_owned()));
    names.extend(address.map(|address| address.to_string()));
    let mut unique: Vec<String> = Vec::new();
    for name in names {
        if !name.is_empty() && !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique
}

/// A certificate and its key as text.
struct Pem {
    certificate: String,
    key: String,
    /// Where they came from, for complaints.
    source: String,
}

impl Pem {
    fn read(certificate: &Path, key: &Path) -> Result<Pem> {
        let text = |path: &Path| {
            fs::read_to_string(path).with_context(|| format!("cannot read '{}' for TLS", path.display()))
        };
        let source = format!("'{}' and '{}'", certificate.display(), key.display());
        Ok(Pem { certificate: text(certificate)?, key: text(key)?, source })
    }

    /// The one in the folder, made if there is none.
    fn kept(folder: &Path, names: &[String]) -> Result<Pem> {
        let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
        if certificate.exists() && key.exists() {
            return Pem::read(&certificate, &key);
        }
        let pem = Pem::made(names)?;
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(folder)?;
            let private =
                fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&key);
            private?.write_all(pem.key.as_bytes())?;
            // The certificate comes last: if it is there, so is the key.
            fs::write(&certificate, &pem.certificate)
        };
        write().with_context(|| format!("cannot keep a certificate in '{}'", folder.display()))?;
        Ok(pem)
    }

    fn made(names: &[String]) -> Result<Pem> {
        let make = || -> Result<Pem, rcgen::Error> {
            let key = KeyPair::generate()?;
            let mut params = CertificateParams::new(names)?;
            params.distinguished_name.push(DnType::CommonName, "bolide");
            params.is_ca = IsCa::ExplicitNoCa;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            params.use_authority_key_identifier_extension = true;
            let certificate = armoured("CERTIFICATE", params.self_signed(&key)?.der());
            Ok(Pem {
                certificate,
                key: armoured("PRIVATE KEY", &key.serialize_der()),
                source: "the server's own certificate".to_owned(),
            })
        };
        make().context("cannot make a certificate")
    }

    fn config(&self) -> Result<ServerConfig> {
        let complaint = || format!("{} do not make a certificate for TLS", self.source);
        let chain: Vec<_> = CertificateDer::pem_slice_iter(self.certificate.as_bytes())
            .collect::<Result<_, _>>()
            .with_context(complaint)?;
        if chain.is_empty() {
            bail!("{}: there is no certificate", complaint());
        }
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).with_context(complaint)?;
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .context("TLS is not available")?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .with_context(complaint)
    }
}

/// Bytes as PEM.
fn armoured(label: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line) + "\n");
    format!("-----BEGIN {label}-----\n{}-----END {label}-----\n", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_made_once_and_kept() {
        let data = tempfile::tempdir().unwrap();
        let place = Place::Directory(data.path().to_owned());
        let names = names(None);
        assert!(names.contains(&"localhost".to_owned()) && names.contains(&"::1".to_owned()));
        config(&Certificate::Own, &place, &names).unwrap();
        let kept = fs::read_to_string(data.path().join(FOLDER).join(CERTIFICATE)).unwrap();
        config(&Certificate::Own, &place, &names).unwrap();
        assert_eq!(fs::read_to_string(data.path().join(FOLDER).join(CERTIFICATE)).unwrap(), kept);
        config(&Certificate::Own, &Place::Memory, &names).unwrap();
    }

    #[test]
    fn files_that_are_no_certificate_are_named() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("c.pem");
        let given = Certificate::Given { certificate: path.clone(), key: path.clone() };
        let refusal = |given: &Certificate| format!("{:#}", config(given, &Place::Memory, &[]).unwrap_err());
        assert!(refusal(&given).contains("c.pem"));
        fs::write(&path, "nonsense").unwrap();
        assert!(refusal(&given).contains("c.pem"));
    }
}
