//! `listCommands`: the table of commands.

use bson::Document;

use crate::commands;
use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::service::command::{Access, Availability, Command, RunsOn};

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let is_there = |command: &&Command| {
        command.traits.availability == Availability::Always || call.service.settings.test_commands
    };
    let mut shown: Vec<_> = commands::all().iter().filter(is_there).collect();
    shown.sort_by_key(|command| command.name);
    let rows = shown.into_iter().map(|command| {
        let row = Document::new()
            .with("help", command.help)
            .with("requiresAuth", !matches!(command.access, Access::Public))
            .with("secondaryOk", true)
            .with("adminOnly", command.runs_on == RunsOn::Admin);
        (command.name, row)
    });
    Ok(Document::new().with("commands", rows.collect::<Document>()).into())
}
