//! HTTP as the server sets it up, with a handler that reads the body and answers one document and the usual headers.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Result;
use bolide_bench::documents::{Fields, Shape};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;

/// Names and lengths of what an answer about an item carries.
const HEADERS: [(&str, &str); 18] = [
    ("content-type", "application/json"),
    ("etag", "\"00000180-0000-0000-0000-6afa292f0000\""),
    ("x-ms-session-token", "0:-1#300000"),
    ("x-ms-documentdb-partitionkeyrangeid", "0"),
    ("x-ms-alt-content-path", "dbs/db/colls/c1024"),
    ("x-ms-content-path", "AAAAAYAAAAI="),
    ("lsn", "300000"),
    ("x-ms-item-lsn", "300000"),
    ("x-ms-cosmos-llsn", "300000"),
    ("x-ms-cosmos-item-llsn", "300000"),
    ("x-ms-quorum-acked-lsn", "300000"),
    ("x-ms-cosmos-quorum-acked-llsn", "300000"),
    ("x-ms-global-committed-lsn", "300000"),
    ("x-ms-request-charge", "1"),
    ("x-ms-activity-id", "2be39a32-94cd-4676-9793-18c27eab29d6"),
    ("x-ms-gatewayversion", "version=2.14.0"),
    ("x-ms-serviceversion", "version=0.1.0"),
    ("x-ms-schemaversion", "1.18"),
];

pub async fn serve(address: &str) -> Result<()> {
    let listener = TcpListener::bind(address).await?;
    let mut document = String::new();
    // An answer has 180 bytes of system properties beside what was stored.
    Fields::new(0, 0, Shape::of_size(1024 + 180)).json(&mut document);
    let document = Bytes::from(document);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let document = document.clone();
        tokio::spawn(async move {
            let mut builder = Builder::new(TokioExecutor::new());
            builder
                .http1()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(120))
                .max_buf_size(64 << 10);
            let handler = service_fn(move |request| answer(request, document.clone()));
            let _ = builder.serve_connection(TokioIo::new(socket), handler).await;
        });
    }
}

async fn answer(request: Request<Incoming>, document: Bytes) -> Result<Response<Full<Bytes>>, Infallible> {
    let status = if request.method() == Method::POST { StatusCode::CREATED } else { StatusCode::OK };
    let _ = request.into_body().collect().await;
    let mut response = Response::new(Full::new(document));
    *response.status_mut() = status;
    for (name, value) in HEADERS {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    Ok(response)
}
