//! The server's half of a SCRAM exchange, without anything around it.
//!
//! ```text
//! client  n,,n=user,r=nonce
//! server  r=nonce+ours,s=salt,i=iterations
//! client  c=biws,r=nonce+ours,p=proof
//! server  v=signature
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use super::credential::{Credential, Mechanism};

/// The longest message of a client; a user's name and a nonce fit many times.
const MESSAGE_BYTES_MAX: usize = 4096;
/// What a proof covers says which channel was bound; none ever is.
const NO_BINDING: [&str; 2] = ["biws", "eSws"];

/// A client's first message.
#[derive(Debug)]
pub(super) struct First {
    pub(super) user: String,
    nonce: String,
    /// The message without its beginning, as the proof covers it.
    bare: String,
    /// The base64 of that beginning, which the client must repeat.
    binding: &'static str,
}

impl First {
    /// Reads it; none if it is not one.
    pub(super) fn parse(payload: &[u8]) -> Option<First> {
        if payload.len() > MESSAGE_BYTES_MAX {
            return None;
        }
        let text = std::str::from_utf8(payload).ok()?;
        let (bare, binding) = match (text.strip_prefix("n,,"), text.strip_prefix("y,,")) {
            (Some(bare), _) => (bare, NO_BINDING[0]),
            (None, Some(bare)) => (bare, NO_BINDING[1]),
            (None, None) => return None,
        };
        let mut parts = bare.split(',');
        let user = unescape(parts.next()?.strip_prefix("n=")?)?;
        let nonce = parts.next()?.strip_prefix("r=")?;
        if nonce.is_empty() || user.is_empty() {
            return None;
        }
        Some(First { user, nonce: nonce.to_owned(), bare: bare.to_owned(), binding })
    }
}

/// Decodes a user name, in which a comma is `=2C` and an equals sign `=3D`; nothing else may follow an equals sign.
fn unescape(name: &str) -> Option<String> {
    let mut pieces = name.split('=');
    let mut plain = pieces.next()?.to_owned();
    for piece in pieces {
        let (sign, rest) = piece.split_at_checked(2)?;
        plain.push(match sign {
            "2C" => ',',
            "3D" => '=',
            _ => return None,
        });
        plain.push_str(rest);
    }
    Some(plain)
}

/// An exchange that waits for the proof.
#[derive(Debug)]
pub(super) struct Exchange {
    mechanism: Mechanism,
    /// The proof may be for any of these. They share one salt, so that the client need not know which it has.
    credentials: Vec<Credential>,
    first: First,
    nonce: String,
    answer: String,
}

impl Exchange {
    /// Answers the first message. There is at least one credential; it may be one that no proof can meet.
    pub(super) fn start(
        mechanism: Mechanism,
        first: First,
        credentials: Vec<Credential>,
        ours: &str,
    ) -> Exchange {
        let nonce = format!("{}{ours}", first.nonce);
        let Credential { salt, iterations, .. } = &credentials[0];
        let answer = format!("r={nonce},s={},i={iterations}", STANDARD.encode(salt));
        Exchange { mechanism, credentials, first, nonce, answer }
    }

    pub(super) fn answer(&self) -> &[u8] {
        self.answer.as_bytes()
    }

    /// Returns how many bytes of what the client has sent are kept, and of what was made from that.
    pub(super) fn bytes(&self) -> usize {
        let First { user, nonce, bare, .. } = &self.first;
        [user, nonce, bare, &self.nonce, &self.answer].into_iter().map(String::capacity).sum()
    }

    /// Checks the proof; returns the credential that it meets, and the server's signature. All credentials are checked in
    /// any case, so that the time taken does not reveal which one it is.
    pub(super) fn finish(&self, payload: &[u8]) -> Option<(usize, Vec<u8>)> {
        if payload.len() > MESSAGE_BYTES_MAX {
            return None;
        }
        let text = std::str::from_utf8(payload).ok()?;
        let (without_proof, proof) = text.rsplit_once(",p=")?;
        let rest = without_proof.strip_prefix("c=")?.strip_prefix(self.first.binding)?.strip_prefix(",r=")?;
        // Extensions may follow the nonce, and none is known.
        if rest != self.nonce {
            return None;
        }
        let proof = STANDARD.decode(proof).ok()?;
        let covered = format!("{},{},{without_proof}", self.first.bare, self.answer);
        let met: Vec<_> =
            self.credentials.iter().map(|it| self.meets(it, &proof, covered.as_bytes())).collect();
        met.into_iter().enumerate().find_map(|(which, signature)| Some((which, signature?)))
    }

    /// Returns the server's signature, if the proof is one of that credential.
    fn meets(&self, credential: &Credential, proof: &[u8], covered: &[u8]) -> Option<Vec<u8>> {
        let signature = self.mechanism.hmac(&credential.stored_key, covered);
        if proof.len() != signature.len() {
            return None;
        }
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(proof, sign)| proof ^ sign).collect();
        let holds: bool = self.mechanism.hash(&client_key).ct_eq(&credential.stored_key).into();
        let ours = self.mechanism.hmac(&credential.server_key, covered);
        holds.then(|| format!("v={}", STANDARD.encode(ours)).into_bytes())
    }
}

/// Runs an exchange for a user without a usable credential.
pub(crate) fn read_exchange(first: &[u8], last: &[u8]) -> Option<(String, bool)> {
    let first = First::parse(first)?;
    let user = first.user.clone();
    let unusable_credential =
        Credential { salt: vec![0; 28], iterations: 1, stored_key: vec![0; 32], server_key: vec![0; 32] };
    let exchange = Exchange::start(Mechanism::Sha256, first, vec![unusable_credential], "ours");
    Some((user, exchange.finish(last).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange that RFC 7677 prints.
    #[test]
    fn the_published_exchange_of_sha_256() {
        let first = First::parse(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
        assert_eq!(first.user, "user");
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let credential = Credential::derive(Mechanism::Sha256, "user", "pencil", salt, 4096).unwrap();
        let other = Credential { stored_key: vec![0; 32], ..credential.clone() };
        let credentials = vec![other, credential];
        let exchange =
            Exchange::start(Mechanism::Sha256, first, credentials, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0");
        assert_eq!(
            exchange.answer(),
            b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        assert_eq!(
            exchange.finish(last.as_bytes()).unwrap(),
            (1, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=".to_vec())
        );
        for wrong in [
            last.replace("dHzb", "dHzc"),
            last.replace("biws", "eSws"),
            last.replace("r=rOp", "r=rOq"),
            last.replace(",p=", ",x=1,p="),
            last[..40].to_owned(),
            String::new(),
        ] {
            assert_eq!(exchange.finish(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn first_messages_are_read_or_refused() {
        assert_eq!(First::parse(b"n,,n=a=2Cb=3Dc,r=x").unwrap().user, "a,b=c");
        for wrong in [
            "",
            "n,,",
            "n,,n=,r=x",
            "n,,n=a",
            "n,,n=a,r=",
            "n,,n=a=2,r=x",
            "n,,n=a=4Db,r=x",
            "p=tls-unique,,n=a,r=x",
            "n,,m=x,n=a,r=x",
            "n,a=b,n=a,r=x",
        ] {
            assert!(First::parse(wrong.as_bytes()).is_none(), "{wrong}");
        }
        assert!(First::parse(&[0xFF]).is_none());
        assert!(First::parse(&vec![b'n'; MESSAGE_BYTES_MAX + 1]).is_none());
    }
}
