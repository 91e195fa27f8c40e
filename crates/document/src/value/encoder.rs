//! An incremental encoder of the stored form, for parsers that build no tree.
//!
//! Arrays and objects are opened, filled and closed; their lengths are filled in at the end. Names of objects that
//! come from outside are checked for repetition on the way: small objects at once, so that the error points at the
//! name, large ones by one sort at their end, so that a hostile object costs no more than any other.

use crate::error::{Error, Result};
use crate::value::binary::{
    ARRAY, DOUBLE, Document, FALSE, FRAME_BYTES, INT8, INT32, INT64, LONG, NULL, OBJECT, STRING, TRUE,
};

/// Objects up to this size compare each new name with all earlier ones.
const FEW_NAMES: usize = 24;

/// An encoder of one document. Callers bound the depth.
#[derive(Default)]
pub(crate) struct Encoder {
    out: Vec<u8>,
    /// Where the names of the open objects are in the output; one stack for all levels.
    names: Vec<(usize, usize)>,
}

/// An open array or object.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    start: usize,
    /// Where this object's names start on the stack.
    names: usize,
}

impl Encoder {
    pub(crate) fn with_capacity(bytes: usize) -> Encoder {
        Encoder { out: Vec::with_capacity(bytes), names: Vec::new() }
    }

    /// Returns the number of bytes written so far.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    pub(crate) fn null(&mut self) {
        self.out.push(NULL);
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.out.push(if value { TRUE } else { FALSE });
    }

    pub(crate) fn int(&mut self, value: i64) {
        if let Ok(small) = i8::try_from(value) {
            self.out.extend_from_slice(&[INT8, small.to_le_bytes()[0]]);
        } else if let Ok(medium) = i32::try_from(value) {
            self.out.push(INT32);
            self.out.extend_from_slice(&medium.to_le_bytes());
        } else {
            self.out.push(INT64);
            self.out.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// Writes a finite double: the caller refuses NaN and the infinities.
    pub(crate) fn double(&mut self, value: f64) {
        debug_assert!(value.is_finite(), "only finite numbers are stored");
        self.out.push(DOUBLE);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn string(&mut self, text: &str) {
        self.out.push(STRING);
        self.text(text);
    }

    /// Copies bytes that are already in the stored form.
    pub(crate) fn copy(&mut self, stored: &[u8]) {
        self.out.extend_from_slice(stored);
    }

    /// Writes the name of a member of `object`; its value must follow.
    pub(crate) fn name(&mut self, object: Frame, name: &str) -> Result<()> {
        let earlier = &self.names[object.names..];
        let repeated = |&(start, end): &(usize, usize)| &self.out[start..end] == name.as_bytes();
        if earlier.len() < FEW_NAMES && earlier.iter().any(repeated) {
            return Err(repeated_name(name));
        }
        self.text(name);
        self.names.push((self.out.len() - name.len(), self.out.len()));
        Ok(())
    }

    /// Writes the name of a member that the caller knows to be new.
    pub(crate) fn new_name(&mut self, name: &str) {
        self.text(name);
    }

    fn text(&mut self, text: &str) {
        if text.len() < LONG.into() {
            self.out.push(text.len() as u8);
        } else {
            self.out.push(LONG);
            self.out.extend_from_slice(&(text.len() as u32).to_le_bytes());
        }
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn open_array(&mut self) -> Frame {
        self.open(ARRAY)
    }

    pub(crate) fn open_object(&mut self) -> Frame {
        self.open(OBJECT)
    }

    fn open(&mut self, tag: u8) -> Frame {
        let frame = Frame { start: self.out.len(), names: self.names.len() };
        self.out.extend_from_slice(&[tag, 0, 0, 0, 0, 0, 0, 0, 0]);
        frame
    }

    /// Ends an array, or an object whose names were all new, with the number of its entries.
    pub(crate) fn close(&mut self, frame: Frame, count: usize) {
        let Frame { start, .. } = frame;
        let body = (self.out.len() - start - FRAME_BYTES) as u32;
        self.out[start + 1..start + 5].copy_from_slice(&body.to_le_bytes());
        self.out[start + 5..start + 9].copy_from_slice(&(count as u32).to_le_bytes());
    }

    /// Ends an object whose names went through [`Encoder::name`].
    pub(crate) fn close_object(&mut self, frame: Frame) -> Result<()> {
        let names = &mut self.names[frame.names..];
        let count = names.len();
        if count > FEW_NAMES {
            let text = |&(start, end): &(usize, usize)| &self.out[start..end];
            names.sort_unstable_by(|a, b| text(a).cmp(text(b)));
            if let Some([twice, ..]) = names.windows(2).find(|pair| text(&pair[0]) == text(&pair[1])) {
                return Err(repeated_name(&String::from_utf8_lossy(text(twice))));
            }
        }
        self.names.truncate(frame.names);
        self.close(frame, count);
        Ok(())
    }

    /// Returns the document, unless it outgrew its 32-bit lengths.
    pub(crate) fn finish(self) -> Result<Document> {
        if u32::try_from(self.out.len()).is_err() {
            return Err(Error::invalid("the document is larger than 4 GiB in its stored form"));
        }
        Ok(self.into_document())
    }

    /// Returns the document, known to be small enough.
    pub(crate) fn into_document(self) -> Document {
        Document::from_encoder(self.out)
    }
}

fn repeated_name(name: &str) -> Error {
    Error::invalid(format!("the member name {name:?} occurs more than once in one object"))
}
