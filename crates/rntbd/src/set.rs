//! Sets of tokens as tables: one row (id, name, type, field) for each token, from which reading and writing are both made.

use crate::error::{Broken, Error, Refusal, Refused};
use crate::kinds::{
    ConsistencyLevel, IndexingDirective, Kind, PriorityLevel, ReadFeedKeyType, ReturnPreference,
    SerializationFormat,
};
use crate::token::{Tokens, Value};
use crate::{ActivityId, TooLong};

/// A row of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) id: u16,
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// A set of tokens. Implemented by [`token_set`].
pub(crate) trait TokenSet<'a>: Default {
    /// The rows, in the order in which they are written.
    #[cfg(test)]
    const ROWS: &'static [Row];

    /// Takes the value of one token; those that the table does not have are ignored.
    fn set(&mut self, id: u16, value: Value<'a>) -> Result<(), Refusal>;

    /// Appends all tokens that have a value.
    fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong>;
}

/// A set of which one token says whether a payload follows the frame.
pub(crate) trait WithPayload<'a>: TokenSet<'a> {
    /// The id of that token.
    const PAYLOAD_PRESENT: u16;

    fn payload_present(&self) -> Option<bool>;

    fn transport_request_id(&self) -> Option<u32>;
}

/// Reads the tokens of a frame that no payload follows.
pub(crate) fn decode<'a, S: TokenSet<'a>>(bytes: &'a [u8]) -> Result<S, Error> {
    let (set, refusal) = read(bytes, None)?;
    refusal.map_or(Ok(set), |refusal| {
        Err(Error::Refused(Refused { refusal, transport_request_id: None, has_payload: false }))
    })
}

/// Reads the tokens of a frame that a payload may follow. What comes next in the connection is known even if they are refused.
pub(crate) fn decode_with_payload<'a, S: WithPayload<'a>>(bytes: &'a [u8]) -> Result<S, Error> {
    let (set, refusal): (S, _) = read(bytes, Some(S::PAYLOAD_PRESENT))?;
    let has_payload = set.payload_present().ok_or(Broken::PayloadUnknown)?;
    let transport_request_id = set.transport_request_id();
    refusal.map_or(Ok(set), |refusal| {
        Err(Error::Refused(Refused { refusal, transport_request_id, has_payload }))
    })
}

/// Reads all tokens. The first refusal does not end the reading, because the answer to the client needs other tokens; but
/// the token that says whether a payload follows must be unambiguous.
fn read<'a, S: TokenSet<'a>>(
    bytes: &'a [u8],
    payload_present: Option<u16>,
) -> Result<(S, Option<Refusal>), Broken> {
    let mut set = S::default();
    let mut refusal = None;
    for token in Tokens::new(bytes) {
        let (id, value) = token?;
        if let Err(found) = set.set(id, value) {
            if payload_present == Some(id) {
                return Err(Broken::PayloadUnknown);
            }
            refusal = refusal.or(Some(found));
        }
    }
    Ok((set, refusal))
}

impl Row {
    /// Stores the value of this row's token.
    pub(crate) fn store<T>(self, field: &mut Option<T>, value: Result<T, Invalid>) -> Result<(), Refusal> {
        let Row { id, name, .. } = self;
        let value = value.map_err(|invalid| match invalid {
            Invalid::NotUtf8 => Refusal::NotUtf8 { id, name },
            Invalid::Unknown(number) => Refusal::UnknownValue { id, name, number },
        })?;
        if field.is_some() {
            return Err(Refusal::Twice { id, name });
        }
        *field = Some(value);
        Ok(())
    }

    pub(crate) fn wrong_kind(self, found: Kind) -> Refusal {
        Refusal::WrongKind { id: self.id, name: self.name, expected: self.kind, found }
    }
}

/// Why a value of the right type cannot be that of its field.
#[derive(Debug)]
pub(crate) enum Invalid {
    NotUtf8,
    Unknown(u8),
}

/// The type of a field, made of the value `R` of a token and made back into it.
pub(crate) trait Field<R>: Sized {
    fn parse(raw: R) -> Result<Self, Invalid>;
    fn raw(self) -> R;
}

/// Fields that are the values themselves.
macro_rules! plain {
    ($($type:ty),*) => { $(
        impl<'a> Field<$type> for $type {
            fn parse(raw: $type) -> Result<Self, Invalid> {
                Ok(raw)
            }

            fn raw(self) -> $type {
                self
            }
        }
    )* };
}

