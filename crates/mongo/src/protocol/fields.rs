//! Typed access to the fields of a command, with the errors that clients know.
//!
//! Clients send the same number as int32, int64 or double, and a boolean as a number; all are accepted if the value fits. A
//! field that is null counts as absent.

use bson::{ArrayRef, DocumentRef, ValueRef};
use engine::Consent;
use mql::Code;

use crate::protocol::error::{CONFIRM_EXPIRY, Error, Result};

/// The fields of a command, or of a document inside one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a> {
    /// What the fields belong to, as errors say it: the command's name, or `find.collation`.
    pub(crate) owner: &'a str,
    pub(crate) document: DocumentRef<'a>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(owner: &'a str, document: DocumentRef<'a>) -> Fields<'a> {
        Fields { owner, document }
    }

    /// Returns the value, unless it is absent or null.
    pub(crate) fn value(self, name: &str) -> Option<ValueRef<'a>> {
        self.document.get(name).filter(|value| !matches!(value, ValueRef::Null | ValueRef::Undefined))
    }

    pub(crate) fn text(self, name: &str) -> Result<Option<&'a str>> {
        self.typed(name, "'string'", ValueRef::as_str)
    }

    pub(crate) fn document(self, name: &str) -> Result<Option<DocumentRef<'a>>> {
        self.typed(name, "'object'", ValueRef::as_document)
    }

    pub(crate) fn array(self, name: &str) -> Result<Option<ArrayRef<'a>>> {
        self.typed(name, "'array'", ValueRef::as_array)
    }

    /// Returns a boolean; numbers are true unless they are zero.
    pub(crate) fn boolean(self, name: &str) -> Result<Option<bool>> {
        self.typed(name, "s '[bool, long, int, decimal, double]'", truth)
    }

    /// Whether a boolean is there and true.
    pub(crate) fn is_set(self, name: &str) -> Result<bool> {
        Ok(self.boolean(name)?.unwrap_or(false))
    }

    /// Whether the client allows any number of items to expire at once by this command (T30).
    pub(crate) fn consent(self) -> Result<Consent> {
        Ok(if self.is_set(CONFIRM_EXPIRY)? { Consent::Given } else { Consent::NotGiven })
    }

    /// Returns a whole number of any type. A fraction is cut off, as servers do.
    pub(crate) fn integer(self, name: &str) -> Result<Option<i64>> {
        self.typed(name, "s '[long, int, decimal, double]'", whole)
    }

    /// Returns a whole number that is not negative.
    pub(crate) fn count(self, name: &str) -> Result<Option<u64>> {
        match self.integer(name)? {
            Some(number) => match u64::try_from(number) {
                Ok(count) => Ok(Some(count)),
                Err(_) => Err(Error::location(
                    51024,
                    format!("BSON field '{name}' value must be >= 0, actual value '{number}'"),
                )),
            },
            None => Ok(None),
        }
    }

    /// Returns a field that must be there.
    pub(crate) fn required<T>(self, name: &str, found: Option<T>) -> Result<T> {
        found.ok_or_else(|| {
            Error::location(
                40414,
                format!("BSON field '{}.{name}' is missing but a required field", self.owner),
            )
        })
    }

    /// Refuses fields that are in neither list, nor among those that every command has.
    pub(crate) fn only_these_and(self, known: &[&str], more: &[&str]) -> Result<()> {
        match self
            .document
            .iter()
            .find(|(name, _)| !known.contains(name) && !more.contains(name) && !is_generic(name))
        {
            None => Ok(()),
            Some((name, _)) => Err(Error::location(
                40415,
                format!("BSON field '{}.{name}' is an unknown field.", self.owner),
            )),
        }
    }

    /// Refuses fields that are neither among the known ones nor among those that every command has.
    pub(crate) fn only(self, known: &[&str]) -> Result<()> {
        self.only_these_and(known, &[])
    }

    fn typed<T>(
        self,
        name: &str,
        expected: &str,
        read: impl Fn(ValueRef<'a>) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(Error::new(
                Code::TYPE_MISMATCH,
                format!(
                    "BSON field '{}.{name}' is the wrong type '{}', expected type{}{expected}",
                    self.owner,
                    value.kind().alias(),
                    if expected.starts_with('s') { "" } else { " " },
                ),
            )),
        }
    }
}

/// Fields that any command may carry.
pub(crate) fn is_generic(name: &str) -> bool {
    name.starts_with('$')
        || matches!(
            name,
            "lsid"
                | "txnNumber"
                | "stmtId"
                | "stmtIds"
                | "startTransaction"
                | "autocommit"
                | "readConcern"
                | "writeConcern"
                | "maxTimeMS"
                | "maxTimeMSOpOnly"
                | "comment"
                | "apiVersion"
                | "apiStrict"
                | "apiDeprecationErrors"
                | "rawData"
                | "databaseVersion"
                | "shardVersion"
                | "mayBypassWriteBlocking"
        )
}

/// Returns the boolean that a value stands for.
pub(crate) fn truth(value: ValueRef<'_>) -> Option<bool> {
    match value {
        ValueRef::Bool(value) => Some(value),
        ValueRef::Int32(value) => Some(value != 0),
        ValueRef::Int64(value) => Some(value != 0),
        ValueRef::Double(value) => Some(value != 0.0),
        ValueRef::Decimal128(value) => Some(!value.is_zero()),
        _ => None,
    }
}

/// Returns the whole number that a value stands for.
pub(crate) fn whole(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int32(value) => Some(value.into()),
        ValueRef::Int64(value) => Some(value),
        ValueRef::Double(value) => (!value.is_nan()).then_some(value as i64),
        ValueRef::Decimal128(value) => (!value.is_nan()).then(|| value.to_f64() as i64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bson::Document;

    use super::*;

    #[test]
    fn numbers_of_all_types_are_numbers_and_the_rest_is_refused_by_name() {
        let document = Document::new()
            .with("a", 5)
            .with("b", 5_i64)
            .with("c", 5.9)
            .with("d", "5")
            .with("e", bson::Value::Null);
        let fields = Fields::new("find", document.view());
        for name in ["a", "b", "c"] {
            assert_eq!(fields.integer(name), Ok(Some(5)));
            assert_eq!(fields.boolean(name), Ok(Some(true)));
        }
        assert_eq!(fields.integer("e"), Ok(None));
        let error = fields.integer("d").unwrap_err();
        assert_eq!(error.code, Code::TYPE_MISMATCH);
        assert_eq!(
            error.message,
            "BSON field 'find.d' is the wrong type 'string', expected types '[long, int, decimal, double]'"
        );
        let error = fields.document("d").unwrap_err();
        assert_eq!(error.message, "BSON field 'find.d' is the wrong type 'string', expected type 'object'");
        assert_eq!(fields.only(&["a", "b", "c", "d"]).unwrap_err().code.0, 40415);
    }
}
