//! The action of a request, for the audit log.

use account::Keyring;

use crate::fields::Fields;
use crate::routes::Route;
use crate::session::Session;

/// A sign-in, or a change of anything but documents. It is determined before it is performed; the status of the answer
/// is its result. An answer that only asks for confirmation has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditedAction {
    /// The key, by kind and fingerprint; `None` if it is not one of the account.
    pub who: Option<String>,
    /// The action.
    pub action: String,
    /// Its target.
    pub target: Option<String>,
}

impl AuditedAction {
    /// Returns an attempt to sign in.
    pub(crate) fn sign_in(form: &Fields, keys: &Keyring) -> AuditedAction {
        let key = form.text("key").unwrap_or_default().trim();
        let who = keys.authenticate(key).map(|owner| owner.label());
        AuditedAction { who, action: "sign-in".to_owned(), target: None }
    }

    /// Returns the action of a form sent in a session; `None` if it is not audited.
    pub(crate) fn of(
        route: &Route,
        segments: &[String],
        form: &Fields,
        session: &Session,
    ) -> Option<AuditedAction> {
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
        Some(AuditedAction {
            who: Some(session.holder.label()),
            action,
            target: Some(target).filter(|target| !target.is_empty()),
        })
    }
}
