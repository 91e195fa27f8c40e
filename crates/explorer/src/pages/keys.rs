//! Keys and the certificate.

use account::{Entry, KeySource, Kind, Right};
use maud::{Markup, html};

use crate::confirm::Question;
use crate::visit::Visit;
use crate::visit::answer::{Answer, Fault, sentence};
use crate::visit::layout::csrf;

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let inner = page(visit, None);
    visit.show("Keys", None, &inner).await
}

fn page(visit: &Visit, made: Option<&Markup>) -> Markup {
    let entries = visit.backends.keys.entries();
    html! {
        h1 { "Keys and certificate" }
        @if let Some(made) = made { (made) }
        section.card {
            h2 { "Keys" }
            table.list {
                thead { tr { th { "Key" } th { "Allows" } th { "Where it comes from" } th { "Fingerprint" } th {} } }
                tbody { @for kind in Kind::ALL { (row(visit, kind, entries.iter().find(|entry| entry.kind == kind))) } }
            }
            p.faint {
                "Signed in with a " (allows(visit.session.right())) " key. A session ends after 30 minutes without a request, "
                "after 12 hours at the latest, and when its key is replaced."
            }
        }
        section.card {
            h2 { "Certificate" }
            p { "Clients that connect over TLS must trust the root certificate of this server." }
            p { a.button href="/_explorer/emulator.pem" download="bolide.pem" { "Download the root certificate" } }
            p.faint { code { "bolide cert" } " explains how to trust it on each platform." }
        }
    }
}

fn allows(right: Right) -> &'static str {
    match right {
        Right::ReadWrite => "read-write",
        Right::ReadOnly => "read-only",
    }
}

fn row(visit: &Visit, kind: Kind, entry: Option<&Entry>) -> Markup {
    let (origin, is_given) = match entry.map(|entry| entry.source) {
        None => ("there is none".to_owned(), false),
        Some(KeySource::Generated) => ("made here".to_owned(), false),
        Some(KeySource::WellKnown) => ("the key that every emulator shares".to_owned(), false),
        Some(KeySource::Setting(setting)) => (format!("given by the setting '{setting}'"), true),
    };
    html! {
        tr data-row {
            td { (kind.name()) }
            td { (allows(kind.right())) }
            td { (origin) }
            td { @if let Some(entry) = entry { code { (entry.key.fingerprint()) } } }
            td {
                @if visit.may_write() && !is_given {
                    form method="post" {
                        (csrf(visit))
                        button name="regenerate" value=(kind.name()) { @if entry.is_some() { "Replace" } @else { "Generate" } }
                    }
                }
            }
        }
    }
}

/// Returns the confirmation of a replacement, with its effect on clients of the old key; `None` if there is no such key
/// yet, or it cannot be replaced.
fn replacing(visit: &Visit, kind: Kind) -> Option<Question> {
    let entries = visit.backends.keys.entries();
    let old = entries.iter().find(|entry| entry.kind == kind)?;
    if matches!(old.source, KeySource::Setting(_)) {
        return None;
    }
    let sessions = visit.sessions.as_ref().map_or(0, |sessions| sessions.count(&old.key));
    let plural = if sessions == 1 { "session" } else { "sessions" };
    Some(Question {
        title: format!("Replace the {} key {}", kind.name(), old.key.fingerprint()),
        effects: vec![
            "Every client that uses the old key is refused from its next request on, and so are resource tokens that it signed."
                .to_owned(),
            format!("{} {plural} of this explorer signed in with it {}.", sessions, if sessions == 1 { "ends" } else { "end" }),
        ],
        number: Some(sessions),
        button: "Replace the key",
        back: "/_explorer/keys".to_owned(),
    })
}

/// Replaces a key and shows the new one, this once.
pub(crate) async fn rotate(visit: &Visit) -> Result<Answer, Fault> {
    let kind = visit.form.text("regenerate").and_then(Kind::named);
    let kind = kind.ok_or_else(|| Fault::wrong("There is no such key."))?;
    if let Some(question) = replacing(visit, kind)
        && let Some(page) = question.ask(visit, None).await?
    {
        return Ok(page);
    }
    let keys = visit.backends.keys.clone();
    let made = visit.blocking(move |_| keys.regenerate(kind).map_err(|error| error.to_string())).await?;
    let made = made.map_err(|text| Fault::wrong(sentence(&text)))?;
    let shown = html! {
        section.card.warn {
            h2 { "The new " (kind.name()) " key" }
            p { "It is shown only once. The old key is refused from now on, and its sessions have ended." }
            pre { code { (made.reveal()) } }
        }
    };
    visit.show("Keys", None, &page(visit, Some(&shown))).await
}
