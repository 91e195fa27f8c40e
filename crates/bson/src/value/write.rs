//! Writing BSON field by field, without a tree in between.

use crate::value::raw::RawDocument;
use crate::value::view::{BinaryRef, RegexRef, ValueRef};

/// A writer of one BSON document.
#[derive(Debug, Clone)]
pub struct Writer {
    bytes: Vec<u8>,
    /// The open documents and arrays; the first is the document itself.
    open: Vec<Frame>,
}

#[derive(Debug, Clone)]
struct Frame {
    start: usize,
    /// Items written so far, if this is an array.
    items: Option<usize>,
}

impl Default for Writer {
    fn default() -> Writer {
        Writer::with_capacity(256)
    }
}

impl Writer {
    /// Creates a writer with a buffer of that many bytes.
    pub fn with_capacity(bytes: usize) -> Writer {
        let mut buffer = Vec::with_capacity(bytes);
        buffer.extend_from_slice(&[0; 4]);
        Writer::after(buffer)
    }

    /// Continues a finished document. Its bytes are only copied if they are shared.
    pub fn reopen(document: RawDocument) -> Writer {
        let mut bytes = Vec::from(document.into_bytes());
        bytes.pop();
        Writer::after(bytes)
    }

    fn after(bytes: Vec<u8>) -> Writer {
        let mut open = Vec::with_capacity(4);
        open.push(Frame { start: 0, items: None });
        Writer { bytes, open }
    }

