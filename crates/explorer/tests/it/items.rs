//! Items: browsed, created, changed, deleted.

use hyper::StatusCode;

use crate::browser::{KEY, World};

#[tokio::test(flavor = "multi_thread")]
async fn wrong_json_comes_back_with_its_place_and_the_text() {
    let world = World::with_orders("60");
    let number = world.put(r#"{"id":"a","pk":1,"name":"kept"}"#).rid.number;
    let browser = world.sign_in(KEY).await;
    let item = format!("c/nosql/shop/orders/item/{number}");
    let version = browser.get(&item).await.hidden("version");
    let typed = "{\n  \"id\": \"a\",\n  \"pk\": 1,\n  \"name\": \"my long <work>\",,\n}";
    let page = browser.send(&item, &[("text", typed), ("version", &version)]).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert!(page.has("Line 4, column 28") && page.has("data-line=\"4\""), "{}", page.text);
    assert!(page.has("&quot;my long &lt;work&gt;&quot;,,\n}"), "the text is kept: {}", page.text);
    assert_eq!(page.hidden("version"), version, "and can be corrected and sent again");
    let page = browser.send("c/nosql/shop/orders/new", &[("text", typed)]).await;
    assert!(page.has("Line 4, column 28") && page.has("my long &lt;work&gt;"));

    let wrong = r#"{"id":"a","pk":1,"ttl":-10}"#;
    let page = browser.send(&item, &[("text", wrong), ("version", &version)]).await;
    assert!(page.has("ttl") && page.has("-10") && page.status == StatusCode::BAD_REQUEST);
    assert!(browser.get(&item).await.has("kept"), "nothing was stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_is_made_changed_and_deleted() {
    let world = World::with_orders("60");
    let browser = world.sign_in(KEY).await;
    let made = browser
        .send("c/nosql/shop/orders/new", &[("text", r#"{"id":"a","pk":"eu","big":9007199254740993}"#)])
        .await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text);
    let list = browser.follow(&made).await;
    assert!(list.has("Created.") && list.has("9007199254740993") && list.has("data-expiry="));
    let from = list.text.find("orders/item/").unwrap() + "orders/item/".len();
    let number: String = list.text[from..].chars().take_while(char::is_ascii_digit).collect();
    let item = format!("c/nosql/shop/orders/item/{number}");
    let page = browser.get(&item).await;
    let version = page.hidden("version");
    let saved =
        browser.send(&item, &[("text", r#"{"id":"a","pk":"eu","n":2}"#), ("version", &version)]).await;
    assert!(browser.follow(&saved).await.has("Saved."));
    assert_ne!(browser.get(&item).await.hidden("version"), version);

    let stale = browser.send(&format!("{item}/delete"), &[("version", &version)]).await;
    assert_eq!((stale.status, world.living()), (StatusCode::BAD_REQUEST, 1));
    let version = browser.get(&item).await.hidden("version");
    let deleted = browser.confirm(&format!("{item}/delete"), &[("version", &version)]).await;
    assert_eq!((deleted.status, world.living()), (StatusCode::SEE_OTHER, 0));
    assert_eq!(browser.get(&item).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_change_an_item_see_both_versions() {
    let world = World::with_orders("60");
    let number = world.put(r#"{"id":"a","pk":1,"n":0}"#).rid.number;
    let browser = world.sign_in(KEY).await;
    let item = format!("c/nosql/shop/orders/item/{number}");
    let seen = browser.get(&item).await.hidden("version");
    browser.send(&item, &[("text", r#"{"id":"a","pk":1,"theirs":true}"#), ("version", &seen)]).await;
    let page = browser.send(&item, &[("text", r#"{"id":"a","pk":1,"mine":true}"#), ("version", &seen)]).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    assert!(page.has("The item has changed") && page.has("mine") && page.has("theirs"));
    assert!(browser.get(&item).await.has("theirs"), "nothing was stored");
    let again = page.hidden("version");
    let saved =
        browser.send(&item, &[("text", r#"{"id":"a","pk":1,"mine":true}"#), ("version", &again)]).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER);
}

#[tokio::test(flavor = "multi_thread")]
async fn t13_an_item_that_expires_while_it_is_edited_does_not_come_back_and_the_text_is_kept() {
    let world = World::with_orders("60");
    let number = world.put(r#"{"id":"a","pk":1}"#).rid.number;
    let browser = world.sign_in(KEY).await;
    let item = format!("c/nosql/shop/orders/item/{number}");
    let version = browser.get(&item).await.hidden("version");
    world.engine.advance_clock(60).unwrap();
    let page =
        browser.send(&item, &[("text", r#"{"id":"a","pk":1,"mine":"kept"}"#), ("version", &version)]).await;
    assert_eq!((page.status, world.living()), (StatusCode::NOT_FOUND, 0));
    assert!(page.has("The item is gone") && page.has("&quot;kept&quot;"));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_go_on_page_by_page_and_can_be_narrowed() {
    let world = World::with_orders("null");
    for number in 0..130 {
        world.put(&format!(r#"{{"id":"item-{number:03}","pk":{}}}"#, number % 2));
    }
    let browser = world.sign_in(KEY).await;
    let ids = |text: &str| text.match_indices("data-row").count();
    let (mut path, mut seen, mut pages) = ("c/nosql/shop/orders".to_owned(), 0, 0);
    loop {
        let page = browser.get(&path).await;
        seen += ids(&page.text);
        pages += 1;
        let Some(at) = page.text.find("rel=\"next\"") else { break };
        let from = page.text[..at].rfind("href=\"").unwrap() + 6;
        let link = page.text[from..].split('"').next().unwrap().replace("&amp;", "&");
        path = link.strip_prefix("/_explorer/").unwrap().to_owned();
    }
    assert_eq!((seen, pages), (130, 3));
    assert_eq!(ids(&browser.get("c/nosql/shop/orders?id=item-12").await.text), 10);
    assert_eq!(ids(&browser.get("c/nosql/shop/orders?id=item-12&key=1").await.text), 5);
    assert_eq!(ids(&browser.get("c/nosql/shop/orders?key=0").await.text), 50);
    assert_eq!(ids(&browser.get("c/nosql/shop/orders?key=%220%22").await.text), 0, "a string is another key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_shows_rows_charge_and_what_the_index_did() {
    let world = World::with_orders("null");
    for number in 0..5 {
        world.put(&format!(r#"{{"id":"{number}","pk":1,"price":{number}}}"#));
    }
    let browser = world.sign_in(KEY).await;
    let page =
        browser.send("c/nosql/shop/orders/query", &[("sql", "SELECT * FROM c WHERE c.price >= 3")]).await;
    assert_eq!(page.text.matches("<li data-row").count(), 2, "{}", page.text);
    assert!(page.has(" RU") && page.has("/price/?") && page.has("Index used"));
    assert_eq!(page.text.matches(">Open<").count(), 2, "whole items can be opened");
    let page = browser.send("c/nosql/shop/orders/query", &[("sql", "SELEC * FROM c")]).await;
    assert!(page.has("role=\"alert\"") && page.has("SELEC * FROM c"), "{}", page.text);
}
