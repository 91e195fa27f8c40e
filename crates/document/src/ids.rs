//! Names and numbers of resources: rids, item numbers, sequences, etags, and the rules for ids.
//!
//! A rid is a short binary path in base64 with `/` written as `-`. Clients parse it: the number of bytes and
//! a few bits give the kind of resource, and a page of equal sort keys is ordered by the item's number.
//!
//! ```text
//! offer        3 bytes   number, big-endian
//! database     4 bytes   number, big-endian
//! container    8 bytes   database, then number big-endian with its top bit set
//! user         8 bytes   database, then number big-endian with its top bit clear
//! in a container 16 bytes  container, then number little-endian; the top four bits give the kind:
//!                        0 item, 5 partition key range, 6 function, 7 trigger, 8 stored procedure
//! permission  16 bytes   user, then number little-endian
//! ```

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::{Error, Result};
use crate::limits;

/// The number of an item inside its container. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemNumber(pub u64);

/// The number of a write; every write has a higher one than all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// Names a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseRid(pub u32);

/// Names a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerRid {
    /// The number of its database.
    pub database: u32,
    /// Its number, below 2^31.
    pub container: u32,
}

/// Names an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemRid {
    /// Its container.
    pub container: ContainerRid,
    /// Its number, below 2^60.
    pub number: u64,
}

/// Names a partition key range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RangeRid {
    /// Its container.
    pub container: ContainerRid,
    /// Its number, below 2^60.
    pub number: u64,
}

/// What kind of script a [`ScriptRid`] names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScriptKind {
    /// A stored procedure.
    StoredProcedure,
    /// A trigger.
    Trigger,
    /// A user-defined function.
    Function,
}

/// Names a script of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScriptRid {
    /// Its container.
    pub container: ContainerRid,
    /// Which kind.
    pub kind: ScriptKind,
    /// Its number, below 2^60.
    pub number: u64,
}

/// Names a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserRid {
    /// The number of its database.
    pub database: u32,
    /// Its number, below 2^31.
    pub user: u32,
}

/// Names a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermissionRid {
    /// Its user.
    pub user: UserRid,
    /// Its number, below 2^60.
    pub number: u64,
}

/// Names an offer: the throughput of a database or container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferRid(pub u32);

const CONTAINER_BIT: u32 = 1 << 31;
const KIND_SHIFT: u32 = 60;
const NUMBER_MASK: u64 = (1 << KIND_SHIFT) - 1;
const ITEM_KIND: u64 = 0;
const RANGE_KIND: u64 = 5;

impl ItemNumber {
    /// The largest item number that a resource id can hold.
    pub const LAST: ItemNumber = ItemNumber(NUMBER_MASK);
}

impl DatabaseRid {
    fn to_bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }

    #[expect(clippy::unnecessary_wraps, reason = "all rids share this shape")]
    fn from_bytes(bytes: [u8; 4]) -> Option<DatabaseRid> {
        Some(DatabaseRid(u32::from_be_bytes(bytes)))
    }
}

impl ContainerRid {
    /// Returns the container's database.
    pub fn database_rid(self) -> DatabaseRid {
        DatabaseRid(self.database)
    }

    fn to_bytes(self) -> [u8; 8] {
        pair(self.database, self.container | CONTAINER_BIT)
    }

    fn from_bytes(bytes: [u8; 8]) -> Option<ContainerRid> {
        let (database, container) = unpair(bytes);
        (container & CONTAINER_BIT != 0)
            .then_some(ContainerRid { database, container: container & !CONTAINER_BIT })
    }
}

impl UserRid {
    fn to_bytes(self) -> [u8; 8] {
        pair(self.database, self.user & !CONTAINER_BIT)
    }

    fn from_bytes(bytes: [u8; 8]) -> Option<UserRid> {
        let (database, user) = unpair(bytes);
        (user & CONTAINER_BIT == 0).then_some(UserRid { database, user })
    }
}

impl ItemRid {
    /// Returns the item's number as its own type.
    pub fn item_number(self) -> ItemNumber {
        ItemNumber(self.number)
    }

    fn to_bytes(self) -> [u8; 16] {
        child(self.container.to_bytes(), ITEM_KIND, self.number)
    }

