//! A small client of the MongoDB API, with the client's half of SCRAM-SHA-256.

use std::io::{Read, Write};
use std::net::TcpStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::{Binary, Document, RawDocument, Value};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::process::Server;

const NONCE: &str = "a-nonce-that-must-not-be-logged";

/// A connection.
pub(crate) struct MongoClient<S = TcpStream>(S);

impl MongoClient {
    pub(crate) fn connect(server: &Server) -> MongoClient {
        let printed = server.mongo.clone().unwrap();
        let rest = printed.strip_prefix("mongodb://").unwrap().split('/').next().unwrap();
        MongoClient(TcpStream::connect(rest.rsplit('@').next().unwrap()).unwrap())
    }
}

impl<S: Read + Write> MongoClient<S> {
    /// Returns the client of a connection that is open.
    pub(crate) fn over(stream: S) -> MongoClient<S> {
        MongoClient(stream)
    }

    /// Runs a command on a database; returns its answer.
    pub(crate) fn run(&mut self, database: &str, command: Document) -> Document {
        let body = RawDocument::from_document(&command.with("$db", database)).into_bytes();
        let length = (16 + 5 + body.len()) as i32;
        let header = [length, 1, 0, 2013, 0].map(i32::to_le_bytes).concat();
        self.0.write_all(&[header.as_slice(), b"\0", &body].concat()).unwrap();
        let mut length = [0; 4];
        self.0.read_exact(&mut length).unwrap();
        let mut rest = vec![0; i32::from_le_bytes(length) as usize - 4];
        self.0.read_exact(&mut rest).unwrap();
        // The rest of the header, the flags and the kind of the section.
        RawDocument::parse(rest.split_off(12 + 5).into()).unwrap().to_document()
    }

    /// Returns whether the user may list databases.
    pub(crate) fn may_list_databases(&mut self) -> bool {
        is_ok(&self.run("admin", Document::new().with("listDatabases", 1)))
    }

    /// Authenticates as a user of the database `admin`; returns whether the password is right. Later commands run as that
    /// user.
    pub(crate) fn authenticate(&mut self, user: &str, password: &str) -> bool {
        let (challenge, conversation) = self.begin_scram(user);
        let parts: Vec<&str> = challenge.split(',').map(|part| &part[2..]).collect();
        let [nonce, salt, iterations] = parts[..] else { panic!("{challenge}") };
        let salt = [STANDARD.decode(salt).unwrap(), vec![0, 0, 0, 1]].concat();
        let mut block = mac(password.as_bytes(), &salt);
        let mut salted = block.clone();
        for _ in 1..iterations.parse().unwrap() {
            block = mac(password.as_bytes(), &block);
            salted.iter_mut().zip(&block).for_each(|(sum, byte)| *sum ^= byte);
        }
        let (key, last) = (mac(&salted, b"Client Key"), format!("c=biws,r={nonce}"));
        let covered = format!("{},{challenge},{last}", &scram_opening(user)[3..]);
        let signature = mac(&Sha256::digest(&key), covered.as_bytes());
        let proof: Vec<u8> = key.iter().zip(&signature).map(|(key, sign)| key ^ sign).collect();
        is_ok(&self.end_scram(&format!("{last},p={}", STANDARD.encode(proof)), conversation))
    }

    /// Returns the server's challenge, and its conversation.
    pub(crate) fn begin_scram(&mut self, user: &str) -> (String, Value) {
        let command = Document::new()
            .with("saslStart", 1)
            .with("mechanism", "SCRAM-SHA-256")
            .with("payload", Binary { subtype: 0, bytes: scram_opening(user).into_bytes() })
            .with("options", Document::new().with("skipEmptyExchange", true));
        let answer = self.run("admin", command);
        match (answer.get("payload"), answer.get("conversationId")) {
            (Some(Value::Binary(challenge)), Some(conversation)) => {
                (String::from_utf8(challenge.bytes.clone()).unwrap(), conversation.clone())
            }
            _ => panic!("{answer:?}"),
        }
    }

    /// Returns the answer to a proof.
    pub(crate) fn end_scram(&mut self, last: &str, conversation: Value) -> Document {
        let command = Document::new()
            .with("saslContinue", 1)
            .with("conversationId", conversation)
            .with("payload", Binary { subtype: 0, bytes: last.as_bytes().to_vec() });
        self.run("admin", command)
    }
}

/// Returns the first message of an authentication.
pub(crate) fn scram_opening(user: &str) -> String {
    format!("n,,n={user},r={NONCE}")
}

pub(crate) fn is_ok(answer: &Document) -> bool {
    answer.get("ok") == Some(&Value::Double(1.0))
}

fn mac(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.chain_update(bytes).finalize().into_bytes().to_vec()
}
