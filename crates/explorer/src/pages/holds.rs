//! Legal holds (T31): of single items, and of a whole container.

use document::ItemNumber;
use engine::{Api, Consent, Count, Engine, ItemAddress, Owner, Tally};
use maud::{Markup, html};

use crate::confirm::Question;
use crate::format;
use crate::json;
use crate::pages::container::{partition_key, shown_key};
use crate::visit::answer::{Answer, Fault};
use crate::visit::layout::csrf;
use crate::visit::{Visit, link};

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let after = visit.query.filled("after").and_then(|text| text.parse().ok()).map(ItemNumber);
    let of = owner.clone();
    let held = visit.engine(move |engine| engine.held_items(&of, after)).await?;
    let inner = html! {
        (whole(visit, &owner))
        section.card {
            h2 { "Held items" }
            @if held.is_empty() { p.faint { "No item is held by itself." } } @else {
                table.list {
                    thead { tr { th { "Item" } th { "Since (UTC)" } th { "Reason" } th {} } }
                    tbody {
                        @for item in &held {
                            tr data-row {
                                td { a href=(link(&owner, &format!("item/{}", item.number.0))) { (named(&item.address)) } }
                                td { (format::utc(item.since)) }
                                td { (item.reason) }
                                td { @if visit.may_write() { (lift(visit, &owner, &item.address)) } }
                            }
                        }
                    }
                }
                @if let Some(last) = held.last().filter(|_| held.len() >= engine::limits::HELD_PAGE) {
                    nav.pager { a.button href=(link(&owner, &format!("holds?after={}", last.number.0))) { "Next page" } }
                }
            }
            @if visit.may_write() { (place(visit, &owner)) }
        }
    };
    visit.show(&format!("Holds of {}", owner.name()), Some(&owner), &inner).await
}

fn whole(visit: &Visit, owner: &Owner) -> Markup {
    html! {
        section.card {
            h2 { "The whole container" }
            @match owner.lifecycle().hold {
                Some(reason) => {
                    p { "Held: " b { (reason) } ". Nothing in it expires, is changed or deleted." }
                    @if visit.may_write() {
                        form method="post" { (csrf(visit)) button name="do" value="lift-container" { "Lift the hold" } }
                    }
                }
                None => {
                    p.faint { "Not held." }
                    @if visit.may_write() {
                        form.inline method="post" {
                            (csrf(visit))
                            input type="text" name="reason" required maxlength="1024" placeholder="reason, as case 2026/7" aria-label="Reason";
                            button name="do" value="hold-container" { "Hold all of it" }
                        }
                    }
                }
            }
        }
    }
}

fn named(address: &ItemAddress) -> Markup {
    match address {
        ItemAddress::Id(key, id) => html! { (json::preview(id, 80)) " " code.faint { (shown_key(key)) } },
        ItemAddress::DocumentId(_) => html! { (address.to_extended_json().unwrap_or_default()) },
    }
}

/// The fields that name the item.
fn address_fields(address: &ItemAddress) -> Markup {
    match address {
        ItemAddress::Id(key, id) => html! {
            input type="hidden" name="id" value=(id);
            input type="hidden" name="key" value=(key.to_json());
        },
        ItemAddress::DocumentId(_) => html! {
            input type="hidden" name="_id" value=(address.to_extended_json().unwrap_or_default());
        },
    }
}

/// Returns the button that lifts the hold of an item.
pub(crate) fn lift(visit: &Visit, owner: &Owner, address: &ItemAddress) -> Markup {
    html! {
        form method="post" action=(link(owner, "holds")) {
            (csrf(visit)) (address_fields(address))
            button name="do" value="lift" { "Lift" }
        }
    }
}

/// Returns the form that holds an item.
pub(crate) fn hold(visit: &Visit, owner: &Owner, address: &ItemAddress) -> Markup {
    html! {
        form.inline method="post" action=(link(owner, "holds")) {
            (csrf(visit)) (address_fields(address))
            input type="text" name="reason" maxlength="1024" placeholder="reason" aria-label="Reason of the hold";
            button name="do" value="hold" { "Hold" }
        }
    }
}

