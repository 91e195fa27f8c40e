//! Settings of a container or collection. A change of its time to live is a dry run first: the items that would expire
//! at once are counted and drawn, and only then it can be applied.

use document::{Object, Value};
use engine::{
    Consent, ContainerDefinition, Count, DefaultTtl, DryRun, Engine, Forecast, Owner, Precondition,
};
use hyper::StatusCode;
use maud::{Markup, html};

use crate::chart::{histogram, share};
use crate::confirm::{Question, counted};
use crate::fields::Fields;
use crate::format;
use crate::json;
use crate::pages::timeline::{self, Range};
use crate::pages::{create, ttl_fields};
use crate::visit::answer::{Answer, Fault};
use crate::visit::layout::{self, csrf};
use crate::visit::{Visit, link};

/// Shares are kept in millionths.
const MILLION: f64 = 1_000_000.0;

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let inner = page(visit, &owner, None);
    visit.show(&format!("Settings of {}", owner.name()), Some(&owner), &inner).await
}

fn page(visit: &Visit, owner: &Owner, wrong: Option<&str>) -> Markup {
    html! {
        @if let Some(wrong) = wrong { p.refusal role="alert" { (wrong) } }
        section.card {
            h2 { "Time to live" }
            p { "Now: " b { (format::ttl(owner.default_ttl())) } ". A change takes effect at once for all items, and what it expires does not come back: try a dry run first." }
            form.stack method="get" action=(link(owner, "settings/dry-run")) {
                (ttl_fields::fields(owner.default_ttl()))
                div.row { button.primary type="submit" { "Dry run" } }
            }
        }
        (lifecycle(visit, owner))
        section.card {
            h2 { "Definition" }
            @match owner {
                Owner::Container(container) => (json::coloured(&container.definition.to_value().to_json())),
                Owner::Collection(collection) => {
                    (json::coloured(&bson::to_extended_json(bson::ValueRef::Document(collection.definition.options.view()), true)))
                    h3 { "Indexes" }
                    ul { @for index in collection.indexes().iter() { li { code { (index.spec.name()) } } } }
                }
            }
        }
        @if visit.may_write() { (deletion(visit, owner)) }
    }
}

fn lifecycle(visit: &Visit, owner: &Owner) -> Markup {
    let lifecycle = owner.lifecycle();
    let percent = lifecycle.max_instant_expiry.map(|share| f64::from(share) * 100.0 / MILLION);
    html! {
        section.card {
            h2 { "Safety" }
            form.stack method="post" action=(link(owner, "settings/lifecycle")) {
                (csrf(visit))
                label { "Confirm changes that expire more than this share at once " span.faint { "(percent; empty: never ask)" }
                    input type="number" name="guard" min="0" max="100" step="any" value=[percent]; }
                label { "Remove the bytes of expired items within " span.faint { "(seconds; empty: no bound)" }
                    input type="number" name="delay" min="1" step="1" value=[lifecycle.max_purge_delay]; }
                label.check { input type="checkbox" name="record" value="on" checked[lifecycle.deletion_record]; " Keep a record of what was purged" }
                @if let Owner::Container(_) = owner {
                    label.check { input type="checkbox" name="sliding" value="on" checked[lifecycle.sliding]; " Reading an item restarts its countdown" }
                }
                div.row { button type="submit" disabled[!visit.may_write()] { "Save" } }
            }
        }
    }
}

fn deletion(visit: &Visit, owner: &Owner) -> Markup {
    html! {
        details.danger.card {
            summary { "Delete this container" }
            form.stack method="post" action=(link(owner, "settings/delete")) {
                (csrf(visit))
                p { "All its items are gone at once. Type " b { (owner.name()) } " to confirm." }
                label { "Name" input type="text" name="name" required autocomplete="off" spellcheck="false"; }
                div.row { button.danger type="submit" { "Delete for good" } }
            }
        }
    }
}

/// Counts the effects of another time to live, and changes nothing.
pub(crate) async fn dry_run(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    match ttl_fields::read(&visit.query) {
        Ok(ttl) => {
            let inner = tried(visit, &owner, ttl, None).await?;
            visit.show("Dry run", Some(&owner), &inner).await
        }
        Err(text) => {
            let markup =
                layout::frame(visit, "Settings", Some(&owner), &page(visit, &owner, Some(&text))).await?;
            Ok(Answer::Page { status: StatusCode::BAD_REQUEST, markup })
        }
    }
}

