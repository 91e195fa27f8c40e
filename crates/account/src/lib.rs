//! The account: the keys by which every front end authenticates clients, and their rights.
//!
//! There are up to four, as in Azure: primary and secondary, which may do everything, and a read-only one beside each.
//! They change while the server runs ([`Keyring::regenerate`], [`Keyring::set_from_setting`]), which every clone of the ring sees
//! at once. This crate knows no protocol and touches no file: generated keys are saved through a [`KeyStore`]. No `Debug`
//! output shows a key; [`Key::reveal`] is the one way to a key's text.

mod key;
mod keyring;

pub use key::{BadKey, EMULATOR_KEY, Key};
pub use keyring::{AuthenticatedKey, Entry, Error, KeySource, KeyStore, Keyring, Kind, NoKeyStore, Right};