fn place(visit: &Visit, owner: &Owner) -> Markup {
    html! {
        form.inline method="post" {
            (csrf(visit))
            @if owner.api() == Api::NoSql {
                input type="text" name="id" required placeholder="id" aria-label="Id";
                input type="text" name="key" required placeholder="partition key" aria-label="Partition key";
            } @else {
                input type="text" name="_id" required placeholder="_id in Extended JSON" aria-label="_id";
            }
            input type="text" name="reason" maxlength="1024" placeholder="reason" aria-label="Reason";
            button name="do" value="hold" { "Hold the item" }
        }
    }
}

fn address(visit: &Visit, owner: &Owner) -> Result<ItemAddress, Fault> {
    let field = |name| visit.form.text(name).ok_or_else(|| Fault::wrong(format!("'{name}' is missing.")));
    match owner.api() {
        Api::NoSql => Ok(ItemAddress::Id(partition_key(field("key")?)?, field("id")?.to_owned())),
        Api::MongoDb => Ok(ItemAddress::from_extended_json(field("_id")?)?),
    }
}

/// Asks before a hold with overdue items is lifted; `None` if nothing is overdue, or if the visitor has confirmed it.
async fn ask(visit: &Visit, owner: &Owner, hold: &str, overdue: Count) -> Result<Option<Answer>, Fault> {
    let number = overdue.tally.items;
    if number == 0 {
        return Ok(None);
    }
    let at_most = if overdue.exact { "" } else { "Up to " };
    let verbs = if number == 1 { "is overdue and expires" } else { "are overdue and expire" };
    let question = Question {
        title: format!("Lift {hold}"),
        effects: vec![format!("{at_most}{} {verbs} now.", format::items(number))],
        number: Some(number),
        button: "Lift the hold",
        back: link(owner, "holds"),
    };
    question.ask(visit, Some(owner)).await
}

pub(crate) async fn change(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let (of, reason) = (owner.clone(), visit.form.text("reason").unwrap_or_default().trim().to_owned());
    let said = match visit.form.text("do") {
        Some("hold-container") => {
            let valid = (1..=engine::limits::HOLD_REASON_BYTES_MAX).contains(&reason.len());
            if !valid {
                return Err(Fault::wrong("A hold of a whole container has a reason, of 1024 bytes at most."));
            }
            visit
                .engine(move |engine| engine.change_lifecycle(&of, |lifecycle| lifecycle.hold = Some(reason)))
                .await?;
            "held"
        }
        Some("lift-container") => {
            let overdue = visit.engine(move |engine| engine.overdue_under_hold(&of)).await?;
            if let Some(page) = ask(visit, &owner, "the hold of the whole container", overdue).await? {
                return Ok(page);
            }
            // The number of items that expire was shown and confirmed, as the guard requires.
            let of = owner.clone();
            let lift = move |engine: &Engine| {
                engine.change_lifecycle_with(&of, Consent::Given, |settings| settings.hold = None)
            };
            visit.engine(lift).await?;
            "lifted"
        }
        Some("hold") => {
            let address = address(visit, &owner)?;
            visit.engine(move |engine| engine.hold_item(&of, &address, &reason)).await?;
            "held"
        }
        Some("lift") => {
            let address = address(visit, &owner)?;
            let item = address.clone();
            let is_overdue = visit.engine(move |engine| engine.is_overdue_under_hold(&of, &item)).await?;
            let overdue = Tally { items: u64::from(is_overdue), bytes: 0 };
            let overdue = Count { tally: overdue, exact: true };
            if let Some(page) = ask(visit, &owner, "the hold of this item", overdue).await? {
                return Ok(page);
            }
            let of = owner.clone();
            visit.engine(move |engine| engine.lift_item(&of, &address)).await?;
            "lifted"
        }
        _ => return Err(Fault::wrong("Nothing was asked for.")),
    };
    Ok(Answer::See(link(&owner, &format!("holds?said={said}"))))
}
