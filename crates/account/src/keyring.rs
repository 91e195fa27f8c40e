//! All keys of the account, shared by everybody who checks them and changed under their hands.
//!
//! A check looks at every key that there is and never stops at the first that fits: how long it takes tells nothing
//! about which key it was. A new key is kept before it is good for anything, so that one which was handed out
//! survives a crash; the old one is refused from then on.

use std::fmt;
use std::io;
use std::sync::Arc;

use hmac::Mac;
use parking_lot::{Mutex, RwLock};

use crate::key::Key;

/// Which of the account's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Everything is allowed.
    Primary,
    /// Everything is allowed; clients use it while the primary key changes.
    Secondary,
    /// Reads and queries.
    PrimaryReadonly,
    /// Reads and queries; clients use it while the other read-only key changes.
    SecondaryReadonly,
}

/// What the holder of a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Everything.
    ReadWrite,
    /// Reads and queries, but for what would give more rights.
    ReadOnly,
}

impl Kind {
    /// Every kind, the mightiest first: of two keys with the same text, the first counts.
    pub const ALL: [Kind; 4] =
        [Kind::Primary, Kind::Secondary, Kind::PrimaryReadonly, Kind::SecondaryReadonly];

    /// The name that the admin API, the file and the command line have for it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Primary => "primary",
            Kind::Secondary => "secondary",
            Kind::PrimaryReadonly => "primaryReadonly",
            Kind::SecondaryReadonly => "secondaryReadonly",
        }
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What its holder may do.
    pub fn right(self) -> Right {
        match self {
            Kind::Primary | Kind::Secondary => Right::ReadWrite,
            Kind::PrimaryReadonly | Kind::SecondaryReadonly => Right::ReadOnly,
        }
    }
}

/// Where a key came from, which decides who can change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The operator gives it, by the setting of that name.
    Given(&'static str),
    /// The key that every emulator shares, in place of one that was given or made.
    WellKnown,
    /// Made here.
    Made,
}

/// A key in the ring.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Which it is.
    pub kind: Kind,
    /// The key itself.
    pub key: Key,
    /// Where it came from.
    pub origin: Origin,
}

/// Somebody who has proved to have a key.
#[derive(Debug, Clone)]
pub struct Holder {
    /// Which one.
    pub kind: Kind,
    /// The key as it was then.
    pub key: Key,
}

impl Holder {
    /// Which key it is, in words that may be shown: its kind and its fingerprint.
    pub fn label(&self) -> String {
        format!("{} key {}", self.kind.name(), self.key.fingerprint())
    }

    /// What the holder may do.
    pub fn right(&self) -> Right {
        self.kind.right()
    }
}

/// Where keys that were made here are kept.
pub trait Vault: Send + Sync {
    /// Keeps these and no others; after a failure what was kept before is still there.
    fn keep(&self, made: &[(Kind, &Key)]) -> io::Result<()>;
}

/// Keeps nothing: for a store that is gone with the process, too.
#[derive(Debug, Clone, Copy)]
pub struct Forgetful;

impl Vault for Forgetful {
    fn keep(&self, _: &[(Kind, &Key)]) -> io::Result<()> {
        Ok(())
    }
}

/// Why a key was not changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operator gives it.
    #[error(
        "the {} key is given by the setting '{setting}': change it there and start the server again; a file is read again on SIGHUP, too",
        kind.name()
    )]
    Given {
        /// Which key.
        kind: Kind,
        /// The setting.
        setting: &'static str,
    },
    /// It could not be kept, so the old one stays.
    #[error("the new key could not be kept, and the old one stays: {0}")]
    NotKept(#[from] io::Error),
}

/// The account's keys. Clones share them.
#[derive(Clone)]
pub struct Keyring(Arc<Shared>);

struct Shared {
    state: RwLock<Arc<State>>,
    /// Held by whoever changes keys, also while the vault writes, when others go on reading.
    vault: Mutex<Box<dyn Vault>>,
}

struct State {
    entries: Vec<Entry>,
    generation: u64,
}

impl Keyring {
    /// A ring of these keys, of which there is one of a kind at most; the last one counts.
    pub fn new(entries: impl IntoIterator<Item = Entry>, vault: impl Vault + 'static) -> Self {
        let state = entries.into_iter().fold(State { entries: Vec::new(), generation: 0 }, State::with);
        Keyring(Arc::new(Shared { state: RwLock::new(Arc::new(state)), vault: Mutex::new(Box::new(vault)) }))
    }

    /// A ring of a primary key alone, which the setting `key` gives.
    pub fn of(primary: Key) -> Self {
        Keyring::new([Entry { kind: Kind::Primary, key: primary, origin: Origin::Given("key") }], Forgetful)
    }

    /// Whoever's key made that signature of a text.
    pub fn signer(&self, text: &[u8], signature: &[u8]) -> Option<Holder> {
        self.find(|key| {
            let mut mac = key.mac();
            mac.update(text);
            mac.verify_slice(signature).is_ok()
        })
    }