/// The result of a dry run.
struct Tried {
    dry_run: DryRun,
    range: Range,
    before: Forecast,
    after: Forecast,
}

impl Tried {
    fn new(engine: &Engine, owner: &Owner, ttl: DefaultTtl) -> engine::Result<Tried> {
        // Both charts have the range that the longer one needs.
        let (first, _) = timeline::forecast(engine, owner, None, None)?;
        let (second, after) = timeline::forecast(engine, owner, None, Some(ttl))?;
        let range = first.longer(second);
        let after = if range == second { after } else { range.forecast(engine, owner, Some(ttl))? };
        let before = range.forecast(engine, owner, None)?;
        Ok(Tried { dry_run: engine.dry_run(owner, ttl)?, range, before, after })
    }
}

async fn tried(visit: &Visit, owner: &Owner, ttl: DefaultTtl, wrong: Option<&str>) -> Result<Markup, Fault> {
    let of = owner.clone();
    let Tried { dry_run, range, before, after } =
        visit.engine(move |engine| Tried::new(engine, &of, ttl)).await?;
    let (expiring, living) = (dry_run.expiring.tally, dry_run.living);
    let at_most = if dry_run.expiring.exact { "" } else { "up to " };
    let guard = owner.lifecycle().max_instant_expiry;
    let guarded = guard.is_some_and(|limit| {
        u128::from(expiring.items) * 1_000_000 > u128::from(limit) * u128::from(living.items)
    });
    Ok(html! {
        section.card.dry-run.warn[expiring.items > 0] {
            h2 { "Dry run: " (format::ttl(owner.default_ttl())) " → " (format::ttl(ttl)) }
            @if let Some(wrong) = wrong { p.refusal role="alert" { (wrong) } }
            p.verdict #verdict data-expiring=(expiring.items) {
                @if expiring.items == 0 { "Nothing would expire at once." }
                @else {
                    (at_most) b { (format::items(expiring.items)) } " of " (format::count(living.items))
                    " (" (at_most) (format::bytes(expiring.bytes)) ") would expire at once, for good."
                }
            }
            (share(living.items.saturating_sub(expiring.items), expiring.items))
            h3 { "Now" }
            (histogram("Expiry under the current rules", &range.bars(&before, None)))
            (legend(&before))
            h3 { "After the change" }
            (histogram("Expiry after the change", &range.bars(&after, Some(expiring))))
            (legend(&after))
            @if visit.may_write() {
                form.stack method="post" action=(link(owner, "settings/ttl")) {
                    (csrf(visit)) (ttl_fields::hidden(ttl))
                    @if guarded {
                        label.check {
                            input type="checkbox" name="consent" value="given" required;
                            " That is more than the guard of this container allows at once ("
                            (guard.map_or(0.0, |limit| f64::from(limit) * 100.0 / MILLION)) " %). Confirm the change."
                        }
                    }
                    div.row {
                        button type="submit" .danger[expiring.items > 0] .primary[expiring.items == 0] { "Apply" }
                        a.button href=(link(owner, "settings")) { "Leave it as it is" }
                    }
                }
            }
        }
    })
}

fn legend(forecast: &Forecast) -> Markup {
    html! {
        p.legend { b { (format::count(forecast.later.items)) } " later · " b { (format::count(forecast.never.items)) } " never" }
    }
}

/// Applies another time to live.
pub(crate) async fn apply_ttl(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    let ttl = ttl_fields::read(&visit.form).map_err(Fault::wrong)?;
    let consent = visit.form.text("consent") == Some("given");
    let applied = match &owner {
        Owner::Container(container) => {
            let (container, consent) =
                (container.clone(), if consent { Consent::Given } else { Consent::NotGiven });
            let definition = ContainerDefinition { default_ttl: ttl, ..container.definition.clone() };
            let precondition = Precondition::IfMatch(container.etag().to_string());
            let apply = move |engine: &Engine| {
                engine.replace_container_with(&container, definition, &precondition, consent)
            };
            visit.engine(apply).await.map(drop).map_err(|fault| fault.text)
        }
        Owner::Collection(collection) => {
            let from = owner.default_ttl();
            create::set_ttl(visit, &collection.database, &collection.name, from, ttl, consent).await
        }
    };
    match applied {
        Ok(()) => Ok(Answer::See(link(&owner, "timeline?said=ttl"))),
        Err(wrong) => {
            let inner = tried(visit, &owner, ttl, Some(&wrong)).await?;
            let markup = layout::frame(visit, "Dry run", Some(&owner), &inner).await?;
            Ok(Answer::Page { status: StatusCode::CONFLICT, markup })
        }
    }
}

