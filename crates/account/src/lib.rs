//! The account: the keys that every front end lets people in by, and what each is good for.
//!
//! There are up to four, as the service has them: primary and secondary, which may do everything, and a read-only one
//! beside each. They are changed while the server runs ([`Keyring::regenerate`], [`Keyring::give`]), which every clone of
//! the ring sees at once. This room knows no protocol and touches no file: what is to be kept goes through a [`Vault`]. Nothing in it
//! shows a key in `Debug`; [`Key::reveal`] is the one way to a key's text.

mod key;
mod keyring;

pub use key::{BadKey, EMULATOR_KEY, Key};
pub use keyring::{Entry, Error, Forgetful, Holder, Keyring, Kind, Origin, Right, Vault};
