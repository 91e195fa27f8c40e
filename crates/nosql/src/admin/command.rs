//! `/_bolide/command`: a command of the MongoDB API, BSON in and BSON out, for operators with the account key and
//! without a driver.

use crate::handlers::call::Call;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

/// Runs a command. As in the MongoDB API, the answer reports whether it succeeded.
pub(super) async fn run(call: &Call) -> Result<Reply, Error> {
    let Some(commands) = &call.hooks().commands else {
        return Err(Error::BadRequest("The MongoDB API is off on this server.".to_owned()));
    };
    let answer = commands.run(call.holder(), call.body.clone()).await;
    answer.map(|answer| Reply::bytes("application/bson", answer)).map_err(Error::BadRequest)
}
