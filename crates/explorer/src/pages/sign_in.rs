//! The sign-in page.

use hyper::StatusCode;
use maud::html;

use crate::session::Refused;
use crate::visit::answer::Answer;
use crate::visit::layout;

/// Why the form is shown again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Key,
    TooMany,
    Elsewhere,
    SessionOver,
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Refusal {
        match refused {
            Refused::Key => Refusal::Key,
            Refused::TooMany => Refusal::TooMany,
        }
    }
}

impl Refusal {
    fn status(self) -> StatusCode {
        match self {
            Refusal::Key | Refusal::SessionOver => StatusCode::UNAUTHORIZED,
            Refusal::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Refusal::Elsewhere => StatusCode::FORBIDDEN,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Refusal::Key => "That is not a key of this account.",
            Refusal::TooMany => "Too many wrong keys were tried. Wait a minute.",
            Refusal::Elsewhere => "The form was not sent from this page.",
            Refusal::SessionOver => "Your session is over. Sign in again.",
        }
    }
}

/// Returns the form.
pub(crate) fn form(next: &str, refusal: Option<Refusal>) -> Answer {
    let markup = layout::bare(
        "Sign in",
        &html! {
            section.sign-in {
                (layout::comet())
                h1 { "Bolide" }
                p.faint { "Data that knows when to die." }
                form method="post" action="/_explorer/sign-in" {
                    input type="hidden" name="next" value=(next);
                    label for="key" { "Account key" }
                    input #key type="password" name="key" required autocomplete="current-password" spellcheck="false"
                        autofocus aria-describedby=[refusal.map(|_| "refusal")];
                    @if let Some(refusal) = refusal { p #refusal .refusal role="alert" { (refusal.text()) } }
                    button.primary type="submit" { "Sign in" }
                }
                p.faint.small {
                    "The primary or secondary key of the account. A read-only key lets you look. "
                    "When the server starts it prints the key behind " code { "AccountKey=" }
                    ", or, where the key is a secret, which setting gives it."
                }
            }
        },
    );
    Answer::Page { status: refusal.map_or(StatusCode::OK, Refusal::status), markup }
}
