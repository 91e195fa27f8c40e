//! The BSON that the benchmark needs: written in order, read by walking.

use anyhow::{Context, Result, bail, ensure};

/// A document under construction.
///
/// ```
/// use bolide_bench::client::{Bson, Value};
/// let bytes = Bson::new().text("find", "c").document("filter", Bson::new().int("_id", 7)).finish();
/// let filter = Value::field(&bytes, "filter").unwrap().unwrap();
/// assert_eq!(Value::field(filter.bytes().unwrap(), "_id").unwrap().unwrap().number(), Some(7.0));
/// ```
#[derive(Clone, Default)]
pub struct Bson(Vec<u8>);

impl Bson {
    pub fn new() -> Bson {
        Bson::default()
    }

    fn head(&mut self, kind: u8, name: &str) {
        self.0.push(kind);
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(0);
    }

    fn with(mut self, kind: u8, name: &str, value: &[u8]) -> Bson {
        self.head(kind, name);
        self.0.extend_from_slice(value);
        self
    }

    pub fn double(self, name: &str, value: f64) -> Bson {
        self.with(1, name, &value.to_le_bytes())
    }

    pub fn text(mut self, name: &str, value: &str) -> Bson {
        self.head(2, name);
        self.0.extend_from_slice(&(value.len() as i32 + 1).to_le_bytes());
        self.0.extend_from_slice(value.as_bytes());
        self.0.push(0);
        self
    }

    pub fn document(self, name: &str, value: Bson) -> Bson {
        self.with(3, name, &value.finish())
    }

    /// Adds a finished document unchanged.
    pub fn raw(self, name: &str, value: &[u8]) -> Bson {
        self.with(3, name, value)
    }

    /// Adds an array of finished documents.
    pub fn array(self, name: &str, values: impl IntoIterator<Item = Vec<u8>>) -> Bson {
        let mut inner = Bson::new();
        for (at, value) in values.into_iter().enumerate() {
            inner = inner.raw(&at.to_string(), &value);
        }
        self.with(4, name, &inner.finish())
    }

    /// Adds an array whose elements are already named by their positions.
    pub fn array_of(self, name: &str, elements: Bson) -> Bson {
        self.with(4, name, &elements.finish())
    }

    pub fn uuid(mut self, name: &str, value: [u8; 16]) -> Bson {
        self.head(5, name);
        self.0.extend_from_slice(&16_i32.to_le_bytes());
        self.0.push(4);
        self.0.extend_from_slice(&value);
        self
    }

    pub fn bool(self, name: &str, value: bool) -> Bson {
        self.with(8, name, &[u8::from(value)])
    }

    /// Milliseconds since 1970.
    pub fn date(self, name: &str, value: i64) -> Bson {
        self.with(9, name, &value.to_le_bytes())
    }

    pub fn int(self, name: &str, value: i32) -> Bson {
        self.with(16, name, &value.to_le_bytes())
    }

    pub fn long(self, name: &str, value: i64) -> Bson {
        self.with(18, name, &value.to_le_bytes())
    }

    pub fn finish(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len() + 5);
        bytes.extend_from_slice(&(self.0.len() as i32 + 5).to_le_bytes());
        bytes.extend_from_slice(&self.0);
        bytes.push(0);
        bytes
    }
}

/// A value that was read; a type that the benchmark does not use is `Other`, with its bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Double(f64),
    Text(&'a str),
    Document(&'a [u8]),
    Array(&'a [u8]),
    Bool(bool),
    Date(i64),
    Int(i32),
    Long(i64),
    Other(u8, &'a [u8]),
}

impl<'a> Value<'a> {
    /// Returns the field of that name of a document.
    pub fn field(document: &'a [u8], name: &str) -> Result<Option<Value<'a>>> {
        for field in Fields::of(document)? {
            let (found, value) = field?;
            if found == name {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Returns the bytes of a document or an array.
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Value::Document(bytes) | Value::Array(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Double(value) => Some(*value),
            Value::Int(value) => Some(f64::from(*value)),
            Value::Long(value) => Some(*value as f64),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&'a str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The fields of a document, in order.
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn of(document: &'a [u8]) -> Result<Fields<'a>> {
        let length = length(document)?;
        ensure!(
            length == document.len() && length >= 5,
            "a document of {length} bytes in {}",
            document.len()
        );
        Ok(Fields { rest: &document[4..length - 1] })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        ensure!(count <= self.rest.len(), "a document ends within a field");
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.try_into()?)
    }

    fn one(&mut self) -> Result<(&'a str, Value<'a>)> {
        let kind = self.take(1)?[0];
        let end = self.rest.iter().position(|byte| *byte == 0).context("a name without an end")?;
        let name = std::str::from_utf8(self.take(end)?)?;
        self.take(1)?;
        let value = match kind {
            1 => Value::Double(f64::from_le_bytes(self.fixed()?)),
            2 => {
                let length = u32::from_le_bytes(self.fixed()?) as usize;
                let bytes = self.take(length)?;
                Value::Text(std::str::from_utf8(&bytes[..length.saturating_sub(1)])?)
            }
            3 | 4 => {
                let bytes = self.take(length(self.rest)?)?;
                if kind == 3 { Value::Document(bytes) } else { Value::Array(bytes) }
            }
            5 => {
                let length = u32::from_le_bytes(self.fixed()?) as usize;
                Value::Other(kind, self.take(length + 1)?)
            }
            6 | 10 | 127 | 255 => Value::Other(kind, &[]),
            7 => Value::Other(kind, self.take(12)?),
            8 => Value::Bool(self.take(1)?[0] != 0),
            9 => Value::Date(i64::from_le_bytes(self.fixed()?)),
            16 => Value::Int(i32::from_le_bytes(self.fixed()?)),
            17 => Value::Other(kind, self.take(8)?),
            18 => Value::Long(i64::from_le_bytes(self.fixed()?)),
            19 => Value::Other(kind, self.take(16)?),
            _ => bail!("a field of kind {kind}"),
        };
        Ok((name, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(&'a str, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.rest.is_empty()).then(|| self.one())
    }
}

fn length(bytes: &[u8]) -> Result<usize> {
    let head = bytes.get(..4).context("a document without a length")?;
    Ok(u32::from_le_bytes(head.try_into()?) as usize)
}