    fn from_bytes(bytes: [u8; 16]) -> Option<ItemRid> {
        let (parent, kind, number) = unchild(bytes);
        let container = ContainerRid::from_bytes(parent)?;
        (kind == ITEM_KIND).then_some(ItemRid { container, number })
    }
}

impl RangeRid {
    fn to_bytes(self) -> [u8; 16] {
        child(self.container.to_bytes(), RANGE_KIND, self.number)
    }

    fn from_bytes(bytes: [u8; 16]) -> Option<RangeRid> {
        let (parent, kind, number) = unchild(bytes);
        let container = ContainerRid::from_bytes(parent)?;
        (kind == RANGE_KIND).then_some(RangeRid { container, number })
    }
}

impl ScriptKind {
    fn nibble(self) -> u64 {
        match self {
            ScriptKind::Function => 6,
            ScriptKind::Trigger => 7,
            ScriptKind::StoredProcedure => 8,
        }
    }
}

impl ScriptRid {
    fn to_bytes(self) -> [u8; 16] {
        child(self.container.to_bytes(), self.kind.nibble(), self.number)
    }

    fn from_bytes(bytes: [u8; 16]) -> Option<ScriptRid> {
        let (parent, nibble, number) = unchild(bytes);
        let container = ContainerRid::from_bytes(parent)?;
        let kinds = [ScriptKind::Function, ScriptKind::Trigger, ScriptKind::StoredProcedure];
        let kind = kinds.into_iter().find(|kind| kind.nibble() == nibble)?;
        Some(ScriptRid { container, kind, number })
    }
}

impl PermissionRid {
    fn to_bytes(self) -> [u8; 16] {
        child(self.user.to_bytes(), 0, self.number)
    }

    fn from_bytes(bytes: [u8; 16]) -> Option<PermissionRid> {
        let (parent, kind, number) = unchild(bytes);
        let user = UserRid::from_bytes(parent)?;
        (kind == 0).then_some(PermissionRid { user, number })
    }
}

impl OfferRid {
    fn to_bytes(self) -> [u8; 3] {
        let [_, a, b, c] = self.0.to_be_bytes();
        [a, b, c]
    }

    #[expect(clippy::unnecessary_wraps, reason = "all rids share this shape")]
    fn from_bytes([a, b, c]: [u8; 3]) -> Option<OfferRid> {
        Some(OfferRid(u32::from_be_bytes([0, a, b, c])))
    }
}

fn pair(first: u32, second: u32) -> [u8; 8] {
    (u64::from(first) << 32 | u64::from(second)).to_be_bytes()
}

fn unpair(bytes: [u8; 8]) -> (u32, u32) {
    let both = u64::from_be_bytes(bytes);
    ((both >> 32) as u32, both as u32)
}

fn child(parent: [u8; 8], kind: u64, number: u64) -> [u8; 16] {
    debug_assert!(number <= NUMBER_MASK, "numbers stay below 2^60");
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&parent);
    bytes[8..].copy_from_slice(&(kind << KIND_SHIFT | number & NUMBER_MASK).to_le_bytes());
    bytes
}

fn unchild(bytes: [u8; 16]) -> ([u8; 8], u64, u64) {
    let (parent, number) = bytes.split_at(8);
    let parent = parent.try_into().expect("half of sixteen is eight");
    let number = u64::from_le_bytes(number.try_into().expect("half of sixteen is eight"));
    (parent, number >> KIND_SHIFT, number & NUMBER_MASK)
}

/// The longest rid, 16 bytes, in characters.
const RID_CHARS_MAX: usize = 24;

fn write_rid(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (text, length) = rid_chars(bytes);
    f.write_str(std::str::from_utf8(&text[..length]).map_err(|_| fmt::Error)?)
}

/// Returns the characters of a rid, and how many there are.
fn rid_chars(bytes: &[u8]) -> ([u8; RID_CHARS_MAX], usize) {
    let mut text = [0; RID_CHARS_MAX];
    let length = STANDARD.encode_slice(bytes, &mut text).expect("no rid is longer");
    for byte in &mut text[..length] {
        if *byte == b'/' {
            *byte = b'-';
        }
    }
    (text, length)
}

fn read_rid<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != N.div_ceil(3) * 4 || text.contains('/') {
        return None;
    }
    STANDARD.decode(text.replace('-', "/")).ok()?.try_into().ok()
}

