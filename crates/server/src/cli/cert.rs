//! `bolide cert`: the root certificate that clients should trust, and how to install it on each platform.

use std::process::ExitCode;

use anyhow::Result;

use crate::config;
use crate::settings::Settings;
use crate::tls::{self, Root};

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// Print the certificate itself, in PEM
    #[arg(long)]
    pem: bool,
}

/// A platform and the commands that make it trust a file; `{root}` stands for the root.
struct Platform {
    name: &'static str,
    how: &'static [&'static str],
}

const PLATFORMS: &[Platform] = &[
    Platform {
        name: "Debian, Ubuntu",
        how: &["sudo cp {root} /usr/local/share/ca-certificates/bolide.crt", "sudo update-ca-certificates"],
    },
    Platform {
        name: "Fedora, RHEL",
        how: &["sudo cp {root} /etc/pki/ca-trust/source/anchors/bolide.pem", "sudo update-ca-trust"],
    },
    Platform {
        name: "macOS",
        how: &["sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain {root}"],
    },
    Platform { name: "Windows (PowerShell as administrator)", how: &["certutil -addstore -f Root {root}"] },
    Platform {
        name: "Java",
        how: &["keytool -importcert -noprompt -cacerts -storepass changeit -alias bolide -file {root}"],
    },
    Platform { name: "Node.js", how: &["export NODE_EXTRA_CA_CERTS={root}"] },
    Platform { name: "Python", how: &["export REQUESTS_CA_BUNDLE={root} SSL_CERT_FILE={root}"] },
    Platform {
        name: ".NET",
        how: &["trusts what the system trusts: see above; on Linux also: export SSL_CERT_FILE={root}"],
    },
    Platform {
        name: "MongoDB drivers and mongosh",
        how: &["tlsCAFile={root} in the connection string, or --tlsCAFile {root}"],
    },
    Platform { name: "curl", how: &["curl --cacert {root} https://localhost:8081/alive"] },
];

/// Prints the root; changes nothing.
pub(crate) fn run(request: &Request, settings: &Settings) -> Result<ExitCode> {
    let config = config::resolve(settings)?;
    let root = tls::root(&config.certificate, &config.location)?;
    if request.pem {
        print!("{}", root.pem);
    } else {
        print!("{}", instructions(&root));
    }
    Ok(ExitCode::SUCCESS)
}

fn instructions(root: &Root) -> String {
    let path = root.path.as_deref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let path = path.map(|path| path.display().to_string()).unwrap_or_default();
    let mut text = format!(
        "The root certificate is {path}\nA running server serves it as /_explorer/emulator.pem, without a key\n"
    );
    let plain = path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let path = if plain { path } else { format!("'{path}'") };
    for platform in PLATFORMS {
        text.extend(["\n", platform.name, "\n"]);
        for line in platform.how {
            text.extend(["    ", &line.replace("{root}", &path), "\n"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_platform_is_told_of_the_file() {
        let root = Root { pem: String::new(), path: Some("/my data/tls/root.pem".into()) };
        let text = instructions(&root);
        assert!(text.contains(" SSL_CERT_FILE='/my data/tls/root.pem'\n"), "{text}");
        for platform in PLATFORMS {
            let (_, part) = text.split_once(platform.name).unwrap();
            let part = part.split("\n\n").next().unwrap();
            assert!(part.contains("/my data/tls/root.pem") && !part.contains("{root}"), "{part}");
        }
    }
}
