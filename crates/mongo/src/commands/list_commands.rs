//! `listCommands`: the table of commands, as it stands in the source.

use bson::Document;

use crate::call::Call;
use crate::commands::{self, Access, Place};
use crate::error::Result;
use crate::reply::Reply;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let hidden = |name: &str| name == "configureFailPoint" && !call.service.settings.test_commands;
    let mut shown: Vec<_> = commands::all().iter().filter(|command| !hidden(command.name)).collect();
    shown.sort_by_key(|command| command.name);
    let rows = shown.into_iter().map(|command| {
        let row = Document::new()
            .with("help", command.help)
            .with("requiresAuth", !matches!(command.access, Access::Everybody))
            .with("secondaryOk", true)
            .with("adminOnly", command.place == Place::Admin);
        (command.name, row)
    });
    Ok(Document::new().with("commands", rows.collect::<Document>()).into())
}
