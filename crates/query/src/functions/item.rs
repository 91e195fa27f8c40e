//! Functions of whole items.

use document::{ItemRid, Value};

use super::{Arg, Entry};
use crate::functions::context::Context;

/// The functions of this file.
pub(crate) const TABLE: &[Entry] = &[Entry { name: "DOCUMENTID", least: 1, most: 1, run: document_id }];

/// Returns the item's number inside its container, read from its resource id.
fn document_id(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    let rid: ItemRid = arguments[0]?.get("_rid")?.as_str()?.parse().ok()?;
    i64::try_from(rid.number).ok().map(Value::Int)
}

#[cfg(test)]
mod tests {
    use document::ContainerRid;

    use super::super::testing::{call, check};
    use super::*;

    #[test]
    fn the_number_of_an_item() {
        let rid = ItemRid { container: ContainerRid { database: 5, container: 7 }, number: 4711 };
        assert_eq!(call("DOCUMENTID", &format!(r#"{{"id": "a", "_rid": "{rid}"}}"#)), Some(Value::Int(4711)));
        check(&[
            ("DOCUMENTID", r#"{"id": "a"}"#, "undefined"),
            ("DOCUMENTID", r#"{"_rid": "abc"}"#, "undefined"),
            ("DOCUMENTID", r#"{"_rid": 5}"#, "undefined"),
            ("DOCUMENTID", r#""a""#, "undefined"),
            ("DOCUMENTID", "undefined", "undefined"),
        ]);
    }
}
