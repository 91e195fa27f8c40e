//! What a request has done, or tried to do, that an auditor wants to know.

use account::Keyring;

use crate::fields::Fields;
use crate::routes::Route;
use crate::session::Session;

/// A sign-in, or a change of anything but documents. It is known before it is done; the status of the answer says what came of
/// it. An answer that only asks has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    /// The key, by kind and fingerprint; none if it is not one of the account.
    pub who: Option<String>,
    /// What was done.
    pub action: String,
    /// What it was done to.
    pub target: Option<String>,
}

impl Deed {
    /// A try to sign in.
    pub(crate) fn sign_in(form: &Fields, keys: &Keyring) -> Deed {
        let key = form.text("key").unwrap_or_default().trim();
        let who = keys.holder(key).map(|holder| holder.label());
        Deed { who, action: "sign-in".to_owned(), target: None }
    }

    /// What a form of somebody who is signed in does; none if that is nothing to be told.
    pub(crate) fn of(route: &Route, segments: &[String], form: &Fields, session: &Session) -> Option<Deed> {
        let name = route.audited_as()?;
        let which = form.text("do").or_else(|| form.text("regenerate"));
        let action = which.map_or_else(|| name.to_owned(), |which| format!("{name} {which}"));
        let target = match segments {
            [first, container @ ..] if first == "c" => {
                container.iter().take(3).cloned().collect::<Vec<_>>().join("/")
            }
            _ => ["database", "user", "name", "advance"]
                .iter()
                .filter_map(|field| form.text(field))
                .collect::<Vec<_>>()
                .join("/"),
        };
        Some(Deed {
            who: Some(session.holder.label()),
            action,
            target: Some(target).filter(|target| !target.is_empty()),
        })
    }
}
