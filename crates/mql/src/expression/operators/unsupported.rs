//! Unsupported operators, refused by name.

use bson::ValueRef;

use crate::error::{Code, Error, Result};
use crate::expression::node::Node;
use crate::expression::parse::Parser;
use crate::expression::table::{Group, own};

pub(crate) const GROUP: Group = Group {
    foldable: false,
    operators: &[
        own("$function", javascript),
        own("$accumulator", javascript),
        own("$where", javascript),
        own("$_internalJsEmit", javascript),
    ],
};

fn javascript(_: &mut Parser<'_>, name: &'static str, _: ValueRef<'_>) -> Result<Node> {
    let message = format!("{name} is not supported: there is no server-side JavaScript");
    Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message))
}
