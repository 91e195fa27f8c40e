//! The frame around every page: containers on the left, navigation on top, the store's clock.

use account::Right;
use engine::{Api, ClockStatus, Engine, Owner, TestClock};
use maud::{DOCTYPE, Markup, html};

use crate::format;
use crate::visit::answer::{Fault, assets_version};
use crate::visit::guard::CSRF;
use crate::visit::{Visit, api_name, link};

/// The largest number of containers in the list.
const LISTED_MAX: usize = 500;

/// The pages of a container: path, name, key.
const TABS: [(&str, &str, &str); 6] = [
    ("", "Items", "i"),
    ("query", "Query", "q"),
    ("timeline", "Timeline", "t"),
    ("feed", "Feed", "f"),
    ("holds", "Holds", "h"),
    ("settings", "Settings", "s"),
];

/// Returns a page without the frame.
pub(crate) fn bare(title: &str, inner: &Markup) -> Markup {
    document(title, &html! { main #main .bare { (inner) } }, None)
}

/// The contents of the frame, read at one time.
struct Around {
    clock: ClockStatus,
    paused: bool,
    owners: Vec<Owner>,
}

impl Around {
    fn look(engine: &Engine) -> engine::Result<Around> {
        let mut owners = Vec::new();
        for database in engine.databases() {
            owners.extend(engine.containers(&database).into_iter().map(Owner::Container));
        }
        for database in engine.collection_databases() {
            owners.extend(engine.collections(&database.name).into_iter().map(Owner::Collection));
        }
        owners.retain(|owner| !owner.is_of_system());
        Ok(Around { clock: engine.clock_status()?, paused: engine.purge_status().paused, owners })
    }
}

/// Returns a page in its frame; for a container or collection, with its head and its other pages.
pub(crate) async fn frame(
    visit: &Visit,
    title: &str,
    owner: Option<&Owner>,
    inner: &Markup,
) -> Result<Markup, Fault> {
    let around = visit.engine(Around::look).await?;
    let head = match owner {
        Some(owner) => Some(head_of(visit, owner).await?),
        None => None,
    };
    let body = html! {
        a.skip href="#main" { "Skip to the page" }
        header.top {
            a.brand href="/_explorer/" { (comet()) span { "Bolide" } }
            nav.global aria-label="Server" {
                a href="/_explorer/" data-key="d" { "Databases" }
                a href="/_explorer/clock" data-key="c" { "Clock" }
                a href="/_explorer/purge" data-key="p" { "Purge" }
                a href="/_explorer/users" data-key="u" { "Users" }
                a href="/_explorer/keys" data-key="k" { "Keys" }
                a href="/_explorer/help" data-key="?" { "Help" }
            }
            div.state {
                @if visit.session.right() == Right::ReadOnly { span.badge { "read-only" } }
                @if around.paused { a.badge.warn href="/_explorer/purge" { "purge paused" } }
                (clock(&around.clock))
                form method="post" action="/_explorer/sign-out" {
                    (csrf(visit))
                    button.quiet type="submit" { "Sign out" }
                }
            }
        }
        div.columns {
            nav.tree aria-label="Databases and containers" { (tree(&around.owners, owner)) }
            main #main tabindex="-1" {
                @if let Some(head) = head { (head) }
                @if let Some(said) = visit.query.text("said").and_then(saying) {
                    p.notice role="status" { (said) }
                }
                (inner)
            }
        }
    };
    Ok(document(title, &body, Some(&around.clock)))
}

fn document(title: &str, body: &Markup, clock: Option<&ClockStatus>) -> Markup {
    let version = assets_version();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Bolide" }
                link rel="icon" href={ "/_explorer/icon.svg?" (version) } type="image/svg+xml";
                link rel="stylesheet" href={ "/_explorer/style.css?" (version) };
                script src={ "/_explorer/script.js?" (version) } defer {}
            }
            body data-now=[clock.map(|clock| clock.now.millis())]
                data-stopped[clock.is_some_and(|clock| clock.test_clock == TestClock::Stopped)] { (body) }
        }
    }
}

