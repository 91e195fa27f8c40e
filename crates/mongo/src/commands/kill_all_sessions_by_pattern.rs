//! `killAllSessionsByPattern`: ends the sessions that one of the patterns describes, and what runs in them.

use bson::{BinaryRef, DocumentRef, ValueRef};

use crate::auth;
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::session::SessionId;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let Some(items) = call.argument().as_array() else {
        return Err(Error::bad_value("killAllSessionsByPattern takes an array of patterns"));
    };
    let mut patterns = Vec::new();
    for item in items.iter() {
        let pattern = item.as_document();
        patterns.push(Pattern::parse(pattern.ok_or_else(|| Error::bad_value("a pattern is a document"))?)?);
    }
    let is_meant = |id: &SessionId| patterns.is_empty() || patterns.iter().any(|pattern| pattern.fits(id));
    let ended = call.service.sessions.end(is_meant);
    call.service.clean_up_all(&ended);
    Ok(Reply::ok())
}

/// The fields that sessions must match. An empty pattern matches all.
#[derive(Default)]
struct Pattern {
    uuid: Option<[u8; 16]>,
    user: Option<[u8; 32]>,
}

impl Pattern {
    fn parse(document: DocumentRef<'_>) -> Result<Pattern> {
        let mut pattern = Pattern::default();
        for (name, value) in document.iter() {
            match (name, value) {
                ("lsid", ValueRef::Document(lsid)) => {
                    pattern.uuid = Some(SessionId::parse(lsid, [0; 32])?.uuid);
                }
                ("uid", ValueRef::Binary(BinaryRef { bytes, .. })) => {
                    let digest = bytes.try_into().map_err(|_| Error::bad_value("'uid' has 32 bytes"))?;
                    pattern.user = Some(digest);
                }
                ("users", ValueRef::Array(users)) => {
                    let text =
                        |user: ValueRef<'_>, name| Some(user.as_document()?.get(name)?.as_str()?.to_owned());
                    let user = users.iter().next();
                    let both = user.and_then(|user| Some((text(user, "user")?, text(user, "db")?)));
                    let (user, database) =
                        both.ok_or_else(|| Error::bad_value("'users' has users as {user, db}"))?;
                    pattern.user = Some(auth::digest(&user, &database));
                }
                _ => return Err(Error::bad_value(format!("a pattern has no field '{name}' of this type"))),
            }
        }
        Ok(pattern)
    }

    fn fits(&self, id: &SessionId) -> bool {
        self.uuid.is_none_or(|uuid| uuid == id.uuid) && self.user.is_none_or(|user| user == id.user)
    }
}
