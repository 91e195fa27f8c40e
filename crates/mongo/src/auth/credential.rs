//! What SCRAM derives from a password (RFC 5802, RFC 7677), in MongoDB's two variants: all that is kept of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::{Document, DocumentRef, ValueRef};
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// How a client proves that it knows a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mechanism {
    Sha1,
    Sha256,
}

impl Mechanism {
    /// Both, in the order in which they are listed.
    pub(crate) const ALL: [Mechanism; 2] = [Mechanism::Sha1, Mechanism::Sha256];

    pub(crate) fn from_name(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Mechanism::Sha1 => "SCRAM-SHA-1",
            Mechanism::Sha256 => "SCRAM-SHA-256",
        }
    }

    /// Returns how often a password is hashed; MongoDB's own figures.
    pub(crate) fn iterations(self) -> u32 {
        match self {
            Mechanism::Sha1 => 10_000,
            Mechanism::Sha256 => 15_000,
        }
    }

    pub(crate) fn salt_bytes(self) -> usize {
        match self {
            Mechanism::Sha1 => 16,
            Mechanism::Sha256 => 28,
        }
    }

    pub(super) fn hash(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::Sha1 => Sha1::digest(bytes).to_vec(),
            Mechanism::Sha256 => Sha256::digest(bytes).to_vec(),
        }
    }

    pub(super) fn hmac(self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::Sha1 => hmac::<Hmac<Sha1>>(key, bytes),
            Mechanism::Sha256 => hmac::<Hmac<Sha256>>(key, bytes),
        }
    }

    /// Returns the password as it goes into the derivation.
    fn prepare(self, user: &str, password: &str) -> Option<Vec<u8>> {
        match self {
            Mechanism::Sha1 => {
                let digest = Md5::digest(format!("{user}:mongo:{password}"));
                Some(hex(&digest).into_bytes())
            }
            Mechanism::Sha256 => Some(stringprep::saslprep(password).ok()?.as_bytes().to_vec()),
        }
    }

    /// PBKDF2 with an output of one block.
    fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        match self {
            Mechanism::Sha1 => pbkdf2::<Hmac<Sha1>>(password, salt, iterations),
            Mechanism::Sha256 => pbkdf2::<Hmac<Sha256>>(password, salt, iterations),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn keyed<M: Mac + KeyInit>(key: &[u8]) -> M {
    <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length")
}

fn hmac<M: Mac + KeyInit>(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    keyed::<M>(key).chain_update(bytes).finalize().into_bytes().to_vec()
}

fn pbkdf2<M: Mac + KeyInit + Clone>(password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
    let mac = keyed::<M>(password);
    let mut block = mac.clone().chain_update(salt).chain_update(1_u32.to_be_bytes()).finalize().into_bytes();
    let mut sum = block.to_vec();
    for _ in 1..iterations {
        block = mac.clone().chain_update(&block).finalize().into_bytes();
        sum.iter_mut().zip(&block).for_each(|(sum, byte)| *sum ^= byte);
    }
    sum
}

/// What is kept of a password for one mechanism.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    pub(super) iterations: u32,
    pub(super) salt: Vec<u8>,
    pub(super) stored_key: Vec<u8>,
    pub(super) server_key: Vec<u8>,
}

impl Credential {
    /// Derives it; none if the password has characters that no password may have.
    pub(crate) fn derive(
        mechanism: Mechanism,
        user: &str,
        password: &str,
        salt: Vec<u8>,
        iterations: u32,
    ) -> Option<Credential> {
        let salted = mechanism.salted(&mechanism.prepare(user, password)?, &salt, iterations);
        let client_key = mechanism.hmac(&salted, b"Client Key");
        Some(Credential {
            iterations,
            salt,
            stored_key: mechanism.hash(&client_key),
            server_key: mechanism.hmac(&salted, b"Server Key"),
        })
    }