/// The fields of the form of lifecycle settings.
struct LifecycleFields {
    /// In millionths.
    max_instant_expiry: Option<u32>,
    max_purge_delay: Option<u32>,
    deletion_record: bool,
    sliding: bool,
}

impl LifecycleFields {
    fn read(form: &Fields) -> Result<LifecycleFields, &'static str> {
        let max_instant_expiry = match form.filled("guard").map(str::parse::<f64>) {
            None => None,
            Some(Ok(percent)) if (0.0..=100.0).contains(&percent) => {
                Some((percent * MILLION / 100.0).round() as u32)
            }
            Some(_) => return Err("The guard is a share of the living from 0 to 100 percent."),
        };
        let max_purge_delay = match form.filled("delay").map(str::parse::<u32>) {
            None => None,
            Some(Ok(seconds)) if seconds > 0 => Some(seconds),
            Some(_) => {
                return Err(
                    "The bound for the bytes of expired items must be a whole number of seconds, at least 1.",
                );
            }
        };
        let is_on = |name| form.text(name) == Some("on");
        let (deletion_record, sliding) = (is_on("record"), is_on("sliding"));
        Ok(LifecycleFields { max_instant_expiry, max_purge_delay, deletion_record, sliding })
    }
}

/// Returns the lifecycle settings in a form, by their names in the admin API, for the audit log.
pub(crate) fn lifecycle_settings(form: &Fields) -> Object {
    let Ok(fields) = LifecycleFields::read(form) else { return Object::new() };
    let share = fields.max_instant_expiry.map(|millionths| f64::from(millionths) / MILLION);
    [
        ("maxInstantExpiry", share.map_or(Value::Null, Value::Double)),
        ("maxPurgeDelay", fields.max_purge_delay.map_or(Value::Null, |seconds| Value::Int(seconds.into()))),
        ("deletionRecord", Value::Bool(fields.deletion_record)),
        ("sliding", Value::Bool(fields.sliding)),
    ]
    .into_iter()
    .collect()
}

pub(crate) async fn apply_lifecycle(visit: &Visit) -> Result<Answer, Fault> {
    let (owner, fields) = (visit.owner()?, LifecycleFields::read(&visit.form).map_err(Fault::wrong)?);
    let of = owner.clone();
    let change = move |engine: &Engine| {
        engine.change_lifecycle(&of, |lifecycle| {
            lifecycle.max_instant_expiry = fields.max_instant_expiry;
            lifecycle.max_purge_delay = fields.max_purge_delay;
            lifecycle.deletion_record = fields.deletion_record;
            lifecycle.sliding = fields.sliding;
        })
    };
    visit.engine(change).await?;
    Ok(Answer::See(link(&owner, "settings?said=settings")))
}

pub(crate) async fn delete(visit: &Visit) -> Result<Answer, Fault> {
    let owner = visit.owner()?;
    if visit.form.text("name") != Some(owner.name()) {
        return Err(Fault::wrong(format!(
            "Nothing was deleted: the name that was typed is not '{}'.",
            owner.name()
        )));
    }
    let of = owner.clone();
    let usage = visit.engine(move |engine| engine.usage_of(&of)).await?;
    let [living, expired] = [usage.living, usage.expired].map(|tally| counted(Count { tally, exact: true }));
    let question = Question {
        title: format!("Delete '{}' of '{}'", owner.name(), owner.database()),
        effects: vec![format!(
            "{living} that live and {expired} that have expired are gone for good, with every index and setting."
        )],
        number: Some(usage.living.items),
        button: "Delete for good",
        back: link(&owner, "settings"),
    };
    if let Some(page) = question.ask(visit, Some(&owner)).await? {
        return Ok(page);
    }
    match owner {
        Owner::Container(container) => {
            visit.engine(move |engine| engine.delete_container(&container, &Precondition::None)).await?;
        }
        Owner::Collection(collection) => {
            visit.engine(move |engine| engine.drop_collection(&collection)).await?;
        }
    }
    Ok(Answer::See("/_explorer/?said=deleted".to_owned()))
}