/// Shows the store's clock, which the script keeps running.
pub(crate) fn clock(status: &ClockStatus) -> Markup {
    html! {
        span.clock title="The store's time (UTC)" {
            @if status.suspect.is_some() { a.badge.warn href="/_explorer/clock" { "clock suspect" } }
            @else if status.offset().is_noteworthy() {
                a.badge.warn href="/_explorer/clock" title=(format!("The store's time is {}", status.offset())) { "clock offset" }
            }
            @else if status.test_clock.is_on() { a.badge href="/_explorer/clock" { "test clock" } }
            time #clock { (format::utc(status.now)) }
        }
    }
}

fn tree(owners: &[Owner], current: Option<&Owner>) -> Markup {
    let is_current = |owner: &Owner| {
        current.is_some_and(|it| {
            it.api() == owner.api() && it.database() == owner.database() && it.name() == owner.name()
        })
    };
    let place = |owner: &Owner| (owner.api(), owner.database().to_owned());
    let listed = &owners[..owners.len().min(LISTED_MAX)];
    html! {
        @if owners.is_empty() { p.faint { "Nothing here yet." } }
        ul {
            @for of_database in listed.chunk_by(|one, other| place(one) == place(other)) {
                @if let Some(first) = of_database.first() {
                    li.database { span.name { (first.database()) } span.api { (api_name(first.api())) } }
                }
                @for owner in of_database {
                    li { a href=(link(owner, "")) aria-current=[is_current(owner).then_some("true")] { (owner.name()) } }
                }
            }
        }
        @if owners.len() > LISTED_MAX {
            p.faint { "and " (format::count((owners.len() - LISTED_MAX) as u64)) " more" }
        }
        a.new href="/_explorer/new" data-key="n" { "New container" }
    }
}

/// Returns the name, figures and pages of a container or collection.
async fn head_of(visit: &Visit, owner: &Owner) -> Result<Markup, Fault> {
    let of = owner.clone();
    let usage = visit.engine(move |engine| engine.usage_of(&of)).await?;
    let lifecycle = owner.lifecycle();
    let here = visit.path.get(4).map_or("", String::as_str);
    let noun = if owner.api() == Api::MongoDb { "documents" } else { "items" };
    Ok(html! {
        div.holder {
            h1 { span.faint { (owner.database()) " / " } (owner.name()) }
            span.badge { (api_name(owner.api())) }
            span.badge.ttl { "TTL " (format::ttl(owner.default_ttl())) }
            @for rule in owner.date_rules() {
                span.badge.ttl { (rule.index) " + " (format::span(u64::from(rule.expire_after_seconds.unsigned_abs()))) }
            }
            @if lifecycle.hold.is_some() { span.badge.warn { "on hold" } }
            span.figures {
                b { (format::count(usage.living.items)) } " " (noun) " · " (format::bytes(usage.living.bytes))
                @if usage.expired.items > 0 { " · " span.expired { (format::count(usage.expired.items)) " expired" } }
            }
        }
        nav.tabs aria-label="Container" {
            @for (path, name, key) in TABS {
                a href=(link(owner, path)) data-key=(key) aria-current=[(here == path).then_some("page")] { (name) }
            }
        }
    })
}

/// Returns the hidden field of every form.
pub(crate) fn csrf(visit: &Visit) -> Markup {
    html! { input type="hidden" name=(CSRF) value=(visit.session.csrf); }
}

/// Returns the message about a previous action; only one of these texts, whatever a link contains.
fn saying(word: &str) -> Option<&'static str> {
    Some(match word {
        "created" => "Created.",
        "saved" => "Saved.",
        "deleted" => "Deleted.",
        "held" => "Held. Nothing can change or remove it until the hold is lifted.",
        "lifted" => "The hold is lifted.",
        "ttl" => "The time to live is changed; it is in force already.",
        "settings" => "The settings are changed.",
        "advanced" => "The clock was moved forward.",
        "clock" => "The clock is trusted again.",
        "paused" => "The purge is paused. Expired items stay invisible.",
        "resumed" => "The purge is resumed.",
        "purged" => "Expired items are removed.",
        "user" => "The users are changed.",
        "gone" => "The item is gone: it has expired or was deleted.",
        _ => return None,
    })
}

/// Returns the logo.
pub(crate) fn comet() -> Markup {
    html! {
        svg.comet viewBox="0 0 32 32" aria-hidden="true" {
            path.tail d="M3 27 L17 9 L23 15 Z" {}
            circle.head cx="21.5" cy="10.5" r="5.5" {}
        }
    }
}
