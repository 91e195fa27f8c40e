//! Names, ids and bodies that try to be more than text.

use hyper::StatusCode;

use crate::browser::{KEY, World, encode, get};

const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "'-alert(1)-'",
    "</textarea><script>alert(1)</script>",
    "</title><svg onload=alert(1)>",
    "&lt;script&gt;",
    "javascript:alert(1)",
    "\u{202e}evil\u{0000}",
];

/// No text of a user opens a tag. Other tests check the answer itself.
fn is_inert(text: &str) -> bool {
    !text.contains("<img") && !text.contains("<svg onload") && !text.contains("<script>alert")
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_and_bodies_are_text_on_every_page() {
    let world = World::with_orders("60");
    let browser = world.sign_in(KEY).await;
    for (at, hostile) in HOSTILE.iter().enumerate() {
        let quoted = document::Value::String((*hostile).to_owned()).to_json();
        let id = document::Value::String(hostile.replace(['/', '\\', '?', '#', '\0'], "_")).to_json();
        let number =
            world.put(&format!(r#"{{"id":{id},"pk":{quoted},{quoted}:{quoted},"n":{at}}}"#)).rid.number;
        let item = browser.get(&format!("c/nosql/shop/orders/item/{number}")).await;
        assert_eq!(item.status, StatusCode::OK);
        assert!(is_inert(&item.text), "{}", item.text);
        let kept = browser
            .send(&format!("c/nosql/shop/orders/item/{number}"), &[("text", hostile), ("version", "x")])
            .await;
        assert_eq!(kept.status, StatusCode::CONFLICT);
        assert!(is_inert(&kept.text), "{}", kept.text);
        let made = browser.send("c/nosql/shop/orders/new", &[("text", hostile)]).await;
        assert_eq!(made.status, StatusCode::BAD_REQUEST);
        assert!(is_inert(&made.text), "{}", made.text);
    }
    for path in ["c/nosql/shop/orders", "c/nosql/shop/orders/feed", "c/nosql/shop/orders/timeline", ""] {
        assert!(is_inert(&browser.get(path).await.text), "{path}");
    }
    let rows = browser.send("c/nosql/shop/orders/query", &[("sql", "SELECT * FROM c")]).await;
    assert!(rows.has("alert(1)") && is_inert(&rows.text));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_for_is_text_as_well() {
    let world = World::with_orders("60");
    let browser = world.sign_in(KEY).await;
    for hostile in HOSTILE {
        let encoded = encode(hostile);
        for path in [
            encoded.clone(),
            format!("?said={encoded}"),
            format!("sign-in?next={encoded}"),
            format!("c/nosql/{encoded}/orders"),
            format!("c/nosql/shop/orders?id={encoded}&key={encoded}"),
            format!("c/nosql/shop/orders?after={encoded}"),
            format!("c/nosql/shop/orders/timeline?range={encoded}"),
            format!("c/nosql/shop/orders/item/{encoded}"),
            format!("c/nosql/shop/orders/settings/dry-run?ttl={encoded}&amount={encoded}"),
            format!("c/nosql/shop/orders/holds?after={encoded}"),
        ] {
            assert!(is_inert(&browser.get(&path).await.text), "{path}");
        }
        let form = [
            ("sql", *hostile),
            ("key", hostile),
            ("database", hostile),
            ("name", hostile),
            ("reason", hostile),
            ("do", "hold"),
            ("id", hostile),
            ("text", hostile),
        ];
        for path in [
            "new",
            "clock",
            "users",
            "keys",
            "c/nosql/shop/orders/query",
            "c/nosql/shop/orders/holds",
            "c/nosql/shop/orders/settings/delete",
        ] {
            assert!(is_inert(&browser.send(path, &form).await.text), "{path} {hostile}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_containers_reasons_and_users_are_text() {
    let world = World::with_orders("60");
    let browser = world.sign_in(KEY).await;
    let name = "<script>alert(1)<script>";
    let made = browser
        .send("new", &[("api", "nosql"), ("database", name), ("name", name), ("key", "/id"), ("ttl", "own")])
        .await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text);
    let page = browser.follow(&made).await;
    assert!(page.has("&lt;script&gt;alert(1)&lt;script&gt;") && is_inert(&page.text));
    let held = browser.send("c/nosql/shop/orders/holds", &[("do", "hold-container"), ("reason", name)]).await;
    assert_eq!(held.status, StatusCode::SEE_OTHER);
    assert!(is_inert(&browser.get("c/nosql/shop/orders/holds").await.text));
    browser.send("users", &[("do", "create-nosql"), ("user", name), ("database", "shop")]).await;
    let users = browser.get("users").await;
    assert!(users.has("&lt;script&gt;") && is_inert(&users.text));
}

/// Unauthenticated clients cannot enlarge the answers that they leave unread.
#[tokio::test]
async fn a_long_address_is_not_sent_back_to_an_unauthenticated_client() {
    let world = World::with_orders("60");
    let ask = async |path: &str| world.ask(get(path, None)).await;
    let size = ask("sign-in").await.text.len();
    let long = "%22".repeat(2000);
    let page = ask(&format!("sign-in?next=/_explorer/{long}")).await;
    assert_eq!(
        (page.status, page.text.len()),
        (StatusCode::OK, size),
        "the form, and nothing of the address"
    );
    let page = ask(&format!("c/nosql/{long}")).await;
    assert_eq!(page.location.as_deref(), Some("/_explorer/sign-in"));
    let page = ask("sign-in?next=/_explorer/purge").await;
    assert!(page.has("/_explorer/purge"), "an address of ours is remembered");
}
