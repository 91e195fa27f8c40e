//! `POST /_bolide/reset`: empties the store, where that is allowed, and creates its initial data again.

use document::Value;

use super::{number, reply};
use crate::handlers::admin_hooks::Reset;
use crate::handlers::call::Call;
use crate::message::reply::Reply;
use crate::protocol::error::Error;
use crate::protocol::json::{member, object, text};

/// Empties the store.
pub(super) async fn run(call: &Call) -> Result<Reply, Error> {
    let Reset::Allowed { initial_data } = &call.hooks().reset else {
        return Err(Error::Forbidden(
            "This server's store cannot be emptied: that takes the setting 'allow-reset' (--allow-reset), which \
             'test-clock' implies."
                .to_owned(),
        ));
    };
    if !matches!(call.body.trim_ascii(), b"" | b"{}") {
        return Err(Error::BadRequest("The body must be empty: a reset has no options.".to_owned()));
    }
    let databases = call.blocking(|engine| Ok(engine.reset()?)).await?;
    tracing::warn!("the store was emptied by an operator: {databases} databases are gone");
    let seed = match initial_data {
        None => Value::Null,
        Some(initial_data) => {
            let made = initial_data.make().await.map_err(|why| {
                engine::Error::Unavailable(format!(
                    "the store was emptied, but its seed could not be made: {why}"
                ))
            })?;
            object([
                member("made", Value::Array(made.names.into_iter().map(text).collect())),
                member("items", number(made.items as u64)),
            ])
        }
    };
    Ok(reply(&object([member("databases", number(databases as u64)), member("seed", seed)])))
}
