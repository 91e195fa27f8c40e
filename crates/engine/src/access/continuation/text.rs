//! A token's bytes as text: base64 that any header can carry, with a checksum, so that a token that was truncated or
//! altered is refused instead of naming another position.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use document::fingerprint;

/// The bytes of the checksum, which comes last.
const CHECKSUM_BYTES: usize = size_of::<u64>();

/// Returns the text of a token's bytes.
pub fn encode_token(mut bytes: Vec<u8>) -> String {
    let checksum = fingerprint(&bytes);
    bytes.extend_from_slice(&checksum.to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns the bytes of a token's text, or `None` if the text is not a token as it was issued.
pub fn decode_token(text: &str) -> Option<Vec<u8>> {
    let mut bytes = decode_unchecked(text)?;
    let content = bytes.len().checked_sub(CHECKSUM_BYTES)?;
    let is_whole = bytes[content..] == fingerprint(&bytes[..content]).to_be_bytes();
    bytes.truncate(content);
    is_whole.then_some(bytes)
}

/// Returns the bytes of a text without a checksum: early tokens of the feeds had none, and clients keep those for
/// long.
pub(super) fn decode_unchecked(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns every text that differs from a token by one character, and every prefix of it.
    pub(crate) fn damaged(token: &str) -> impl Iterator<Item = String> + '_ {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=.\"";
        let cut = (0..token.len()).map(|length| token[..length].to_owned());
        let changed = (0..token.len()).flat_map(move |at| {
            let others = ALPHABET.iter().filter(move |other| **other != token.as_bytes()[at]);
            others.map(move |other| format!("{}{}{}", &token[..at], char::from(*other), &token[at + 1..]))
        });
        cut.chain(changed)
    }

    #[test]
    fn anything_cut_or_changed_is_refused() {
        for bytes in [vec![], vec![7], (0..=255).collect(), vec![0; 100]] {
            let text = encode_token(bytes.clone());
            assert_eq!(decode_token(&text), Some(bytes));
            for damaged in damaged(&text) {
                assert_eq!(decode_token(&damaged), None, "{damaged} of {text}");
            }
            assert_eq!(decode_token(&format!("{text}A")), None);
            assert_eq!(decode_token(&format!("{text}{text}")), None);
        }
    }
}
