//! The page of the store's clock: advances it in test-clock mode, accepts or rejects it when it leapt.

use engine::TestClock;
use maud::html;
use storage::{ClockStatus, Time};

use crate::confirm::{Question, are};
use crate::format;
use crate::visit::Visit;
use crate::visit::answer::{Answer, Fault};
use crate::visit::layout::csrf;

/// The advances offered as buttons.
const STEPS: [(u64, &str); 7] = [
    (10, "10 seconds"),
    (60, "1 minute"),
    (600, "10 minutes"),
    (3600, "1 hour"),
    (86_400, "1 day"),
    (604_800, "1 week"),
    (31_536_000, "1 year"),
];

/// The last second of the year 9999, the maximum of the clock.
const LAST_SECOND: u64 = 253_402_300_799;

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let status = visit.engine(engine::Engine::clock_status).await?;
    let inner = html! {
        h1 { "Clock" }
        section.card {
            dl.facts {
                dt { "Now" } dd { time.live-clock { (format::utc(status.now)) } " UTC" }
                dt { "Offset" } dd { (status.offset()) }
                dt { "Test clock" } dd {
                    @match status.test_clock {
                        TestClock::Off => "off: time follows the system clock",
                        TestClock::Runs | TestClock::Stopped => {
                            "on, moved forward by " (format::span(status.advanced_ms / 1000)) " in all"
                        }
                    }
                    @if status.test_clock == TestClock::Stopped { "; it stands still until it is moved" }
                }
                dt { "Trusted time" } dd { (format::utc(status.trusted)) " UTC: what has expired by it may be destroyed" }
            }
        }
        @if let Some(suspicion) = &status.suspect {
            section.card.warn {
                h2 { "The clock is suspect" }
                p {
                    "Reason: " (status.suspicion().unwrap_or_default()) ". It shows " (format::utc(suspicion.wall))
                    " UTC. Nothing is destroyed until you decide whether that is the right time."
                }
                p { "On the command line: " code { "bolide clock accept" } " or " code { "bolide clock reject" } "." }
                @if visit.may_write() {
                    div.row {
                        form method="post" { (csrf(visit)) button.danger name="do" value="accept" { "Accept the new time" } }
                        form method="post" { (csrf(visit)) button name="do" value="reject" { "Reject it" } }
                    }
                }
            }
        }
        @if status.test_clock.is_on() {
            section.card {
                h2 { "Move forward" }
                p { "Items, expiry, the purge and the feed follow at once. The clock never goes back." }
                @if visit.may_write() {
                    form.steps method="post" {
                        (csrf(visit))
                        @for (seconds, name) in STEPS { button name="advance" value=(seconds) { (name) } }
                    }
                    form.inline method="post" {
                        (csrf(visit))
                        label for="advance" { "Seconds" }
                        input #advance type="number" name="advance" min="1" step="1" required;
                        button type="submit" { "Advance" }
                    }
                }
            }
        } @else {
            p.faint { "Started with " code { "--test-clock" } ", the server lets you move its clock forward here: a TTL of a year is tested in a second." }
        }
    };
    visit.show("Clock", None, &inner).await
}

/// Asks whether the clock is to be moved to a time; `None` if the visitor has confirmed it.
async fn ask_to_move(visit: &Visit, seconds: u64, until: Time) -> Result<Option<Answer>, Fault> {
    let expiring = visit.engine(move |engine| engine.expiring_until(until)).await?;
    let question = Question {
        title: format!("Move the clock forward by {}", format::span(seconds)),
        effects: vec![
            format!("It becomes {} UTC. The clock never goes back.", format::utc(until)),
            format!("{} at once.", are(expiring, ["expires", "expire"])),
        ],
        number: Some(expiring.tally.items),
        button: "Move the clock",
        back: "/_explorer/clock".to_owned(),
    };
    question.ask(visit, None).await
}

/// Asks whether the time of a suspect clock is to be accepted; `None` if the visitor has confirmed it, or if the clock is
/// not suspect.
async fn ask_to_accept(visit: &Visit) -> Result<Option<Answer>, Fault> {
    let status = visit.engine(engine::Engine::clock_status).await?;
    let Some(suspicion) = status.suspect else { return Ok(None) };
    let expiring = visit.engine(engine::Engine::expiring_by_acceptance).await?;
    let question = Question {
        title: "Accept the new time".to_owned(),
        effects: vec![
            after_acceptance(&status, suspicion.accepted),
            format!(
                "{} for good.",
                are(expiring, ["expires by then and is removed", "expire by then and are removed"])
            ),
        ],
        number: Some(expiring.tally.items),
        button: "Accept the time",
        back: "/_explorer/clock".to_owned(),
    };
    question.ask(visit, None).await
}

/// Describes how time continues after acceptance.
fn after_acceptance(status: &ClockStatus, accepted: Time) -> String {
    let at = format::utc(accepted);
    if accepted < status.now {
        return format!(
            "The system clock has come back from its leap: the time is set back to {at} UTC, and what only the leap has hidden is shown again."
        );
    }
    if status.ahead_ms > 0 && status.offset().is_noteworthy() {
        return format!(
            "Time continues from {at} UTC, more slowly until the system clock has caught up. The clock never goes back."
        );
    }
    format!("It becomes {at} UTC, and what has expired by then may be destroyed. The clock never goes back.")
}

pub(crate) async fn steer(visit: &Visit) -> Result<Answer, Fault> {
    let said = match (visit.form.text("do"), visit.form.filled("advance")) {
        (Some("accept"), _) => {
            if let Some(page) = ask_to_accept(visit).await? {
                return Ok(page);
            }
            visit.engine(engine::Engine::accept_clock).await?;
            "clock"
        }
        (Some("reject"), _) => {
            visit.engine(engine::Engine::reject_clock).await?;
            "clock"
        }
        (_, Some(seconds)) => {
            let seconds = seconds
                .parse()
                .map_err(|_| Fault::wrong("The clock is moved by a whole number of seconds."))?;
            let status = visit.engine(engine::Engine::clock_status).await?;
            let until = status.now.plus_millis(u64::saturating_mul(seconds, 1000));
            // The engine reports an error if the clock cannot be advanced, or not that far.
            if status.test_clock.is_on()
                && until.seconds() <= LAST_SECOND
                && let Some(page) = ask_to_move(visit, seconds, until).await?
            {
                return Ok(page);
            }
            visit.engine(move |engine| engine.advance_clock(seconds)).await?;
            "advanced"
        }
        _ => return Err(Fault::wrong("Nothing was asked for.")),
    };
    Ok(Answer::See(format!("/_explorer/clock?said={said}")))
}