    /// Appends a field. A name ends at its first zero byte.
    pub fn field<'a>(&mut self, name: &str, value: impl Into<ValueRef<'a>>) {
        let value = value.into();
        self.name(value.kind() as i8, name);
        self.value(value);
    }

    /// Appends an item to the array that is open.
    pub fn item<'a>(&mut self, value: impl Into<ValueRef<'a>>) {
        let name = self.next_item();
        self.field(&name, value);
    }

    /// Appends a field with a whole document, byte for byte.
    pub fn raw_field(&mut self, name: &str, document: &RawDocument) {
        self.name(3, name);
        self.bytes.extend_from_slice(document.as_bytes());
    }

    /// Appends a whole document to the array that is open, byte for byte.
    pub fn raw_item(&mut self, document: &RawDocument) {
        let name = self.next_item();
        self.raw_field(&name, document);
    }

    /// Opens a document as a field; what follows belongs to it until [`Writer::close`].
    pub fn open_document(&mut self, name: &str) {
        self.name(3, name);
        self.open_frame(None);
    }

    /// Opens an array as a field; what follows belongs to it until [`Writer::close`].
    pub fn open_array(&mut self, name: &str) {
        self.name(4, name);
        self.open_frame(Some(0));
    }

    /// Closes the innermost open document or array.
    pub fn close(&mut self) {
        debug_assert!(self.open.len() > 1, "the document itself is closed by finish");
        if self.open.len() > 1
            && let Some(frame) = self.open.pop()
        {
            self.seal(frame.start);
        }
    }

    /// Returns the number of bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns `true` if nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == 4
    }

    /// Returns the whole document; closes what is open.
    pub fn finish(mut self) -> RawDocument {
        while let Some(frame) = self.open.pop() {
            self.seal(frame.start);
        }
        RawDocument::from_writer(self.bytes)
    }

    fn open_frame(&mut self, items: Option<usize>) {
        self.open.push(Frame { start: self.bytes.len(), items });
        self.bytes.extend_from_slice(&[0; 4]);
    }

    fn seal(&mut self, start: usize) {
        self.bytes.push(0);
        let length = (self.bytes.len() - start) as i32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    fn next_item(&mut self) -> String {
        let items = self.open.last_mut().and_then(|frame| frame.items.as_mut());
        debug_assert!(items.is_some(), "an item outside of an array");
        items.map_or_else(String::new, |items| {
            *items += 1;
            (*items - 1).to_string()
        })
    }

    fn name(&mut self, code: i8, name: &str) {
        self.bytes.push(code as u8);
        self.c_string(name);
    }

    fn c_string(&mut self, text: &str) {
        let end = text.bytes().position(|byte| byte == 0).unwrap_or(text.len());
        self.bytes.extend_from_slice(&text.as_bytes()[..end]);
        self.bytes.push(0);
    }

    fn string(&mut self, text: &str) {
        self.bytes.extend_from_slice(&(text.len() as i32 + 1).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
    }

    fn elements<'a>(
        &mut self,
        bytes: Option<&[u8]>,
        items: Option<usize>,
        fields: impl Iterator<Item = (Option<&'a str>, ValueRef<'a>)>,
    ) {
        self.open_frame(items);
        match bytes {
            Some(bytes) => self.bytes.extend_from_slice(bytes),
            None => {
                for (name, value) in fields {
                    match name {
                        Some(name) => self.field(name, value),
                        None => self.item(value),
                    }
                }
            }
        }
        self.close();
    }

    fn value(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Double(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
            ValueRef::String(text) | ValueRef::JavaScript(text) | ValueRef::Symbol(text) => self.string(text),
            ValueRef::Document(document) => {
                let fields = document.iter().map(|(name, value)| (Some(name), value));
                self.elements(document.elements(), None, fields);
            }
            ValueRef::Array(items) => {
                self.elements(items.elements(), Some(0), items.iter().map(|value| (None, value)));
            }
            ValueRef::Binary(BinaryRef { subtype, bytes }) => {
                self.bytes.extend_from_slice(&(bytes.len() as i32).to_le_bytes());
                self.bytes.push(subtype);
                self.bytes.extend_from_slice(bytes);
            }
            ValueRef::Undefined | ValueRef::Null | ValueRef::MinKey | ValueRef::MaxKey => {}
            ValueRef::ObjectId(id) => self.bytes.extend_from_slice(&id.0),
            ValueRef::Bool(value) => self.bytes.push(u8::from(value)),
            ValueRef::DateTime(value) | ValueRef::Int64(value) => {
                self.bytes.extend_from_slice(&value.to_le_bytes());
            }
            ValueRef::Regex(RegexRef { pattern, options }) => {
                self.c_string(pattern);
                self.c_string(options);
            }
            ValueRef::DbPointer { namespace, id } => {
                self.string(namespace);
                self.bytes.extend_from_slice(&id.0);
            }
            ValueRef::JavaScriptWithScope { code, scope } => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(&[0; 4]);
                self.string(code);
                let fields = scope.iter().map(|(name, value)| (Some(name), value));
                self.elements(scope.elements(), None, fields);
                let length = (self.bytes.len() - start) as i32;
                self.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
            }
            ValueRef::Int32(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
            ValueRef::Timestamp(timestamp) => {
                let bits = u64::from(timestamp.seconds) << 32 | u64::from(timestamp.increment);
                self.bytes.extend_from_slice(&bits.to_le_bytes());
            }
            ValueRef::Decimal128(value) => self.bytes.extend_from_slice(&value.0),
        }
    }
}

macro_rules! into_view {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl<'a> From<$from> for ValueRef<'a> {
            fn from(value: $from) -> ValueRef<'a> {
                ValueRef::$variant(value)
            }
        })*
    };
}

