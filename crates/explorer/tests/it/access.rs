//! Access: who may sign in, and what each may do.

use account::Kind;
use bson::{Document, RawDocument};
use engine::{CollectionDefinition, Owner};
use explorer::Weight;
use hyper::StatusCode;

use crate::browser::{KEY, READ_ONLY_KEY, World, get, post};

const PAGES: &[&str] = &[
    "",
    "help",
    "new",
    "clock",
    "purge",
    "users",
    "keys",
    "c/nosql/shop/orders",
    "c/nosql/shop/orders/query",
    "c/nosql/shop/orders/timeline",
    "c/nosql/shop/orders/feed",
    "c/nosql/shop/orders/holds",
    "c/nosql/shop/orders/settings",
    "c/nosql/shop/orders/new",
];

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_visitors_are_shown_the_sign_in_form_and_nothing_else() {
    let world = World::with_orders("60");
    world.put(r#"{"id":"secret","pk":1}"#);
    for path in PAGES {
        let page = world.ask(get(path, None)).await;
        assert_eq!(page.status, StatusCode::SEE_OTHER, "{path}");
        assert!(page.location.unwrap().starts_with("/_explorer/sign-in?next="), "{path}");
        let page = world.ask(post(path, &[], None)).await;
        assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{path}");
        assert!(!page.text.contains("orders"), "{path}");
    }
    for asset in ["style.css", "script.js", "icon.svg"] {
        assert_eq!(world.ask(get(asset, None)).await.status, StatusCode::OK);
    }
    let head = |path: &str| get(path, Some("bolide-explorer=nonsense")).into_parts().0;
    assert!(
        world.explorer.body_bytes(&head("")) < 10_000,
        "unauthenticated clients cannot make the server buffer anything"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_every_page_and_a_wrong_one_none() {
    let world = World::with_orders("60");
    let page = world.ask(post("sign-in", &[("key", "d3Jvbmc="), ("next", "/_explorer/clock")], None)).await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED);
    assert!(page.cookie.is_none() && page.has("not a key of this account") && !page.has("d3Jvbmc="));

    let page = world.ask(post("sign-in", &[("key", KEY), ("next", "/_explorer/clock")], None)).await;
    assert_eq!(page.location.as_deref(), Some("/_explorer/clock"));
    let cookie = page.set_cookie.unwrap();
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/_explorer"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(page.cookie.unwrap().len() >= "bolide-explorer=".len() + 43, "256 bits");

    let browser = world.sign_in(KEY).await;
    for path in PAGES {
        let page = browser.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.text);
    }
    assert_eq!(browser.get("nowhere").await.status, StatusCode::NOT_FOUND);
    assert_eq!(browser.get("c/nosql/shop/none").await.status, StatusCode::NOT_FOUND);
    assert_eq!(browser.get("c/other/shop/orders").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bare_prefix_leads_to_the_first_page() {
    let world = World::new();
    for path in ["/_explorer", "/_explorer/index.html"] {
        let request = hyper::Request::builder().uri(path).body(bytes::Bytes::new()).unwrap();
        let page = world.ask(request).await;
        assert_eq!(
            (page.status, page.location.as_deref()),
            (StatusCode::PERMANENT_REDIRECT, Some("/_explorer/"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_ends_the_session_and_so_does_another_key() {
    let world = World::new();
    let browser = world.sign_in(KEY).await;
    let page = browser.send("sign-out", &[]).await;
    assert!(page.set_cookie.unwrap().contains("Max-Age=0"));
    assert_eq!(browser.get("").await.status, StatusCode::SEE_OTHER);

    let browser = world.sign_in(KEY).await;
    world.keys.regenerate(Kind::Primary).unwrap();
    assert_eq!(browser.get("").await.status, StatusCode::SEE_OTHER);
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_of_other_sites_do_nothing() {
    let world = World::with_orders("60");
    let browser = world.sign_in(KEY).await;
    let csrf = browser.get("clock").await.hidden("csrf");
    let before = world.engine.now().unwrap();
    let form = |fields: &[(&str, &str)]| post("clock", fields, Some(&browser.cookie));

    let other = world.sign_in(KEY).await.get("clock").await.hidden("csrf");
    let agreed = [("advance", "60"), ("confirmed", "0")];
    for secret in [None, Some(("csrf", "")), Some(("csrf", other.as_str()))] {
        let fields: Vec<_> = agreed.into_iter().chain(secret).collect();
        let fields = &fields[..];
        assert_eq!(world.ask(form(fields)).await.status, StatusCode::FORBIDDEN, "{fields:?}");
    }
    for (name, value) in
        [("origin", "http://evil.example"), ("sec-fetch-site", "same-site"), ("sec-fetch-site", "cross-site")]
    {
        let mut request = form(&[agreed[0], agreed[1], ("csrf", &csrf)]);
        request.headers_mut().insert(name, value.parse().unwrap());
        assert_eq!(world.ask(request).await.status, StatusCode::FORBIDDEN, "{name}: {value}");
    }
    let mut request = post("sign-in", &[("key", KEY)], None);
    request.headers_mut().insert("origin", "http://evil.example".parse().unwrap());
    assert!(world.ask(request).await.cookie.is_none(), "another site signs no visitor in");
    assert_eq!(world.engine.now().unwrap(), before);

    let sent = world.ask(form(&[agreed[0], agreed[1], ("csrf", &csrf)])).await;
    assert_eq!(sent.status, StatusCode::SEE_OTHER);
    assert!(world.engine.now().unwrap() > before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_key_looks_and_changes_nothing() {
    let world = World::with_orders("60");
    let number = world.put(r#"{"id":"a","pk":1}"#).rid.number;
    let browser = world.sign_in(READ_ONLY_KEY).await;
    for path in PAGES {
        assert_eq!(browser.get(path).await.status, StatusCode::OK, "{path}");
    }
    let item = format!("c/nosql/shop/orders/item/{number}");
    let writes: &[(&str, &[(&str, &str)])] = &[
        ("clock", &[("advance", "60")]),
        ("purge", &[("do", "pause")]),
        ("new", &[("api", "nosql"), ("database", "x"), ("name", "y"), ("key", "/id")]),
        ("keys", &[("regenerate", "primary")]),
        ("users", &[("do", "create-nosql"), ("user", "u"), ("database", "shop")]),
        ("c/nosql/shop/orders/new", &[("text", r#"{"id":"b","pk":1}"#)]),
        (&item, &[("text", r#"{"id":"a","pk":1,"x":1}"#)]),
        ("c/nosql/shop/orders/holds", &[("do", "hold-container"), ("reason", "x")]),
        ("c/nosql/shop/orders/purge", &[]),
        ("c/nosql/shop/orders/settings/ttl", &[("ttl", "off")]),
        ("c/nosql/shop/orders/settings/lifecycle", &[("guard", "1")]),
        ("c/nosql/shop/orders/settings/delete", &[("name", "orders")]),
    ];
    let before = world.engine.now().unwrap();
    for (path, fields) in writes {
        assert_eq!(browser.send(path, fields).await.status, StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(world.engine.now().unwrap(), before);
    assert_eq!((world.living(), world.engine.databases().len()), (1, 1));

    let page = browser.send("c/nosql/shop/orders/query", &[("sql", "SELECT VALUE c.id FROM c")]).await;
    assert!(page.has("&quot;a&quot;"), "asking is not changing: {}", page.text);
    let page = browser.get("c/nosql/shop/orders/settings/dry-run?ttl=off").await;
    assert!(page.has("Nothing would expire at once"));
}

#[tokio::test]
async fn pages_say_which_line_they_wait_in() {
    let world = World::with_orders("10");
    let browser = world.sign_in(KEY).await;
    let weight = |path: &str, cookie| {
        let (head, _) = get(path, cookie).into_parts();
        world.explorer.weight(&head)
    };
    for (path, expected) in [
        ("", Some(Weight::Brief)),
        ("purge", Some(Weight::Brief)),
        ("c/nosql/shop/orders", Some(Weight::Query)),
        ("c/nosql/shop/orders/feed", Some(Weight::Query)),
        ("c/nosql/shop/orders/settings", Some(Weight::Brief)),
        // Its commands wait in queues of their own.
        ("c/mongodb/shop/carts", Some(Weight::Brief)),
        ("style.css", None),
        ("sign-in", None),
        ("nothing", None),
    ] {
        assert_eq!(weight(path, Some(&browser.cookie)), expected, "{path}");
        assert_eq!(weight(path, None), None, "{path} of an unauthenticated client");
    }
    let refused = explorer::busy(350);
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
}

/// The pages of a container or collection, below its path; `{}` is the number of an item.
const OF_AN_OWNER: &[&str] = &[
    "",
    "/query",
    "/timeline",
    "/timeline/live",
    "/purge",
    "/feed",
    "/feed/live",
    "/holds",
    "/settings",
    "/settings/dry-run?ttl=1",
    "/settings/ttl",
    "/settings/lifecycle",
    "/settings/delete",
    "/new",
    "/item/{}",
    "/item/{}/delete",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_page_and_no_form_reaches_what_belongs_to_the_system() {
    let world = World::with_orders("60");
    let make = |database: &str, name: &str| {
        let made =
            world.engine.create_collection(database, name, CollectionDefinition::default(), None).unwrap();
        let user = Document::new().with("_id", "admin.ann").with("storedKey", "c2VjcmV0");
        let inserted = world.engine.insert(&made, vec![RawDocument::from_document(&user)], true, None);
        inserted.wait().unwrap().remove(0).unwrap();
        Owner::Collection(made)
    };
    let path_of = |owner: &Owner, page: &str| {
        let number = world.engine.browse(owner, None, 1).unwrap().items[0].number.0;
        let page = page.replace("{}", &number.to_string());
        format!("c/mongodb/{}/{}{page}", owner.database(), owner.name())
    };
    let (users, version) = (make("admin", "system.users"), make("admin", "system.version"));
    let of_a_user = make("admin", "users");
    for key in [READ_ONLY_KEY, KEY] {
        let browser = world.sign_in(key).await;
        let shown = browser.get(&path_of(&of_a_user, "/item/{}")).await;
        assert!(shown.has("c2VjcmV0"), "the path of the test is that of an item: {}", shown.text);
        for (owner, page) in
            [&users, &version].into_iter().flat_map(|it| OF_AN_OWNER.iter().map(move |page| (it, page)))
        {
            let path = path_of(owner, page);
            let shown = browser.get(&path).await;
            let sent =
                browser.send(&path, &[("text", "{}"), ("name", owner.name()), ("confirmed", "1")]).await;
            for answer in [shown, sent] {
                assert!(answer.status.is_client_error(), "{path}: {} {}", answer.status, answer.text);
                assert!(!answer.has("c2VjcmV0"), "{path}: {}", answer.text);
            }
        }
        for page in ["", "live", "purge", "purge/live", "help"] {
            let shown = browser.get(page).await;
            assert!(!shown.has("system."), "{page}: {}", shown.text);
        }
    }
    assert_eq!(world.engine.collections("admin").len(), 3, "nothing was dropped");
}
