//! Features of the service that Bolide does not have yet: an error that names the feature.

use crate::handlers::call::Call;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let segments = call.head.path.segments();
    let kinds = segments.iter().step_by(2).rev();
    let what = kinds.map(String::as_str).find_map(describe).unwrap_or("this resource is");
    Err(Error::NotSupported(what.to_owned()))
}

fn describe(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "clientencryptionkeys" => "client encryption keys are",
        "attachments" => "attachments are",
        _ => return None,
    })
}
