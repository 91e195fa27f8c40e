//! TLS: the operator's certificate, or one signed by the server's own authority, for the names under which clients may
//! reach this server.
//!
//! Clients trust the authority's root, `tls/root.pem` in the data directory, which stays as long as the data; the
//! certificate itself is renewed when names change or it is about to expire, also while the server runs. A store in
//! memory has a new authority at each start.

mod authority;
mod served;

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::config::{Certificate, Config};
use crate::data_location::DataLocation;
use crate::host_name;
use authority::Authority;
pub(crate) use served::Renewal;
use served::{Served, Source};

/// The folder below the data directory.
const FOLDER: &str = "tls";

/// The protocols offered inside TLS on the NoSQL port, in order of preference. Clients of the other port negotiate
/// none.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The TLS configuration of all ports.
pub(crate) struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) root: Root,
    pub(crate) renewal: Renewal,
}

/// The root that clients should trust.
pub(crate) struct Root {
    pub(crate) pem: String,
    /// Its path; `None` for a store in memory.
    pub(crate) path: Option<PathBuf>,
}

/// Reads or creates certificates. They are issued by real time, whatever a test clock shows.
pub(crate) fn open(config: &Config, now_seconds: u64) -> Result<Tls> {
    let names = names(config);
    let (source, root) = match (&config.certificate, &config.location) {
        (Certificate::Given { certificate, key }, _) => {
            let root = Root { pem: Pem::read(certificate, key)?.last()?, path: Some(certificate.clone()) };
            (Source::Files { certificate: certificate.clone(), key: key.clone() }, root)
        }
        (Certificate::Own, DataLocation::Directory(data)) => {
            let folder = data.join(FOLDER);
            let authority = Authority::kept(&folder, now_seconds)
                .with_context(|| format!("in '{}'", folder.display()))?;
            let root = Root { pem: authority.root(), path: Some(folder.join(authority::ROOT)) };
            (Source::Folder { folder, names }, root)
        }
        (Certificate::Own, DataLocation::Memory) => {
            let authority = Authority::made(now_seconds)?;
            let made = authority.certificate(&names, now_seconds)?;
            (Source::Memory(made), Root { pem: authority.root(), path: None })
        }
    };
    let renewal = Renewal::new(source, now_seconds)?;
    Ok(Tls { config: Arc::new(config_for(renewal.served())?), root, renewal })
}

fn config_for(served: Arc<Served>) -> Result<ServerConfig> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .context("TLS is not available")?
        .with_no_client_auth()
        .with_cert_resolver(served);
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

/// Returns the root that clients should trust, as far as it exists without a server.
pub(crate) fn root(certificate: &Certificate, location: &DataLocation) -> Result<Root> {
    match (certificate, location) {
        (Certificate::Given { certificate, key }, _) => {
            Ok(Root { pem: Pem::read(certificate, key)?.last()?, path: Some(certificate.clone()) })
        }
        (Certificate::Own, DataLocation::Directory(data)) => {
            let path = data.join(FOLDER).join(authority::ROOT);
            let pem = fs::read_to_string(&path).with_context(|| {
                format!(
                    "there is no root certificate '{}' yet: the first start of the server creates it",
                    path.display()
                )
            })?;
            Ok(Root { pem, path: Some(path) })
        }
        (Certificate::Own, DataLocation::Memory) => bail!(
            "a store in memory has a new root certificate at each start: a running server gives it as \
             /_explorer/emulator.pem"
        ),
    }
}

