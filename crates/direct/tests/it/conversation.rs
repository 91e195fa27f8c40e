//! Requests, and the answers that belong to them.

use std::io::ErrorKind;

use direct::{Account, Call, Client};
use rntbd::{OperationType, ResourceType};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use crate::peer::Peer;

pub(crate) const DATE: &str = "Tue, 14 Nov 2023 22:13:20 GMT";

pub(crate) fn account() -> Account {
    Account { key: "c29tZSBzZWNyZXQga2V5IGZvciB0ZXN0cw==".to_owned(), date: DATE.to_owned() }
}

/// A client whose connection is open, and the other end.
async fn opened() -> (Client<DuplexStream>, Peer<DuplexStream>) {
    let (near, far) = duplex(64);
    let mut peer = Peer(far);
    let (client, ()) = tokio::join!(Client::open(near, account()), peer.welcome());
    (client.unwrap(), peer)
}

#[tokio::test]
async fn a_call_is_signed_and_numbered_and_its_answer_comes_whole() {
    let (mut client, mut peer) = opened().await;
    let call =
        Call::new(OperationType::Create, "dbs/d/colls/c/docs").key("[\"p\"]").payload("{\"id\":\"1\"}");
    let answered = async {
        let asked = peer.request().await;
        assert_eq!(asked.head.resource_type(), Ok(ResourceType::Document));
        assert_eq!(asked.head.operation_type(), Ok(OperationType::Create));
        let tokens = asked.tokens();
        assert_eq!((tokens.database_name, tokens.collection_name), (Some("d"), Some("c")));
        assert_eq!((tokens.document_name, tokens.partition_key), (None, Some("[\"p\"]")));
        assert_eq!((tokens.date, tokens.transport_request_id), (Some(DATE), Some(1)));
        let key = account().key;
        let expected = direct::sign_link("post", "docs", "dbs/d/colls/c", DATE, &key);
        assert_eq!(tokens.authorization, Some(expected.as_str()));
        assert_eq!(asked.payload.as_deref(), Some(b"{\"id\":\"1\"}".as_slice()));
        peer.answer(&asked, 201, Some(b"{}")).await;
        asked.head.activity_id
    };
    let (reply, activity_id) = tokio::join!(client.call(&call), answered);
    let reply = reply.unwrap().expect_status(201);
    assert_eq!((reply.text().as_str(), reply.activity_id, reply.number), ("{}", activity_id, Some(1)));
    assert_eq!(reply.tokens().lsn, Some(1));
}

#[tokio::test]
async fn answers_in_any_order_find_their_requests() {
    let (mut client, mut peer) = opened().await;
    let call = Call::new(OperationType::Read, "dbs/d/colls/c/docs/1");
    let asking = async {
        let first = client.sender.send(&call).await.unwrap();
        let second = client.sender.send(&call).await.unwrap();
        let first = client.receiver.reply_to(first).await.unwrap();
        (first, client.receiver.reply_to(second).await.unwrap())
    };
    let answering = async {
        let (first, second) = (peer.request().await, peer.request().await);
        peer.answer(&second, 404, None).await;
        peer.answer(&first, 200, Some(b"1")).await;
    };
    let ((first, second), ()) = tokio::join!(asking, answering);
    assert_eq!((first.status, first.number), (200, Some(1)));
    assert_eq!((second.status, second.number, second.payload), (404, Some(2), None));
}

#[tokio::test]
async fn what_a_test_sets_itself_is_sent_as_it_is() {
    let (mut client, mut peer) = opened().await;
    let call = Call::new(OperationType::Read, "dbs/d/colls/c/docs").with(|tokens| {
        tokens.document_name = Some("a/b");
        tokens.authorization = Some("none");
        tokens.transport_request_id = Some(77);
        tokens.replica_path = Some("");
    });
    let (sent, asked) = tokio::join!(client.sender.send(&call), peer.request());
    assert_eq!(sent.unwrap(), 77);
    let tokens = asked.tokens();
    assert_eq!((tokens.document_name, tokens.authorization), (Some("a/b"), Some("none")));
    assert_eq!((tokens.transport_request_id, tokens.replica_path), (Some(77), Some("")));
    client.sender.write(b"anything").await.unwrap();
    client.sender.finish().await.unwrap();
    let mut rest = Vec::new();
    peer.0.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"anything");
}

#[tokio::test]
async fn a_refused_connection_tells_why() {
    let (near, far) = duplex(64);
    let mut peer = Peer(far);
    let (client, ()) = tokio::join!(Client::open(near, account()), peer.turn_away());
    let refused = client.expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(refused.to_string(), "400: {\"code\":1}");
}

#[tokio::test]
async fn the_end_of_a_connection_is_no_answer_unless_it_cuts_one() {
    let (mut client, peer) = opened().await;
    drop(peer);
    assert_eq!(client.receiver.reply().await.unwrap(), None);
    assert_eq!(client.receiver.reply_to(1).await.expect_err("ended").kind(), ErrorKind::UnexpectedEof);
    let (mut client, mut peer) = opened().await;
    peer.0.write_all(&[30, 0, 0]).await.unwrap();
    drop(peer);
    assert_eq!(client.receiver.reply().await.expect_err("cut").kind(), ErrorKind::UnexpectedEof);
    let (mut client, mut peer) = opened().await;
    peer.0.write_all(&[0xff; 4]).await.unwrap();
    assert_eq!(client.receiver.reply().await.expect_err("too long").kind(), ErrorKind::InvalidData);
}
