//! `/_bolide/command`: a command of the MongoDB API, BSON in and BSON out, for whoever has the account key and no driver.

use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;

/// Runs a command. Whether it succeeded is told as the MongoDB API tells it: in the answer.
pub(super) async fn run(call: &Call) -> Result<Reply, Error> {
    let Some(commands) = &call.doors().commands else {
        return Err(Error::BadRequest("The MongoDB API is off on this server.".to_owned()));
    };
    let answer = commands.run(call.body.clone()).await;
    answer.map(|answer| Reply::bytes("application/bson", answer)).map_err(Error::BadRequest)
}
