//! Authentication to the MongoDB API by SCRAM-SHA-256 (RFC 7677). The client keeps the key derived from the password, as
//! drivers do: the derivation takes longer than the rest of a log-in.

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use super::{Bson, Value, WireClient, message};

/// The client's part of the nonce. A constant is enough: the server belongs to a test, and no other client replays it.
const NONCE: &str = "fyko+d2lbbFgONRv9qkxdawL";
const LAST_WITHOUT_PROOF: &str = "c=biws";

/// A user of the MongoDB API with a password.
pub struct Login {
    user: String,
    password: String,
    /// The salt and the number of rounds that the key was derived with, and the key.
    derived: Option<(String, [u8; 32])>,
}

impl Login {
    pub fn new(user: &str, password: &str) -> Login {
        Login { user: user.to_owned(), password: password.to_owned(), derived: None }
    }

    /// Authenticates a connection.
    pub fn authenticate(&mut self, wire: &mut WireClient) -> Result<()> {
        let first = format!("n={},r={NONCE}", self.user);
        let start = Bson::new().int("saslStart", 1).text("mechanism", "SCRAM-SHA-256");
        let start = start.text("payload", &format!("n,,{first}"));
        let start = start.document("options", Bson::new().bool("skipEmptyExchange", true));
        let challenge = step(wire, start)?;
        let part = |name: &str| {
            let found = challenge.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            found.with_context(|| format!("no '{name}' in {challenge}"))
        };
        let last = format!("{LAST_WITHOUT_PROOF},r={}", part("r")?);
        let key = self.key(part("s")?, part("i")?)?;
        let client_key = hmac(&key, b"Client Key")?;
        let signature = hmac(&Sha256::digest(client_key), format!("{first},{challenge},{last}").as_bytes())?;
        let mut proof = client_key;
        proof.iter_mut().zip(signature).for_each(|(byte, other)| *byte ^= other);
        let go_on = Bson::new().int("saslContinue", 1).int("conversationId", 1);
        step(wire, go_on.text("payload", &format!("{last},p={}", STANDARD.encode(proof))))?;
        Ok(())
    }

    /// Returns the key that is derived from the password.
    fn key(&mut self, salt: &str, rounds: &str) -> Result<[u8; 32]> {
        let with = format!("{salt} {rounds}");
        if let Some((_, key)) = self.derived.as_ref().filter(|(known, _)| *known == with) {
            return Ok(*key);
        }
        let mut block = STANDARD.decode(salt)?;
        block.extend(1_u32.to_be_bytes());
        let mut round = hmac(self.password.as_bytes(), &block)?;
        let mut key = round;
        for _ in 1..rounds.parse::<u32>()? {
            round = hmac(self.password.as_bytes(), &round)?;
            key.iter_mut().zip(round).for_each(|(byte, other)| *byte ^= other);
        }
        self.derived = Some((with, key));
        Ok(key)
    }
}

/// Sends one step of the conversation; returns the server's answer.
fn step(wire: &mut WireClient, command: Bson) -> Result<String> {
    wire.exchange(&message("admin", command))?;
    let answer = wire.checked()?;
    let Some(Value::Other(5, payload)) = Value::field(answer, "payload")? else {
        bail!("no payload in the answer to a log-in");
    };
    let (_, text) = payload.split_first().context("an empty payload")?;
    Ok(std::str::from_utf8(text)?.to_owned())
}

fn hmac(key: &[u8], text: &[u8]) -> Result<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key)?;
    mac.update(text);
    let bytes = mac.finalize().into_bytes();
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677.
    #[test]
    fn the_key_is_that_of_the_rfc() {
        let mut login = Login::new("user", "pencil");
        let key = login.key("W22ZaJ0SNY7soEsUEjb6gQ==", "4096").unwrap();
        let client_key = hmac(&key, b"Client Key").unwrap();
        let text = "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                    s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let signature = hmac(&Sha256::digest(client_key), text.as_bytes()).unwrap();
        let proof: Vec<u8> = client_key.iter().zip(signature).map(|(one, other)| one ^ other).collect();
        assert_eq!(STANDARD.encode(proof), "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
    }
}