    fn to_document(&self) -> Document {
        Document::new()
            .with("iterationCount", self.iterations as i32)
            .with("salt", STANDARD.encode(&self.salt))
            .with("storedKey", STANDARD.encode(&self.stored_key))
            .with("serverKey", STANDARD.encode(&self.server_key))
    }

    fn parse(document: DocumentRef<'_>) -> Option<Credential> {
        let bytes = |name| STANDARD.decode(document.get(name)?.as_str()?).ok();
        let Some(ValueRef::Int32(iterations)) = document.get("iterationCount") else { return None };
        Some(Credential {
            iterations: u32::try_from(iterations).ok()?,
            salt: bytes("salt")?,
            stored_key: bytes("storedKey")?,
            server_key: bytes("serverKey")?,
        })
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Credential(..)")
    }
}

/// What is kept of a user's password, for each mechanism that the user may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Credentials(Vec<(Mechanism, Credential)>);

impl Credentials {
    /// Derives all that are wanted, with salts from `salt`.
    pub(crate) fn derive(
        user: &str,
        password: &str,
        mechanisms: &[Mechanism],
        mut salt: impl FnMut(Mechanism) -> Vec<u8>,
    ) -> Option<Credentials> {
        let derive = |mechanism: &Mechanism| {
            let credential =
                Credential::derive(*mechanism, user, password, salt(*mechanism), mechanism.iterations())?;
            Some((*mechanism, credential))
        };
        mechanisms.iter().map(derive).collect::<Option<_>>().map(Credentials)
    }

    pub(crate) fn get(&self, mechanism: Mechanism) -> Option<&Credential> {
        self.0.iter().find(|(known, _)| *known == mechanism).map(|(_, credential)| credential)
    }

    pub(crate) fn mechanisms(&self) -> Vec<Mechanism> {
        self.0.iter().map(|(mechanism, _)| *mechanism).collect()
    }

    /// Only these mechanisms, all of which must be there already.
    pub(crate) fn only(&self, mechanisms: &[Mechanism]) -> Option<Credentials> {
        mechanisms
            .iter()
            .map(|wanted| Some((*wanted, self.get(*wanted)?.clone())))
            .collect::<Option<_>>()
            .map(Credentials)
    }

    pub(crate) fn to_document(&self) -> Document {
        self.0.iter().map(|(mechanism, credential)| (mechanism.name(), credential.to_document())).collect()
    }

    pub(crate) fn parse(document: DocumentRef<'_>) -> Credentials {
        let parse = |mechanism: Mechanism| {
            let stored = document.get(mechanism.name())?.as_document()?;
            Some((mechanism, Credential::parse(stored)?))
        };
        Credentials(Mechanism::ALL.into_iter().filter_map(parse).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 6070 for SHA-1, and the one of RFC 7677 for the derived keys of SHA-256.
    #[test]
    fn derivation_follows_the_published_examples() {
        let sha1 = |iterations| hex(&pbkdf2::<Hmac<Sha1>>(b"password", b"salt", iterations));
        assert_eq!(sha1(1), "0c60c80f961f0e71f3a9b524af6012062fe037a6");
        assert_eq!(sha1(4096), "4b007901b765489abead49d926f721d065a429c1");
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let credential = Credential::derive(Mechanism::Sha256, "user", "pencil", salt, 4096).unwrap();
        assert_eq!(STANDARD.encode(&credential.stored_key), "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=");
        assert_eq!(STANDARD.encode(&credential.server_key), "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=");
    }

    #[test]
    fn what_is_stored_reads_back_and_holds_no_password() {
        let credentials = Credentials::derive("u", "secret", &Mechanism::ALL, |_| vec![1; 16]).unwrap();
        let document = credentials.to_document();
        assert_eq!(Credentials::parse(document.view()), credentials);
        assert!(!format!("{document:?} {credentials:?}").contains("secret"));
        assert_eq!(credentials.only(&[Mechanism::Sha256]).unwrap().mechanisms(), [Mechanism::Sha256]);
        assert!(Credentials::derive("u", "\u{7}", &[Mechanism::Sha256], |_| vec![1; 16]).is_none());
    }
}