into_view! {
    f64 => Double, &'a str => String, bool => Bool, i32 => Int32, i64 => Int64, crate::ObjectId => ObjectId,
    crate::Timestamp => Timestamp, crate::DocumentRef<'a> => Document, crate::ArrayRef<'a> => Array,
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{Binary, Decimal128, Document, Error, Kind, ObjectId, Regex, Timestamp, Value, limits};

    fn every_type() -> Document {
        Document::new()
            .with("double", 1.5)
            .with("string", "a\0b é")
            .with("document", Document::new().with("x", 1).with("y", Document::new()))
            .with("array", vec![Value::Int32(1), Value::Array(vec![]), Value::String("z".into())])
            .with("binary", Binary { subtype: 4, bytes: vec![1, 2, 3] })
            .with("undefined", Value::Undefined)
            .with("id", ObjectId([7; 12]))
            .with("bool", true)
            .with("date", Value::DateTime(-1))
            .with("null", Value::Null)
            .with("regex", Regex { pattern: "^a".into(), options: "im".into() })
            .with("pointer", Value::DbPointer { namespace: "a.b".into(), id: ObjectId([1; 12]) })
            .with("code", Value::JavaScript("f()".into()))
            .with("symbol", Value::Symbol("s".into()))
            .with(
                "scoped",
                Value::JavaScriptWithScope { code: "g()".into(), scope: Document::new().with("v", 2) },
            )
            .with("int", 3)
            .with("timestamp", Timestamp { seconds: 5, increment: 6 })
            .with("long", i64::MIN)
            .with("decimal", Decimal128([9; 16]))
            .with("min", Value::MinKey)
            .with("max", Value::MaxKey)
    }

    #[test]
    fn every_type_reads_back_as_written() {
        let document = every_type();
        assert_eq!(document.len(), Kind::ALL.len());
        let raw = RawDocument::from_document(&document);
        assert_eq!(raw.to_document(), document);
        assert_eq!(RawDocument::parse(Bytes::copy_from_slice(raw.as_bytes())), Ok(raw.clone()));
        assert_eq!(RawDocument::from_view(raw.view()), raw, "bytes copied as bytes");
        for (name, value) in document.iter() {
            let found = raw.get(name).map(ValueRef::to_value);
            assert_eq!(found.as_ref(), Some(value), "{name} is found behind all before it");
        }
        assert!(raw.get("missing").is_none());
    }

    #[test]
    fn a_document_that_was_finished_can_be_gone_on_with() {
        let mut writer = Writer::reopen(RawDocument::from_document(&Document::new().with("a", 1)));
        writer.field("b", 2);
        let both = RawDocument::from_document(&Document::new().with("a", 1).with("b", 2));
        assert_eq!(writer.finish(), both);
        assert_eq!(Writer::reopen(both.clone()).finish(), both);
        assert_eq!(Writer::reopen(RawDocument::default()).finish(), RawDocument::default());
    }

    #[test]
    fn cut_or_stretched_bytes_are_refused() {
        let raw = RawDocument::from_document(&every_type());
        for end in 0..raw.as_bytes().len() {
            assert!(RawDocument::parse(Bytes::copy_from_slice(&raw.as_bytes()[..end])).is_err(), "{end}");
        }
        let longer = [raw.as_bytes(), &[0]].concat();
        assert!(RawDocument::parse(longer.into()).is_err());
    }

    /// Changes each byte to some others: the check answers, and bytes that it accepts can be read to the end.
    #[test]
    fn a_changed_byte_is_refused_or_harmless() {
        let raw = RawDocument::from_document(&every_type());
        for at in 0..raw.as_bytes().len() {
            for byte in [0x00, 0x01, 0x03, 0x04, 0x05, 0x7F, 0x80, 0xFF] {
                let mut bytes = raw.as_bytes().to_vec();
                bytes[at] = byte;
                if let Ok(read) = RawDocument::parse(bytes.into()) {
                    assert_eq!(
                        RawDocument::from_document(&read.to_document()).as_bytes().len(),
                        read.as_bytes().len()
                    );
                }
            }
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |levels: usize| {
            let mut writer = Writer::default();
            for _ in 0..levels - 1 {
                writer.open_document("a");
            }
            RawDocument::parse(writer.finish().into_bytes())
        };
        assert!(nested(limits::DEPTH_MAX).is_ok());
        assert_eq!(nested(limits::DEPTH_MAX + 1), Err(Error::TooDeep));
    }

    #[test]
    fn fields_are_written_one_by_one() {
        let mut writer = Writer::default();
        assert!(writer.is_empty());
        writer.open_document("cursor");
        writer.open_array("firstBatch");
        writer.raw_item(&RawDocument::from_document(&Document::new().with("a", 1)));
        writer.item(2);
        writer.close();
        writer.field("id", 0_i64);
        writer.close();
        writer.field("ok", 1.0);
        let batch = vec![Value::Document(Document::new().with("a", 1)), Value::Int32(2)];
        let cursor = Document::new().with("firstBatch", batch).with("id", 0_i64);
        assert_eq!(writer.finish().to_document(), Document::new().with("cursor", cursor).with("ok", 1.0));
    }
}
