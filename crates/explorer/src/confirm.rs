//! The confirmation of an irreversible action: its effects in numbers, and a form to confirm them.
//!
//! The answer to the first form is a second one that carries the same fields and the number shown. So it works without
//! script, and both forms carry the session's secret. If the action would affect more than was shown, it must be
//! confirmed again. A little more is accepted, since other clients write meanwhile.

use engine::{Count, Owner};
use maud::html;

use crate::format;
use crate::visit::Visit;
use crate::visit::answer::{Answer, Fault};
use crate::visit::guard::CSRF;
use crate::visit::layout::csrf;

/// The field with the number that was confirmed.
const CONFIRMED: &str = "confirmed";

/// By how much the number may grow until it is confirmed: by this many, or by one part in this many of a large number.
const GROWTH: u64 = 10;
const GROWTH_PART: u64 = 100;

/// An action to confirm.
pub(crate) struct Question {
    /// The action.
    pub(crate) title: String,
    /// Its effects, in sentences with numbers.
    pub(crate) effects: Vec<String>,
    /// The number of items affected, if confirming fewer is not enough.
    pub(crate) number: Option<u64>,
    /// The label of the button.
    pub(crate) button: &'static str,
    /// The page to return to.
    pub(crate) back: String,
}

impl Question {
    /// Returns the page with the confirmation; `None` if it was given.
    pub(crate) async fn ask(self, visit: &Visit, owner: Option<&Owner>) -> Result<Option<Answer>, Fault> {
        let agreed = visit.form.text(CONFIRMED).and_then(|text| text.parse::<u64>().ok());
        if agreed.is_some_and(|agreed| self.number.is_none_or(|number| number <= covered_by(agreed))) {
            return Ok(None);
        }
        let Question { title, effects, button, back, .. } = self;
        let number = self.number.unwrap_or_default();
        let fields = visit.form.iter().filter(|(name, _)| ![CSRF, CONFIRMED].contains(name));
        let inner = html! {
            section.card.warn #confirm data-number=(number) {
                h1 { (title) "?" }
                @if agreed.is_some() { p.refusal role="alert" { "It is more by now than what you were shown. Nothing was done." } }
                @for effect in &effects { p { (effect) } }
                p { "This cannot be undone." }
                form.stack method="post" {
                    (csrf(visit))
                    @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
                    input type="hidden" name=(CONFIRMED) value=(number);
                    div.row {
                        button.danger type="submit" { (button) }
                        a.button href=(back) { "Leave it as it is" }
                    }
                }
            }
        };
        visit.show(&title, owner, &inner).await.map(|page| Some(page.asking()))
    }
}

/// Returns the number that a confirmation covers: numbers grow between the two forms, and it must be possible to
/// confirm them. Confirming zero covers nothing more: the next form shows a number, which can be confirmed.
fn covered_by(agreed: u64) -> u64 {
    if agreed == 0 { 0 } else { agreed.saturating_add((agreed / GROWTH_PART).max(GROWTH)) }
}

/// `3 items (1.2 KiB)`, `up to 3 items` where they are not counted exactly.
pub(crate) fn counted(count: Count) -> String {
    let at_most = if count.exact { "" } else { "up to " };
    format!("{at_most}{} ({})", format::items(count.tally.items), format::bytes(count.tally.bytes))
}

/// Formats `3 items are`, `1 item is`.
pub(crate) fn are(count: Count, verb: [&str; 2]) -> String {
    let verb = verb[usize::from(count.tally.items != 1)];
    format!("{} {verb}", counted(count))
}

#[cfg(test)]
mod tests {
    use super::covered_by;

    #[test]
    fn an_agreement_covers_ten_more_or_one_in_a_hundred_and_one_to_nothing_covers_nothing() {
        for (agreed, covered) in
            [(0, 0), (1, 11), (1000, 1010), (10_000, 10_100), (1_000_000, 1_010_000), (u64::MAX, u64::MAX)]
        {
            assert_eq!(covered_by(agreed), covered);
        }
    }
}
