//! One token: its type, its value, and how both stand in bytes.

use crate::error::{Broken, TooLong};
use crate::kinds::Kind;

/// A value as it stands in a frame. Texts are bytes here: only those that are used need be UTF-8.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Byte(u8),
    UShort(u16),
    ULong(u32),
    Long(i32),
    ULongLong(u64),
    LongLong(i64),
    Guid([u8; 16]),
    SmallString(&'a [u8]),
    String(&'a [u8]),
    ULongString(&'a [u8]),
    SmallBytes(&'a [u8]),
    Bytes(&'a [u8]),
    ULongBytes(&'a [u8]),
    Float(f32),
    Double(f64),
    Invalid,
}

impl Value<'_> {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Value::Byte(_) => Kind::Byte,
            Value::UShort(_) => Kind::UShort,
            Value::ULong(_) => Kind::ULong,
            Value::Long(_) => Kind::Long,
            Value::ULongLong(_) => Kind::ULongLong,
            Value::LongLong(_) => Kind::LongLong,
            Value::Guid(_) => Kind::Guid,
            Value::SmallString(_) => Kind::SmallString,
            Value::String(_) => Kind::String,
            Value::ULongString(_) => Kind::ULongString,
            Value::SmallBytes(_) => Kind::SmallBytes,
            Value::Bytes(_) => Kind::Bytes,
            Value::ULongBytes(_) => Kind::ULongBytes,
            Value::Float(_) => Kind::Float,
            Value::Double(_) => Kind::Double,
            Value::Invalid => Kind::Invalid,
        }
    }

    /// Appends a token with this value.
    pub(crate) fn write(&self, id: u16, name: &'static str, out: &mut Vec<u8>) -> Result<(), TooLong> {
        out.extend_from_slice(&id.to_le_bytes());
        out.push(self.kind().number());
        match *self {
            Value::Byte(number) => out.push(number),
            Value::UShort(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::ULong(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::Long(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::ULongLong(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::LongLong(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::Guid(bytes) => out.extend_from_slice(&bytes),
            Value::SmallString(bytes) | Value::SmallBytes(bytes) => {
                out.push(fitting(name, bytes.len())?);
                out.extend_from_slice(bytes);
            }
            Value::String(bytes) | Value::Bytes(bytes) => {
                out.extend_from_slice(&fitting::<u16>(name, bytes.len())?.to_le_bytes());
                out.extend_from_slice(bytes);
            }
            Value::ULongString(bytes) | Value::ULongBytes(bytes) => {
                out.extend_from_slice(&fitting::<u32>(name, bytes.len())?.to_le_bytes());
                out.extend_from_slice(bytes);
            }
            Value::Float(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::Double(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::Invalid => {}
        }
        Ok(())
    }
}

/// Returns a length as the integer that stands in the frame, if it fits.
pub(crate) fn fitting<T: TryFrom<usize>>(name: &'static str, bytes: usize) -> Result<T, TooLong> {
    let limit = match size_of::<T>() {
        1 => u8::MAX as usize,
        2 => u16::MAX as usize,
        _ => u32::MAX as usize,
    };
    T::try_from(bytes).map_err(|_| TooLong { name, bytes, limit })
}

/// The tokens of a frame, one after the other. Ends behind the first that cannot be read.
pub(crate) struct Tokens<'a> {
    rest: &'a [u8],
    /// Where the rest begins in all the tokens.
    offset: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, offset: 0 }
    }

    fn read(&mut self) -> Result<(u16, Value<'a>), Broken> {
        let offset = self.offset;
        let mut reader = Reader(self.rest);
        let token = reader.token(offset)?;
        self.offset += self.rest.len() - reader.0.len();
        self.rest = reader.0;
        Ok(token)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Result<(u16, Value<'a>), Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let token = self.read();
        if token.is_err() {
            self.rest = &[];
        }
        Some(token)
    }
}

/// The bytes that are left.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Takes the token that begins here, `offset` bytes behind the first.
    fn token(&mut self, offset: usize) -> Result<(u16, Value<'a>), Broken> {
        let truncated = Broken::Truncated { offset };
        let id = u16::from_le_bytes(self.array().ok_or(truncated)?);
        let [number] = self.array().ok_or(truncated)?;
        let kind = Kind::from_number(number).ok_or(Broken::UnknownKind { id, number, offset })?;
        Ok((id, self.value(kind).ok_or(truncated)?))
    }

    fn value(&mut self, kind: Kind) -> Option<Value<'a>> {
        Some(match kind {
            Kind::Byte => Value::Byte(u8::from_le_bytes(self.array()?)),
            Kind::UShort => Value::UShort(u16::from_le_bytes(self.array()?)),
            Kind::ULong => Value::ULong(u32::from_le_bytes(self.array()?)),
            Kind::Long => Value::Long(i32::from_le_bytes(self.array()?)),
            Kind::ULongLong => Value::ULongLong(u64::from_le_bytes(self.array()?)),
            Kind::LongLong => Value::LongLong(i64::from_le_bytes(self.array()?)),
            Kind::Guid => Value::Guid(self.array()?),
            Kind::SmallString => Value::SmallString(self.small()?),
            Kind::String => Value::String(self.medium()?),
            Kind::ULongString => Value::ULongString(self.large()?),
            Kind::SmallBytes => Value::SmallBytes(self.small()?),
            Kind::Bytes => Value::Bytes(self.medium()?),
            Kind::ULongBytes => Value::ULongBytes(self.large()?),
            Kind::Float => Value::Float(f32::from_le_bytes(self.array()?)),
            Kind::Double => Value::Double(f64::from_le_bytes(self.array()?)),
            Kind::Invalid => Value::Invalid,
        })
    }

    fn small(&mut self) -> Option<&'a [u8]> {
        let length = u8::from_le_bytes(self.array()?);
        self.take(usize::from(length))
    }

    fn medium(&mut self) -> Option<&'a [u8]> {
        let length = u16::from_le_bytes(self.array()?);
        self.take(usize::from(length))
    }

    fn large(&mut self) -> Option<&'a [u8]> {
        let length = u32::from_le_bytes(self.array()?);
        self.take(usize::try_from(length).ok()?)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }
}
