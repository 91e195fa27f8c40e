//! An item as callers see it: its body, and the system properties derived from its header.

use std::io::Write as _;

use document::{ContainerRid, Document, Etag, ItemRid, Sequence, Value, ValueRef};

use crate::expiry::header::Record;

/// The properties that the system owns. What a client sends under these names is dropped.
pub const SYSTEM_PROPERTIES: [&str; 6] = ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"];

/// Returns the id of a stored item.
pub(crate) fn id_of(record: &Record) -> &str {
    record.body.get("id").and_then(ValueRef::as_str).unwrap_or_default()
}

/// A living item. Only the gate makes one, so holding an `Item` means that it had not expired at the request's `now`.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its resource id.
    pub rid: ItemRid,
    /// The sequence of its last write.
    pub sequence: Sequence,
    /// The LSN of its last write.
    pub lsn: u64,
    /// The time of its last write, seconds since 1970.
    pub ts: u64,
    /// Its version, as opaque text.
    pub etag: Etag,
    /// What the user stored, without system properties.
    pub body: Document,
}

impl Item {
    pub(crate) fn new(container: ContainerRid, record: Record) -> Item {
        let Record { number, header, body } = record;
        Item {
            rid: ItemRid { container, number: number.0 },
            sequence: header.sequence,
            lsn: header.lsn,
            ts: header.ts,
            etag: Etag::new(header.sequence, header.ts),
            body,
        }
    }

    /// Returns the user's id.
    pub fn id(&self) -> &str {
        self.body.get("id").and_then(ValueRef::as_str).unwrap_or_default()
    }

    /// `dbs/…/colls/…/docs/…/`.
    pub fn self_link(&self) -> String {
        let container = self.rid.container;
        format!("dbs/{}/colls/{container}/docs/{}/", container.database_rid(), self.rid)
    }

    /// Returns a system property as a value, for filters.
    pub(crate) fn system_property(&self, name: &str) -> Option<Value> {
        match name {
            "_rid" => Some(Value::String(self.rid.to_string())),
            "_self" => Some(Value::String(self.self_link())),
            "_etag" => Some(Value::String(self.etag.to_string())),
            "_attachments" => Some(Value::String("attachments/".into())),
            "_ts" => Some(Value::Int(self.ts as i64)),
            _ => None,
        }
    }

    /// Writes the item as JSON text: the user's members in their order, then the system's.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        self.write_json_with(out, SystemMembers::All);
    }

    /// Does the same, with these of the system's members.
    pub fn write_json_with(&self, out: &mut Vec<u8>, members: SystemMembers) {
        // Text takes a little more space than the stored form, and the system's members some 300 bytes.
        let body = self.body.as_bytes().len();
        out.reserve(body + body / 8 + 320);
        document::write_json(self.body.root(), out);
        let closed = out.pop();
        debug_assert_eq!(closed, Some(b'}'), "the body is an object");
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        let Item { rid, etag, ts, .. } = self;
        out.extend_from_slice(br#""_rid":""#);
        rid.append_to(out);
        if members == SystemMembers::All {
            let container = rid.container;
            out.extend_from_slice(br#"","_self":"dbs/"#);
            container.database_rid().append_to(out);
            out.extend_from_slice(b"/colls/");
            container.append_to(out);
            out.extend_from_slice(b"/docs/");
            rid.append_to(out);
            out.push(b'/');
        }
        out.extend_from_slice(br#"","_etag":"\""#);
        etag.append_bare_to(out);
        out.extend_from_slice(br#"\"","#);
        if members == SystemMembers::All {
            out.extend_from_slice(br#""_attachments":"attachments/","#);
        }
        write!(out, r#""_ts":{ts}}}"#).expect("writing to memory cannot fail");
    }

    /// Returns what [`Item::write_json`] writes.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_json(&mut out);
        out
    }
}

/// Which of the system's members an item is shown with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemMembers {
    /// All of them.
    All,
    /// Those that say something of this version: not `_self` and `_attachments`.
    WithoutLinks,
}
