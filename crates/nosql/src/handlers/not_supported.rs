//! What the service has and Bolide does not have yet: an error that names it.

use crate::call::Call;
use crate::error::Error;
use crate::request::Verb;
use crate::response::Reply;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    if call.head.verb()? == Some(Verb::ChangeFeed) {
        return Err(Error::NotSupported("the change feed (A-IM) is".to_owned()));
    }
    let segments = call.head.path.segments();
    let kinds = segments.iter().step_by(2).rev();
    let what = kinds.map(String::as_str).find_map(describe).unwrap_or("this resource is");
    Err(Error::NotSupported(what.to_owned()))
}

fn describe(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "users" => "users are",
        "permissions" => "permissions are",
        "clientencryptionkeys" => "client encryption keys are",
        "sprocs" => "stored procedures are",
        "triggers" => "triggers are",
        "udfs" => "user-defined functions are",
        "attachments" => "attachments are",
        _ => return None,
    })
}
