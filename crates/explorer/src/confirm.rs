//! The question before something that cannot be undone: what will happen, in numbers, and a form that says it is meant.
//!
//! The first form asks, this page answers it with a second one that carries the same fields and the number that was shown. So it
//! works without script, and both forms carry the session's secret. If more would happen by then than was shown, it is asked
//! again. A little more is to be expected: other clients write meanwhile.

use engine::{Count, Holder};
use maud::html;

use crate::answer::{Answer, Fault};
use crate::format;
use crate::guard::CSRF;
use crate::layout::csrf;
use crate::visit::Visit;

/// The field that says how much was agreed to.
const CONFIRMED: &str = "confirmed";

/// By how much a number may grow until it is agreed to: so much, or one part in so many of a large one.
const GROWTH: u64 = 10;
const GROWTH_PART: u64 = 100;

/// What is about to happen.
pub(crate) struct Question {
    /// What is done.
    pub(crate) title: String,
    /// What comes of it, in sentences with numbers.
    pub(crate) effects: Vec<String>,
    /// How many things it concerns, if an agreement to fewer is not enough.
    pub(crate) number: Option<u64>,
    /// What the button says.
    pub(crate) button: &'static str,
    /// The page to go back to.
    pub(crate) back: String,
}

impl Question {
    /// The page that asks; none if it was answered.
    pub(crate) async fn ask(self, visit: &Visit, holder: Option<&Holder>) -> Result<Option<Answer>, Fault> {
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
        visit.show(&title, holder, &inner).await.map(|page| Some(page.asking()))
    }
}

/// How much an agreement to so much covers: numbers grow between the two forms, and an answer to them must be possible. An
/// agreement to nothing covers nothing: the next form shows a number, which can be agreed to.
fn covered_by(agreed: u64) -> u64 {
    if agreed == 0 { 0 } else { agreed.saturating_add((agreed / GROWTH_PART).max(GROWTH)) }
}

/// `3 items (1.2 KiB)`, `up to 3 items` where they are not counted exactly.
pub(crate) fn counted(count: Count) -> String {
    let at_most = if count.exact { "" } else { "up to " };
    format!("{at_most}{} ({})", format::items(count.tally.items), format::bytes(count.tally.bytes))
}

/// `3 items are`, `1 item is`: what a sentence goes on with.
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
