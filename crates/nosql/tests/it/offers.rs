//! Throughput: requested in headers, read by query, replaced by PUT.

use document::Value;

use crate::client::Server;

async fn offer_of(server: &Server, resource: &str) -> Option<Value> {
    let body = format!(
        "{{\"query\":\"SELECT * FROM root r WHERE r.resource=@link\",\
         \"parameters\":[{{\"name\":\"@link\",\"value\":\"{resource}\"}}]}}"
    );
    let reply = server.post("/offers", &body).header("content-type", "application/query+json").send().await;
    let offers = reply.expect_status(200).member("Offers");
    offers.as_array().unwrap().first().cloned()
}

fn figure(offer: &Value, name: &str) -> Option<i64> {
    offer.get("content")?.get(name)?.as_i64()
}

#[tokio::test]
async fn a_containers_offer_is_found_by_its_link_and_by_its_id() {
    let server = Server::start().await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#;
    let created =
        server.post("/dbs/db/colls", definition).header("x-ms-offer-throughput", "20000").send().await;
    let created = created.expect_status(201);
    let offer = offer_of(&server, &created.string("_self")).await.unwrap();
    assert_eq!(figure(&offer, "offerThroughput"), Some(20_000));
    let rid = created.string("_rid");
    let body = format!("{{\"query\":\"SELECT * FROM c WHERE c.offerResourceId = '{rid}'\"}}");
    let found = server.post("/offers", &body).header("x-ms-documentdb-isquery", "true").send().await;
    assert_eq!(found.ids("Offers").len(), 1);
    let id = offer.get("id").and_then(Value::as_str).unwrap();
    let path = format!("/offers/{id}");
    let changed = offer.to_json().replace("\"offerThroughput\":20000", "\"offerThroughput\":20100");
    let replaced = server.put(&path, &changed).send().await.expect_status(200);
    assert_eq!(figure(&replaced.json(), "offerThroughput"), Some(20_100));
    assert_eq!(figure(&server.get(&path).send().await.json(), "offerThroughput"), Some(20_100));
    for bad in ["300", "450", "1000100", "-1"] {
        let body = offer.to_json().replace(":20000", &format!(":{bad}"));
        server.put(&path, &body).send().await.expect_error(400, 0, "BadRequest");
    }
    server.put(&path, "{}").send().await.expect_error(400, 0, "BadRequest");
    let mixed_up = changed.replace(&format!("\"_rid\":\"{id}\""), "\"_rid\":\"other\"");
    let mixed_up = server.put(&path, &mixed_up).send().await.expect_error(400, 0, "BadRequest");
    assert!(mixed_up.message().contains("the request is for the offer"), "{}", mixed_up.message());
    server.get("/offers/none").send().await.expect_error(404, 0, "NotFound");
}

#[tokio::test]
async fn an_offer_is_replaced_on_condition() {
    let server = Server::with_container("").await;
    let link = server.get("/dbs/db/colls/c").send().await.string("_self");
    let offer = offer_of(&server, &link).await.unwrap();
    let member = |name: &str| offer.get(name).and_then(Value::as_str).unwrap().to_owned();
    let path = format!("/offers/{}", member("id"));
    let put = |etag: &str, figure: u32| {
        let body = offer.to_json().replace(":400", &format!(":{figure}"));
        server.put(&path, &body).header("if-match", etag).send()
    };
    put("\"nope\"", 500).await.expect_error(412, 0, "PreconditionFailed");
    put(&member("_etag"), 600).await.expect_status(200);
    put(&member("_etag"), 700).await.expect_error(412, 0, "PreconditionFailed");
    put("*", 800).await.expect_status(200);
    // A performance level is stored unchanged, and has no effect.
    let typed = |level: &str| {
        let body = offer.to_json().replace("\"Invalid\"", level).replace(":400", ":800");
        server.put(&path, &body).send()
    };
    assert_eq!(typed("\"S2\"").await.expect_status(200).string("offerType"), "S2");
    let silent = offer.to_json().replace("\"offerType\":\"Invalid\",", "").replace(":400", ":800");
    assert_eq!(server.put(&path, &silent).send().await.expect_status(200).string("offerType"), "S2");
    typed("\"S9\"").await.expect_error(400, 0, "BadRequest");
    typed("7").await.expect_error(400, 0, "BadRequest");
    assert_eq!(figure(&server.get(&path).send().await.json(), "offerThroughput"), Some(800));
}

#[tokio::test]
async fn autoscale_and_defaults() {
    let server = Server::start().await;
    let auto = r#"{"maxThroughput":4000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":10}}}"#;
    let created = server.post("/dbs", r#"{"id":"db"}"#).header("x-ms-cosmos-offer-autopilot-settings", auto);
    let created = created.send().await.expect_status(201);
    let offer = offer_of(&server, &created.string("_self")).await.unwrap();
    let settings = offer.get("content").and_then(|content| content.get("offerAutopilotSettings")).unwrap();
    assert_eq!(settings.get("maxThroughput").and_then(Value::as_i64), Some(4000));
    assert!(settings.get("autoUpgradePolicy").is_some());
    let fixed = server.post("/dbs", r#"{"id":"fixed"}"#);
    let fixed =
        fixed.header("x-ms-cosmos-offer-autopilot-settings", r#"{"maxThroughput":4000}"#).send().await;
    let offer = offer_of(&server, &fixed.expect_status(201).string("_self")).await.unwrap();
    let settings = offer.get("content").and_then(|content| content.get("offerAutopilotSettings")).unwrap();
    assert_eq!(settings.get("autoUpgradePolicy"), None, "what raises itself by nothing has no policy");
    let shared = server.create_container("shared", "").await.expect_status(201);
    assert!(
        offer_of(&server, &shared.string("_self")).await.is_none(),
        "it shares its database's throughput"
    );
    assert_eq!(shared.header("x-ms-share-throughput"), Some("true"));
    server.post("/dbs", r#"{"id":"plain"}"#).send().await.expect_status(201);
    let own = server.post("/dbs/plain/colls", r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#).send().await;
    let own = own.expect_status(201);
    assert_eq!(own.header("x-ms-share-throughput"), None);
    let offer = offer_of(&server, &own.string("_self")).await.unwrap();
    assert_eq!(figure(&offer, "offerThroughput"), Some(400));
    for (name, value) in [
        ("x-ms-offer-throughput", "100"),
        ("x-ms-offer-throughput", "x"),
        ("x-ms-cosmos-offer-autopilot-settings", "{\"maxThroughput\":10}"),
        ("x-ms-cosmos-offer-autopilot-settings", "nonsense"),
    ] {
        let reply = server.post("/dbs", r#"{"id":"bad"}"#).header(name, value).send().await;
        reply.expect_error(400, 0, "BadRequest");
    }
    server.get("/dbs/bad").send().await.expect_error(404, 0, "NotFound");
}
