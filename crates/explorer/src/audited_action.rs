//! The action of a request, for the audit log.

use account::Keyring;
use document::{Object, Value};

use crate::fields::Fields;
use crate::routes::{Audit, RouteLookup};
use crate::session::Session;

/// A sign-in, a change of anything but documents, or a refused form. It is determined before it is performed; the status
/// of the answer is its result. An answer that only asks for confirmation has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditedAction {
    /// The key, by kind and fingerprint; `None` if it is not one of the account, or there is no session.
    pub who: Option<String>,
    /// The action.
    pub action: String,
    /// Its target.
    pub target: Option<String>,
    /// The settings in its form, as JSON.
    pub details: Option<String>,
}

impl AuditedAction {
    /// Returns an attempt to sign in.
    pub(crate) fn sign_in(form: &Fields, keys: &Keyring) -> AuditedAction {
        let key = form.text("key").unwrap_or_default().trim();
        let who = keys.authenticate(key).map(|owner| owner.label());
        AuditedAction { who, action: "sign-in".to_owned(), target: None, details: None }
    }

    /// Returns the action of a form, and who sends it.
    pub(crate) fn of(
        found: &RouteLookup,
        segments: &[String],
        form: &Fields,
        session: Option<&Session>,
    ) -> AuditedAction {
        let (name, settings) = match found {
            RouteLookup::Route(route) => (route.name(), settings(route.audit, form)),
            RouteLookup::WrongMethod | RouteLookup::Nothing => ("unknown".to_owned(), Object::new()),
        };
        let which = form.text("do").or_else(|| form.text("regenerate"));
        let target = target(segments, form);
        AuditedAction {
            who: session.map(|session| session.holder.label()),
            action: if let Some(which) = which { format!("{name} {which}") } else { name },
            target: Some(target).filter(|target| !target.is_empty()),
            details: (!settings.is_empty()).then(|| Value::Object(settings).to_json()),
        }
    }
}

fn settings(audit: Audit, form: &Fields) -> Object {
    match audit {
        Audit::Refusals => Object::new(),
        Audit::Changes(settings) => settings(form),
    }
}

/// Returns the container that the path names, or what the form is about.
fn target(segments: &[String], form: &Fields) -> String {
    match segments {
        [first, container @ ..] if first == "c" => {
            container.iter().take(3).cloned().collect::<Vec<_>>().join("/")
        }
        _ => ["of", "database", "user", "name", "advance"]
            .iter()
            .filter_map(|field| form.text(field))
            .collect::<Vec<_>>()
            .join("/"),
    }
}
