//! The forms of requests: refused if the server cannot serve them, whatever the operation.

use crate::client::Server;

#[tokio::test]
async fn forms_that_do_not_exist_are_refused_by_name() {
    let server = Server::with_container("").await;
    server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
    let read =
        |name: &str, value: &str| server.get("/dbs/db/colls/c/docs/1").key("a").header(name, value).send();
    for (name, good, bad) in [
        (
            "x-ms-version",
            &["2014-08-21", "2018-09-17", "2020-07-15", "2030-01-01"][..],
            &["2015-01-01", "1", ""][..],
        ),
        ("x-ms-documentdb-responsecontinuationtokenlimitinkb", &["1", "128"], &["0", "-1", "x"]),
        (
            "x-ms-documentdb-content-serialization-format",
            &["JsonText", "cosmosbinary", "HybridRow"],
            &["Text", "JsonText,Xml"],
        ),
        (
            "x-ms-cosmos-supported-serialization-formats",
            &["JsonText, CosmosBinary", "JsonText,Xml", ""],
            &["Xml", "Xml,Text"],
        ),
    ] {
        for value in good {
            read(name, value).await.expect_status(200);
        }
        for value in bad {
            let refused = read(name, value).await.expect_error(400, 0, "BadRequest");
            let named = format!("The value '{value}' specified for '{name}' is invalid: expected ");
            assert!(refused.message().contains(&named), "{}", refused.message());
        }
    }
}
