//! The audit log: what it records of each form, and the secrets that it never records.

use account::{Key, Kind};
use explorer::AuditedAction;
use hyper::StatusCode;

use crate::browser::{KEY, Page, READ_ONLY_KEY, World, post};

type Form = (&'static str, &'static [(&'static str, &'static str)]);

/// `action who target details`, a dash for an absent part; empty if nothing was recorded.
fn line(page: &Page) -> String {
    let Some(AuditedAction { who, action, target, details }) = &page.audited else { return String::new() };
    let label = |kind: Kind, key| format!("{} key {}", kind.name(), Key::parse(key).unwrap().fingerprint());
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let who = text(who).replace(&label(Kind::Primary, KEY), "PRIMARY");
    let who = who.replace(&label(Kind::PrimaryReadonly, READ_ONLY_KEY), "READER");
    format!("{action} {who} {} {}", text(target), text(details))
}

/// Forms of a session with the primary key, the status of each answer, and the record in the audit log.
const FORMS: &[(Form, u16, &str)] = &[
    (
        (
            "new",
            &[
                ("api", "nosql"),
                ("database", "shop"),
                ("name", "carts"),
                ("key", "/not-for-the-log"),
                ("ttl", "after"),
                ("amount", "2"),
                ("unit", "minutes"),
                ("history", "10"),
            ],
        ),
        303,
        r#"new PRIMARY shop/carts {"defaultTtl":120,"historyMinutes":10}"#,
    ),
    (
        ("c/nosql/shop/orders/settings/ttl", &[("ttl", "off")]),
        303,
        r#"settings/ttl PRIMARY nosql/shop/orders {"defaultTtl":null}"#,
    ),
    (
        ("c/nosql/shop/orders/settings/lifecycle", &[("guard", "50"), ("delay", "60"), ("sliding", "on")]),
        303,
        r#"settings/lifecycle PRIMARY nosql/shop/orders {"maxInstantExpiry":0.5,"maxPurgeDelay":60,"deletionRecord":false,"sliding":true}"#,
    ),
    (
        ("c/nosql/shop/orders/settings/lifecycle", &[("guard", "not-for-the-log")]),
        400,
        "settings/lifecycle PRIMARY nosql/shop/orders -",
    ),
    (
        (
            "c/nosql/shop/carts/holds",
            &[("do", "hold"), ("id", "not-for-the-log"), ("key", r#"["not-for-the-log"]"#)],
        ),
        404,
        "holds hold PRIMARY nosql/shop/carts -",
    ),
    (
        ("users", &[("do", "create-nosql"), ("database", "shop"), ("user", "anna")]),
        303,
        "users create-nosql PRIMARY shop/anna -",
    ),
    (
        (
            "users",
            &[
                ("do", "permit"),
                ("of", "shop/anna"),
                ("permission", "p"),
                ("mode", "Read"),
                ("resource", "dbs/shop/colls/orders"),
            ],
        ),
        303,
        r#"users permit PRIMARY shop/anna {"permission":"p","mode":"Read","resource":"dbs/shop/colls/orders"}"#,
    ),
    (
        (
            "users",
            &[
                ("do", "create-mongodb"),
                ("database", "admin"),
                ("user", "bert"),
                ("password", "not-for-the-log"),
                ("role", "read"),
            ],
        ),
        400,
        r#"users create-mongodb PRIMARY admin/bert {"role":"read"}"#,
    ),
    (("purge", &[("do", "pause")]), 303, "purge pause PRIMARY - -"),
    (("clock", &[("advance", "60")]), 200, ""),
    (("clock", &[("advance", "60"), ("confirmed", "0")]), 303, "clock PRIMARY 60 -"),
    (("keys", &[("regenerate", "secondary")]), 200, "keys secondary PRIMARY - -"),
    (("c/nosql/shop/orders/new", &[("text", r#"{"id":"not-for-the-log","pk":1}"#)]), 303, ""),
    (("c/nosql/shop/orders/query", &[("sql", "SELECT * FROM c")]), 200, ""),
    (("sign-out", &[]), 303, ""),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_form_leaves_what_it_should() {
    let world = World::with_orders("60");
    let browser = world.sign_in(KEY).await;
    for ((path, fields), status, expected) in FORMS {
        let page = browser.send(path, fields).await;
        assert_eq!(
            (page.status.as_u16(), line(&page).as_str()),
            (*status, *expected),
            "{path}: {}",
            page.text
        );
        assert!(!format!("{:?}", page.audited).contains("not-for-the-log"), "{path}");
    }
}

/// Forms of every kind, and the record of each beside its sender.
const REFUSED: &[(Form, &str, &str)] = &[
    (("keys", &[("regenerate", "secondary")]), "keys secondary", "- -"),
    (("purge", &[("do", "pause")]), "purge pause", "- -"),
    (
        ("c/nosql/shop/orders/settings/ttl", &[("ttl", "own")]),
        "settings/ttl",
        r#"nosql/shop/orders {"defaultTtl":-1}"#,
    ),
    (("c/nosql/shop/orders/new", &[("text", "not-for-the-log")]), "item/new", "nosql/shop/orders -"),
    (("c/nosql/shop/orders/item/7", &[("text", "not-for-the-log")]), "item", "nosql/shop/orders -"),
    (("c/nosql/shop/orders/item/7/delete", &[]), "item/delete", "nosql/shop/orders -"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_refused_form_has_a_line() {
    let world = World::with_orders("60");
    let (owner, reader) = (world.sign_in(KEY).await, world.sign_in(READ_ONLY_KEY).await);
    let over = Some("bolide-explorer=nonsense");
    for ((path, fields), action, rest) in REFUSED {
        for (page, status, who) in [
            (world.ask(post(path, fields, over)).await, StatusCode::UNAUTHORIZED, "-"),
            (world.ask(post(path, fields, None)).await, StatusCode::UNAUTHORIZED, "-"),
            (world.ask(post(path, fields, Some(&owner.cookie))).await, StatusCode::FORBIDDEN, "PRIMARY"),
            (reader.send(path, fields).await, StatusCode::FORBIDDEN, "READER"),
        ] {
            assert_eq!((page.status, line(&page)), (status, format!("{action} {who} {rest}")), "{path}");
        }
    }
    // Forms that only read are refused only if another site sent them, and a page is no form.
    let query: &[_] = &[("sql", "not-for-the-log")];
    let page = world.ask(post("c/nosql/shop/orders/query", query, Some(&reader.cookie))).await;
    assert_eq!(line(&page), "query READER nosql/shop/orders -");
    assert_eq!(line(&world.ask(post("nowhere", query, None)).await), "unknown - - -");
    assert_eq!(line(&world.ask(crate::browser::get("keys", None)).await), "");
    let wrong = world.ask(post("sign-in", &[("key", "bm90LWZvci10aGUtbG9n")], None)).await;
    assert_eq!(line(&wrong), "sign-in - - -");
}