    /// Whoever's key has that text.
    pub fn holder(&self, text: &str) -> Option<Holder> {
        self.find(|key| key.is(text))
    }

    /// The mightiest key that passes a check. All are checked, in any case.
    pub fn find(&self, fits: impl Fn(&Key) -> bool) -> Option<Holder> {
        let state = self.state();
        let first = state.entries.iter().fold(None, |first, entry| {
            let fitting = fits(&entry.key).then_some(entry);
            first.or(fitting)
        });
        first.map(|entry| Holder { kind: entry.kind, key: entry.key.clone() })
    }

    /// All keys as they are now, the mightiest first.
    pub fn entries(&self) -> Vec<Entry> {
        self.state().entries.clone()
    }

    /// Whether everybody has a key that may write.
    pub fn is_public(&self) -> bool {
        let state = self.state();
        state.entries.iter().any(|entry| entry.kind.right() == Right::ReadWrite && entry.key.is_public())
    }

    /// Changes whenever a key does, for those who keep what they derive from keys.
    pub fn generation(&self) -> u64 {
        self.state().generation
    }

    /// Puts a new key in the place of one, or where there was none, and gives it to whoever asked. The old one is refused
    /// from now on, and so is everything that was signed with it.
    pub fn regenerate(&self, kind: Kind) -> Result<Key, Error> {
        let vault = self.0.vault.lock();
        let state = self.state();
        let old = state.entries.iter().find(|entry| entry.kind == kind);
        if let Some(Entry { origin: Origin::Given(setting), .. }) = old {
            return Err(Error::Given { kind, setting });
        }
        let key = Key::random();
        let state = state.after(Entry { kind, key: key.clone(), origin: Origin::Made });
        let made = state.entries.iter().filter(|entry| entry.origin == Origin::Made);
        vault.keep(&made.map(|entry| (entry.kind, &entry.key)).collect::<Vec<_>>())?;
        *self.0.state.write() = Arc::new(state);
        Ok(key)
    }

    /// Takes what a setting gives now in the place of what there was; whether that is another key. The old one is refused from
    /// now on, and so is everything that was signed with it. Nothing is kept: the next start asks the setting again.
    pub fn give(&self, kind: Kind, key: Key, setting: &'static str) -> bool {
        let _others_wait = self.0.vault.lock();
        let state = self.state();
        if state.entries.iter().any(|entry| entry.kind == kind && entry.key.is(key.reveal())) {
            return false;
        }
        let state = state.after(Entry { kind, key, origin: Origin::Given(setting) });
        *self.0.state.write() = Arc::new(state);
        true
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.0.state.read())
    }
}

impl State {
    /// What there is once this key has taken its place.
    fn after(&self, entry: Entry) -> Self {
        State { entries: self.entries.clone(), generation: self.generation + 1 }.with(entry)
    }

