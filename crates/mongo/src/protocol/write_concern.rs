//! `writeConcern` and `readConcern`, as one server that always syncs before it acknowledges can honour them.
//!
//! A write is durable when it is acknowledged, so the server meets every concern that one server can meet. A concern that
//! needs other servers does not prevent the write; the reply notes it beside the result, as replica sets do.

use bson::{Document, ValueRef};
use mql::Code;

use crate::protocol::error::{Error, Result};
use crate::protocol::fields::{Fields, whole};
use crate::protocol::settings::Profile;

/// The most servers a set can have, and so the largest `w`.
const SERVERS_MAX: i64 = 50;

/// Returns the note on a write concern that cannot be met.
pub(crate) fn unmet(fields: Fields<'_>, profile: &Profile) -> Result<Option<Document>> {
    let Some(concern) = fields.document("writeConcern")? else { return Ok(None) };
    let concern = Fields::new("writeConcern", concern);
    concern.boolean("j")?;
    concern.integer("wtimeout")?;
    match concern.value("w") {
        None | Some(ValueRef::String("majority")) => Ok(None),
        Some(ValueRef::String(mode)) => match profile {
            Profile::Standalone => Err(Error::bad_value(
                "cannot use non-majority 'w' mode when a host is not a member of a replica set",
            )),
            Profile::ReplicaSet { .. } | Profile::Sharded => Ok(Some(concern_error(
                Code::UNKNOWN_REPL_WRITE_CONCERN,
                &format!("No write concern mode named '{mode}' found in replica set configuration"),
            ))),
        },
        Some(value) => {
            let number = whole(value)
                .ok_or_else(|| Error::new(Code::FAILED_TO_PARSE, "w has to be a number or a string"))?;
            if !(0..=SERVERS_MAX).contains(&number) {
                let text = format!(
                    "w has to be a non-negative number and not greater than {SERVERS_MAX}; found: {number}"
                );
                return Err(Error::new(Code::FAILED_TO_PARSE, text));
            }
            match profile {
                _ if number <= 1 => Ok(None),
                Profile::Standalone => {
                    Err(Error::bad_value("cannot use 'w' > 1 when a host is not replicated"))
                }
                Profile::ReplicaSet { .. } | Profile::Sharded => Ok(Some(concern_error(
                    Code::UNSATISFIABLE_WRITE_CONCERN,
                    "Not enough data-bearing nodes",
                ))),
            }
        }
    }
}

fn concern_error(code: Code, text: &str) -> Document {
    Document::new().with("code", code.0).with("codeName", code.name()).with("errmsg", text)
}

/// Checks a read concern; `may_snapshot` says whether the command may read at a snapshot. All levels are the same here: what is acknowledged is durable, and nothing else is ever seen.
pub(crate) fn check_read(fields: Fields<'_>, may_snapshot: bool) -> Result<()> {
    let Some(concern) = fields.document("readConcern")? else { return Ok(()) };
    match Fields::new("readConcern", concern).text("level")? {
        Some("snapshot") if !may_snapshot => Err(Error::new(
            Code::INVALID_OPTIONS,
            format!("The command {} does not support read concern {{ level: \"snapshot\" }}", fields.owner),
        )),
        None | Some("local" | "available" | "majority" | "linearizable" | "snapshot") => Ok(()),
        Some(other) => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field 'readConcern.level' is not a valid value."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use bson::Value;

    use super::*;

    #[test]
    fn one_server_meets_what_one_server_can() {
        let set = Profile::ReplicaSet { name: "s".into() };
        let outcome = |w: Value, profile: &Profile| {
            let command = Document::new().with("writeConcern", Document::new().with("w", w));
            let unmet = unmet(Fields::new("insert", command.view()), profile);
            unmet.map(|unmet| unmet.map(|document| document.get("code").cloned()))
        };
        for met in [Value::Int32(0), Value::Int32(1), Value::String("majority".into()), Value::Double(1.0)] {
            assert_eq!(outcome(met.clone(), &set), Ok(None));
            assert_eq!(outcome(met, &Profile::Standalone), Ok(None));
        }
        assert_eq!(outcome(2.into(), &set), Ok(Some(Some(Value::Int32(100)))));
        assert_eq!(outcome("x".into(), &set), Ok(Some(Some(Value::Int32(79)))));
        assert_eq!(outcome(2.into(), &Profile::Standalone).unwrap_err().code.0, 2);
        assert_eq!(outcome(51.into(), &set).unwrap_err().code.0, 9);
        assert_eq!(outcome((-1).into(), &set).unwrap_err().code.0, 9);
    }
}
