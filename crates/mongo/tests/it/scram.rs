//! The client's half of SCRAM, written from the RFCs and not from the server's half.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::{Binary, Document, Value};
use hmac::{Hmac, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use tokio::net::TcpStream;

use crate::client::Client;

/// Which variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha1,
    Sha256,
}

impl Hash {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Hash::Sha1 => "SCRAM-SHA-1",
            Hash::Sha256 => "SCRAM-SHA-256",
        }
    }

    fn mac(self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        match self {
            Hash::Sha1 => Hmac::<Sha1>::new_from_slice(key)
                .unwrap()
                .chain_update(bytes)
                .finalize()
                .into_bytes()
                .to_vec(),
            Hash::Sha256 => Hmac::<Sha256>::new_from_slice(key)
                .unwrap()
                .chain_update(bytes)
                .finalize()
                .into_bytes()
                .to_vec(),
        }
    }

    fn digest(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Hash::Sha1 => Sha1::digest(bytes).to_vec(),
            Hash::Sha256 => Sha256::digest(bytes).to_vec(),
        }
    }
}

/// An exchange from the client's side.
pub(crate) struct Exchange {
    hash: Hash,
    user: String,
    password: String,
    covered: String,
    salted: Vec<u8>,
}

impl Exchange {
    pub(crate) fn new(hash: Hash, user: &str, password: &str) -> Exchange {
        let (user, password) = (user.to_owned(), password.to_owned());
        Exchange { hash, user, password, covered: String::new(), salted: Vec::new() }
    }

    /// `saslStart`, also as it comes along with a hello.
    pub(crate) fn start(&self, skip_empty: bool) -> Document {
        let payload = format!("n,,n={},r=clientnonce", self.user);
        Document::new()
            .with("saslStart", 1)
            .with("mechanism", self.hash.name())
            .with("payload", Binary { subtype: 0, bytes: payload.into_bytes() })
            .with("options", Document::new().with("skipEmptyExchange", skip_empty))
    }

    /// `saslContinue` with the proof.
    pub(crate) fn prove(&mut self, reply: &Document) -> Document {
        let server = payload(reply);
        let mut parts = server.split(',').map(|part| &part[2..]);
        let (nonce, salt, iterations) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        assert!(nonce.starts_with("clientnonce") && nonce.len() > 20);
        let iterations: u32 = iterations.parse().unwrap();
        assert!(iterations >= 4096);
        let password = match self.hash {
            Hash::Sha1 => {
                let digest = Md5::digest(format!("{}:mongo:{}", self.user, self.password));
                digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
            }
            Hash::Sha256 => self.password.clone(),
        };
        let salt = [STANDARD.decode(salt).unwrap(), vec![0, 0, 0, 1]].concat();
        let mut block = self.hash.mac(password.as_bytes(), &salt);
        self.salted.clone_from(&block);
        for _ in 1..iterations {
            block = self.hash.mac(password.as_bytes(), &block);
            self.salted.iter_mut().zip(&block).for_each(|(sum, byte)| *sum ^= byte);
        }
        let client_key = self.hash.mac(&self.salted, b"Client Key");
        let last = format!("c=biws,r={nonce}");
        self.covered = format!("n={},r=clientnonce,{server},{last}", self.user);
        let signature = self.hash.mac(&self.hash.digest(&client_key), self.covered.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(key, sign)| key ^ sign).collect();
        go_on(reply, format!("{last},p={}", STANDARD.encode(proof)).as_bytes())
    }

    /// Whether the server, too, knows the password.
    pub(crate) fn trusts(&self, reply: &Document) -> bool {
        let server_key = self.hash.mac(&self.salted, b"Server Key");
        let expected = STANDARD.encode(self.hash.mac(&server_key, self.covered.as_bytes()));
        payload(reply) == format!("v={expected}")
    }
}

/// A further step of the conversation that `reply` belongs to.
pub(crate) fn go_on(reply: &Document, payload: &[u8]) -> Document {
    Document::new()
        .with("saslContinue", 1)
        .with("conversationId", reply.get("conversationId").unwrap().clone())
        .with("payload", Binary { subtype: 0, bytes: payload.to_vec() })
}

pub(crate) fn payload(reply: &Document) -> String {
    match reply.get("payload") {
        Some(Value::Binary(binary)) => String::from_utf8(binary.bytes.clone()).unwrap(),
        other => panic!("no payload but {other:?} in {reply:?}"),
    }
}

/// Authenticates, or says with which code that fails.
pub(crate) async fn authenticate(
    client: &mut Client<TcpStream>,
    hash: Hash,
    database: &str,
    user: &str,
    password: &str,
) -> Result<(), i32> {
    let mut exchange = Exchange::new(hash, user, password);
    let first = client.on(database, exchange.start(true)).await;
    if first.contains("code") {
        return Err(crate::client::code(&first));
    }
    let second = client.on(database, exchange.prove(&first)).await;
    if second.contains("code") {
        return Err(crate::client::code(&second));
    }
    assert_eq!(second.get("done"), Some(&Value::Bool(true)));
    assert!(exchange.trusts(&second), "the server does not know the password");
    Ok(())
}
