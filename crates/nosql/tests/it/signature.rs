//! The authorization header of the account key, as the SDKs make it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha2::Sha256;

/// The authorization header as the SDKs make it, written a second time so that the server does not check itself.
pub(crate) fn sign(method: &str, path: &str, date: &str, key: &str) -> String {
    let path = path.split('?').next().unwrap_or(path);
    let segments: Vec<String> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned())
        .collect();
    let (kind, link) = match segments.as_slice() {
        [] => (String::new(), String::new()),
        [offers, rid] if offers == "offers" => ("offers".to_owned(), rid.to_lowercase()),
        [owner @ .., operations, _] if operations == "operations" => ("colls".to_owned(), owner.join("/")),
        all if all.len() % 2 == 1 => (all[all.len() - 1].clone(), all[..all.len() - 1].join("/")),
        all => (all[all.len() - 2].clone(), all.join("/")),
    };
    sign_link(method, &kind, &link, date, key)
}

pub(crate) fn sign_link(method: &str, kind: &str, link: &str, date: &str, key: &str) -> String {
    let text = format!("{}\n{kind}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(key).expect("a key is base64"))
        .expect("HMAC takes keys of any length");
    mac.update(text.as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    let token = format!("type=master&ver=1.0&sig={signature}");
    utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string()
}