macro_rules! rid_text {
    ($($rid:ident is $what:literal),* $(,)?) => { $(
        impl fmt::Display for $rid {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_rid(&self.to_bytes(), f)
            }
        }

        impl $rid {
            /// Appends the text without `fmt`, because every item that is shown has several.
            pub fn append_to(&self, out: &mut Vec<u8>) {
                let (text, length) = rid_chars(&self.to_bytes());
                out.extend_from_slice(&text[..length]);
            }
        }

        impl FromStr for $rid {
            type Err = Error;

            fn from_str(text: &str) -> Result<$rid> {
                read_rid(text).and_then($rid::from_bytes).ok_or_else(|| {
                    Error::invalid(format!("{text:?} is not the resource id of {}", $what))
                })
            }
        }
    )* };
}

rid_text! {
    DatabaseRid is "a database",
    ContainerRid is "a container",
    ItemRid is "an item",
    RangeRid is "a partition key range",
    ScriptRid is "a script",
    UserRid is "a user",
    PermissionRid is "a permission",
    OfferRid is "an offer",
}

/// The version of a resource, as clients see it: a quoted text in the form of a GUID, quotes included.
///
/// It holds the write's sequence and second, so no two writes share one. Clients must treat it as opaque, and so does
/// the server: it only compares etags as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Etag {
    sequence: Sequence,
    seconds: u64,
}

impl Etag {
    /// Creates the etag of the write with this sequence in this second.
    pub fn new(sequence: Sequence, seconds: u64) -> Etag {
        Etag { sequence, seconds }
    }

    /// Returns `true` if a client's etag names this version.
    pub fn matches(&self, text: &str) -> bool {
        self.text() == text.as_bytes()
    }

    /// Appends the text between the quotes.
    pub fn append_bare_to(&self, out: &mut Vec<u8>) {
        let text = self.text();
        out.extend_from_slice(&text[1..text.len() - 1]);
    }

    /// Returns `"ssssssss-ssss-ssss-0000-tttttttt0000"`: the sequence from its low end, then the second. Formatted
    /// without `fmt`, because every item that is read has an etag.
    fn text(&self) -> [u8; 38] {
        let sequence = self.sequence.0;
        let mut text = *b"\"00000000-0000-0000-0000-000000000000\"";
        write_hex(sequence as u32, &mut text[1..9]);
        write_hex((sequence >> 32) as u32 & 0xFFFF, &mut text[10..14]);
        write_hex((sequence >> 48) as u32, &mut text[15..19]);
        write_hex(self.seconds as u32, &mut text[25..33]);
        text
    }
}

/// Fills `out` with the lowest digits of a number.
fn write_hex(mut number: u32, out: &mut [u8]) {
    for digit in out.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 0xF) as usize];
        number >>= 4;
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).map_err(|_| fmt::Error)?)
    }
}

/// Refuses an id that a database or container must not have.
pub fn check_resource_id(id: &str) -> Result<()> {
    check_id(id, &['/', '\\', '#', '?'])?;
    let characters = id.chars().count();
    if characters > limits::RESOURCE_ID_CHARS {
        return Err(Error::invalid(format!(
            "The input name is invalid: it has {characters} characters. Ensure to provide a unique non-empty string \
             less than '{}' characters.",
            limits::RESOURCE_ID_CHARS
        )));
    }
    if id.ends_with(' ') {
        return Err(Error::invalid(format!("the id {id:?} must not end with a space")));
    }
    Ok(())
}

/// Refuses an id that an item must not have. The service's documentation forbids `?` and `#` as well, but the service accepts
/// them; only characters that no path can carry are refused.
pub fn check_item_id(id: &str) -> Result<()> {
    check_id(id, &['/', '\\'])?;
    if id.len() > limits::ITEM_ID_BYTES {
        return Err(Error::invalid(format!(
            "The input id is invalid: it has {} bytes. Ensure to provide a unique non-empty string less than '{}' \
             characters.",
            id.len(),
            limits::ITEM_ID_BYTES + 1
        )));
    }
    Ok(())
}

fn check_id(id: &str, forbidden: &[char]) -> Result<()> {
    if id.is_empty() {
        return Err(Error::invalid("the id must not be empty"));
    }
    if let Some(found) = id.chars().find(|c| forbidden.contains(c)) {
        return Err(Error::invalid(format!("the id {id:?} must not contain the character '{found}'")));
    }
    Ok(())
}