    fn with(mut self, entry: Entry) -> Self {
        self.entries.retain(|other| other.kind != entry.kind);
        self.entries.push(entry);
        self.entries.sort_by_key(|entry| entry.kind);
        self
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Keyring(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::key::EMULATOR_KEY;

    fn entry(kind: Kind, text: &str, origin: Origin) -> Entry {
        Entry { kind, key: Key::parse(text).unwrap(), origin }
    }

    fn four() -> Keyring {
        let texts = ["cHJpbWFyeQ==", "c2Vjb25kYXJ5", "cmVhZGVy", "cmVhZGVyMg=="];
        Keyring::new(
            Kind::ALL.into_iter().zip(texts).map(|(kind, text)| entry(kind, text, Origin::Made)),
            Forgetful,
        )
    }

    fn signed(ring: &Keyring, text: &str, with: Kind) -> Option<Kind> {
        let key = ring.entries().into_iter().find(|entry| entry.kind == with).unwrap().key;
        let mut mac = key.mac();
        mac.update(text.as_bytes());
        let signature = mac.finalize().into_bytes();
        ring.signer(text.as_bytes(), &signature).map(|holder| holder.kind)
    }

    #[test]
    fn every_key_is_known_by_its_text_and_by_what_it_signs() {
        let ring = four();
        for entry in ring.entries() {
            assert_eq!(ring.holder(entry.key.reveal()).unwrap().kind, entry.kind);
            assert_eq!(signed(&ring, "a text", entry.kind), Some(entry.kind));
        }
        assert!(ring.holder("b3RoZXI=").is_none());
        assert!(ring.signer(b"a text", &[0; 32]).is_none());
        assert!(ring.signer(b"a text", b"").is_none());
        let rights = Kind::ALL.map(Kind::right);
        assert_eq!(rights, [Right::ReadWrite, Right::ReadWrite, Right::ReadOnly, Right::ReadOnly]);
    }

    /// What a check costs must not tell which key fitted, so it never ends early.
    #[test]
    fn a_check_looks_at_every_key_whichever_fits() {
        let ring = four();
        let fitting = ring.entries().into_iter().map(|entry| Some(entry.key)).chain([None]);
        for fitting in fitting {
            let looked = Cell::new(0);
            ring.find(|key| {
                looked.set(looked.get() + 1);
                fitting.as_ref().is_some_and(|fitting| fitting.reveal() == key.reveal())
            });
            assert_eq!(looked.get(), 4);
        }
    }

    #[test]
    fn of_two_keys_with_the_same_text_the_mightier_counts() {
        let ring = Keyring::new(
            [
                entry(Kind::PrimaryReadonly, "c2FtZQ==", Origin::Made),
                entry(Kind::Secondary, "c2FtZQ==", Origin::Made),
            ],
            Forgetful,
        );
        assert_eq!(ring.holder("c2FtZQ==").unwrap().kind, Kind::Secondary);
    }

    #[test]
    fn a_new_key_is_seen_by_all_clones_at_once_and_the_old_one_is_refused() {
        let ring = four();
        let (clone, generation) = (ring.clone(), ring.generation());
        let new = ring.regenerate(Kind::Secondary).unwrap();
        assert_eq!(clone.holder(new.reveal()).unwrap().kind, Kind::Secondary);
        assert!(clone.holder("c2Vjb25kYXJ5").is_none());
        assert_ne!(clone.generation(), generation);
        for other in ["cHJpbWFyeQ==", "cmVhZGVy", "cmVhZGVyMg=="] {
            assert!(clone.holder(other).is_some(), "only one key changes");
        }
    }

    #[test]
    fn keys_that_were_not_there_are_made_and_what_is_given_stays() {
        let ring = Keyring::of(Key::parse("c2VjcmV0").unwrap());
        for kind in [Kind::Secondary, Kind::PrimaryReadonly, Kind::SecondaryReadonly] {
            ring.regenerate(kind).unwrap();
        }
        assert_eq!(ring.entries().iter().map(|entry| entry.kind).collect::<Vec<_>>(), Kind::ALL);
        let refusal = ring.regenerate(Kind::Primary).unwrap_err();
        assert!(refusal.to_string().contains("'key'"), "{refusal}");
        assert!(ring.holder("c2VjcmV0").is_some());
        let ring = Keyring::new([entry(Kind::Primary, EMULATOR_KEY, Origin::WellKnown)], Forgetful);
        assert!(ring.is_public());
        ring.regenerate(Kind::Primary).unwrap();
        assert!(ring.holder(EMULATOR_KEY).is_none(), "what everybody knows can be replaced");
        assert!(!ring.is_public());
    }

    #[test]
    fn a_given_key_is_replaced_by_what_its_setting_gives_next_and_by_nobody_else() {
        let given = entry(Kind::Primary, "b25l", Origin::Given("key-file"));
        let ring = Keyring::new([given], Forgetful);
        let (clone, generation) = (ring.clone(), ring.generation());
        assert!(!ring.give(Kind::Primary, Key::parse("b25l").unwrap(), "key-file"));
        assert_eq!(clone.generation(), generation, "the same key is no change");
        assert!(ring.give(Kind::Primary, Key::parse("dHdv").unwrap(), "key-file"));
        assert_ne!(clone.generation(), generation);
        assert!(clone.holder("b25l").is_none() && clone.holder("dHdv").is_some());
        let refusal = ring.regenerate(Kind::Primary).unwrap_err();
        assert!(refusal.to_string().contains("'key-file'"), "{refusal}");
    }

    struct Recorder(Arc<Mutex<Vec<Vec<Kind>>>>);

    impl Vault for Recorder {
        fn keep(&self, made: &[(Kind, &Key)]) -> io::Result<()> {
            let mut kept = self.0.lock();
            if kept.len() == 2 {
                return Err(io::Error::other("the disk is full"));
            }
            kept.push(made.iter().map(|(kind, _)| *kind).collect());
            Ok(())
        }
    }

    #[test]
    fn made_keys_are_kept_before_they_count_and_given_ones_never() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let given = entry(Kind::Primary, "c2VjcmV0", Origin::Given("key-file"));
        let ring = Keyring::new([given], Recorder(Arc::clone(&kept)));
        let second = ring.regenerate(Kind::Secondary).unwrap();
        ring.regenerate(Kind::PrimaryReadonly).unwrap();
        let failure = ring.regenerate(Kind::Secondary).unwrap_err();
        assert!(failure.to_string().contains("the disk is full"), "{failure}");
        assert!(ring.holder(second.reveal()).is_some(), "what could not be replaced stays good");
        assert_eq!(*kept.lock(), [vec![Kind::Secondary], vec![Kind::Secondary, Kind::PrimaryReadonly]]);
    }

    #[test]
    fn debug_shows_nothing_of_any_key() {
        let ring = four();
        let shown = format!("{ring:?} {:?} {:?}", ring.entries(), ring.holder("cmVhZGVy"));
        for entry in ring.entries() {
            assert!(!shown.contains(entry.key.reveal()), "{shown}");
        }
    }

    #[test]
    fn kinds_have_names() {
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.name()), Some(kind));
        }
        assert_eq!(Kind::named("tertiary"), None);
    }
}