/// Returns the names under which clients may reach this server.
fn names(config: &Config) -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    names.extend(Some(machine.trim().to_owned()).filter(|name| host_name::is_valid(name)));
    let mongo = config.mongo.as_ref();
    let advertised =
        [mongo.and_then(|mongo| mongo.advertise.as_deref()), config.direct.public_address.as_deref()];
    let advertised = advertised.into_iter().flatten().filter_map(|name| name.rsplit_once(':'));
    names.extend(advertised.map(|(host, _)| host.trim_matches(['[', ']']).to_owned()));
    let addresses = [Some(config.listen), mongo.map(|mongo| mongo.listen)].into_iter().flatten();
    let addresses = addresses.map(|address: SocketAddr| address.ip());
    names.extend(
        addresses.filter(|address: &IpAddr| !address.is_unspecified()).map(|address| address.to_string()),
    );
    names.extend(config.tls_names.iter().cloned());
    let mut unique: Vec<String> = Vec::new();
    for name in names {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique
}

/// A certificate with its chain, and its key, as text.
#[derive(Clone)]
struct Pem {
    certificate: String,
    key: String,
    /// The source, for messages.
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

    fn complaint(&self) -> String {
        format!("{} do not make a certificate for TLS", self.source)
    }

    /// Returns the certificates, that of the server first.
    fn chain(&self) -> Result<Vec<CertificateDer<'static>>> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(self.certificate.as_bytes())
            .collect::<Result<_, _>>()
            .with_context(|| self.complaint())?;
        if chain.is_empty() {
            bail!("{}: there is no certificate", self.complaint());
        }
        Ok(chain)
    }

    /// Returns the last certificate of the chain, the closest to a root that the operator provides.
    fn last(&self) -> Result<String> {
        let chain = self.chain()?;
        Ok(chain.last().map(|last| armoured("CERTIFICATE", last)).unwrap_or_default())
    }

    /// Returns the key and certificate for handshakes, which must match.
    fn certified(&self) -> Result<CertifiedKey> {
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).with_context(|| self.complaint())?;
        let provider = rustls::crypto::ring::default_provider();
        CertifiedKey::from_der(self.chain()?, key, &provider).with_context(|| self.complaint())
    }
}

/// Encodes bytes as PEM.
fn armoured(label: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line) + "\n");
    format!("-----BEGIN {label}-----\n{}-----END {label}-----\n", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::settings::tests::layer;

    const NOW: u64 = 1_800_000_000;

    fn config(pairs: &[(&'static str, &str)]) -> Config {
        crate::config::resolve(&Settings::new(vec![layer("the command line", pairs)]).unwrap()).unwrap()
    }

    #[test]
    fn the_names_are_those_that_clients_use() {
        let config = config(&[
            ("listen", "192.0.2.7:8081"),
            ("key", "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0czE="),
            ("mongo-advertise", "db.example.org:10255"),
            ("public-address", "direct.example.org:8081"),
            ("tls-name", "cosmos.local, *.example.net,192.0.2.9"),
        ]);
        let names = names(&config);
        for name in [
            "localhost",
            "127.0.0.1",
            "::1",
            "192.0.2.7",
            "db.example.org",
            "direct.example.org",
            "cosmos.local",
            "*.example.net",
            "192.0.2.9",
        ] {
            assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
        }
        assert_eq!(names.iter().filter(|name| *name == "127.0.0.1").count(), 1);
    }

    #[test]
    fn a_store_in_memory_has_a_certificate_that_its_root_vouches_for() {
        let tls = open(&config(&[("memory", "true")]), NOW).unwrap();
        assert!(tls.root.path.is_none() && tls.root.pem.starts_with("-----BEGIN CERTIFICATE-----"));
        assert_eq!(tls.config.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
        assert!(root(&Certificate::Own, &DataLocation::Memory).is_err());
    }

    #[test]
    fn files_that_are_no_certificate_are_named() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("c.pem");
        let refusal = || {
            let path = path.to_str().unwrap();
            let config = config(&[("memory", "true"), ("tls-cert", path), ("tls-key", path)]);
            format!("{:#}", open(&config, NOW).err().unwrap())
        };
        assert!(refusal().contains("c.pem"));
        fs::write(&path, "nonsense").unwrap();
        assert!(refusal().contains("c.pem"));
    }
}
