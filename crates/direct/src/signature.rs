//! The authorization of a request by the account's key, as the SDKs make it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;

/// Returns the authorization for a verb on a resource; `kind` is `docs` or the like, `link` has no slash at its beginning.
///
/// It is written independently of the server's code, which otherwise would check itself.
pub fn sign_link(verb: &str, kind: &str, link: &str, date: &str, key: &str) -> String {
    let text = format!("{}\n{kind}\n{link}\n{}\n\n", verb.to_lowercase(), date.to_lowercase());
    let key = STANDARD.decode(key).expect("a test's key is base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    mac.update(text.as_bytes());
    let token = format!("type=master&ver=1.0&sig={}", STANDARD.encode(mac.finalize().into_bytes()));
    utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;

    use super::sign_link;

    /// The emulator's key, which is public.
    const KEY: &str =
        "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

    #[test]
    fn a_recorded_signature_is_made_again() {
        let recorded = "type%3dmaster%26ver%3d1.0%26sig%3dG0RUd%2b8YLVFT1e5r2uMwkfK5nJvBa9RX1MlvM62UzYQ%3d";
        let date = "Tue, 17 Nov 2026 17:38:41 GMT";
        let ours = sign_link("POST", "docs", "dbs/mini6cbd3/colls/c", date, KEY);
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        assert_eq!(decoded(&ours), decoded(recorded));
    }
}