plain!(u8, u32, i32, i64, f64, &'a [u8]);

/// Fields that are enums.
macro_rules! enums {
    ($($type:ty),*) => { $(
        impl Field<u8> for $type {
            fn parse(raw: u8) -> Result<Self, Invalid> {
                Self::from_number(raw).ok_or(Invalid::Unknown(raw))
            }

            fn raw(self) -> u8 {
                self.number()
            }
        }
    )* };
}

enums!(
    ConsistencyLevel,
    IndexingDirective,
    PriorityLevel,
    ReadFeedKeyType,
    ReturnPreference,
    SerializationFormat
);

/// Any byte but 0 is true.
impl Field<u8> for bool {
    fn parse(raw: u8) -> Result<Self, Invalid> {
        Ok(raw != 0)
    }

    fn raw(self) -> u8 {
        u8::from(self)
    }
}

/// A signed number that a table calls unsigned: all bits set is -1.
impl Field<u32> for i32 {
    fn parse(raw: u32) -> Result<Self, Invalid> {
        Ok(raw as i32)
    }

    fn raw(self) -> u32 {
        self as u32
    }
}

impl Field<[u8; 16]> for ActivityId {
    fn parse(raw: [u8; 16]) -> Result<Self, Invalid> {
        Ok(Self(raw))
    }

    fn raw(self) -> [u8; 16] {
        self.0
    }
}

impl<'a> Field<&'a [u8]> for &'a str {
    fn parse(raw: &'a [u8]) -> Result<Self, Invalid> {
        std::str::from_utf8(raw).map_err(|_| Invalid::NotUtf8)
    }

    fn raw(self) -> &'a [u8] {
        self.as_bytes()
    }
}

/// Defines a set of tokens by its table.
///
/// A row is `id "name" Kind => field: Type`, where the value of the kind must be a [`Field`] of the type: the compiler checks it.
/// After the kind that is written, other kinds may follow that are accepted too: `ULong | Long`.
macro_rules! token_set {
    (
        $(#[$meta:meta])*
        pub struct $set:ident<'a> {
            $(
                $(#[$doc:meta])*
                $id:literal $name:literal $kind:ident $(| $also:ident)* => $field:ident: $type:ty,
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct $set<'a> {
            $(
                #[doc = concat!("Token `", stringify!($id), "` ", $name, " (", stringify!($kind), ").")]
                $(#[$doc])*
                pub $field: Option<$type>,
            )*
        }

        impl<'a> $crate::set::TokenSet<'a> for $set<'a> {
            #[cfg(test)]
            const ROWS: &'static [$crate::set::Row] = &[$(
                $crate::set::Row { id: $id, name: $name, kind: $crate::kinds::Kind::$kind },
            )*];

            fn set(&mut self, id: u16, value: $crate::token::Value<'a>) -> Result<(), $crate::Refusal> {
                use $crate::kinds::Kind;
                use $crate::set::{Field, Row};
                use $crate::token::Value;

                match id {
                    $(
                        $id => {
                            let row = Row { id: $id, name: $name, kind: Kind::$kind };
                            match value {
                                Value::$kind(raw) => row.store(&mut self.$field, Field::parse(raw)),
                                $(Value::$also(raw) => row.store(&mut self.$field, Field::parse(raw)),)*
                                other => Err(row.wrong_kind(other.kind())),
                            }
                        }
                    )*
                    _ => Ok(()),
                }
            }

            fn write(&self, out: &mut Vec<u8>) -> Result<(), $crate::TooLong> {
                use $crate::set::Field;
                use $crate::token::Value;

                $(
                    if let Some(value) = self.$field {
                        Value::$kind(value.raw()).write($id, $name, out)?;
                    }
                )*
                Ok(())
            }
        }
    };
}

pub(crate) use token_set;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Row, TokenSet};
    use crate::{AnswerTokens, ContextAnswer, ContextRequest, RequestTokens};

    #[test]
    fn the_tables_have_the_ids_names_and_types_of_the_protocol() {
        let tables: [(&str, &[Row]); 4] = [
            ("request", RequestTokens::ROWS),
            ("answer", AnswerTokens::ROWS),
            ("context-request", ContextRequest::ROWS),
            ("context-answer", ContextAnswer::ROWS),
        ];
        let mut found = BTreeSet::new();
        for (direction, rows) in tables {
            for Row { id, name, kind } in rows {
                assert!(found.insert(format!("{direction} {id:04X} {kind} {name}")), "{direction} {id:04X}");
            }
        }
        let expected = include_str!("../tests/vectors/tokens.txt").lines();
        let expected: BTreeSet<_> =
            expected.filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
        let different: Vec<_> = found.symmetric_difference(&expected).collect();
        assert!(different.is_empty(), "{different:#?}");
    }
}
