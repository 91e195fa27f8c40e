//! HTTP/2 over one kept connection, without TLS and with prior knowledge; one request at a time.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Method, Request, Uri};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

pub(super) struct Http2 {
    /// Runs on the caller's thread, while the caller waits.
    runtime: Runtime,
    sender: SendRequest<Bytes>,
    /// The headers and the body of the last answer.
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Http2 {
    pub(super) fn connect(address: &str) -> Result<Http2> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let sender = runtime.block_on(async {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = h2::client::handshake(stream).await?;
            // A connection that ends fails the request that waits for it.
            drop(tokio::spawn(connection));
            Ok::<_, anyhow::Error>(sender)
        })?;
        Ok(Http2 { runtime, sender, headers: HeaderMap::new(), body: Vec::new() })
    }

    /// Sends a request, which is given as HTTP/1.1 writes it, and reads the whole answer; returns its status.
    pub(super) fn exchange(&mut self, request: &str) -> Result<u16> {
        let (head, body) = request.split_once("\r\n\r\n").context("a request without an end")?;
        let request = parsed(head)?;
        let body = Bytes::copy_from_slice(body.as_bytes());
        let sender = self.sender.clone();
        self.body.clear();
        let answer = &mut self.body;
        let (status, headers) = self.runtime.block_on(async {
            let mut sender = sender.ready().await?;
            let (response, mut stream) = sender.send_request(request, body.is_empty())?;
            if !body.is_empty() {
                stream.send_data(body, true)?;
            }
            let (parts, mut pieces) = response.await?.into_parts();
            while let Some(piece) = pieces.data().await {
                let piece = piece?;
                pieces.flow_control().release_capacity(piece.len())?;
                answer.extend_from_slice(&piece);
            }
            Ok::<_, anyhow::Error>((parts.status.as_u16(), parts.headers))
        })?;
        self.headers = headers;
        Ok(status)
    }

    /// Returns a header of the last answer.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }
}

/// Returns the request of a head in the form of HTTP/1.1, without the headers that HTTP/2 does not have.
fn parsed(head: &str) -> Result<Request<()>> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().context("no path")?);
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let host = fields.iter().find(|(name, _)| *name == "host").context("no host")?.1;
    ensure!(path.starts_with('/'), "a path that begins with {path}");
    let uri: Uri = format!("http://{host}{path}").parse()?;
    let mut request = Request::builder().method(method.parse::<Method>()?).uri(uri);
    for (name, value) in fields.into_iter().filter(|(name, _)| !matches!(*name, "host" | "connection")) {
        request = request.header(name, value);
    }
    Ok(request.body(())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_becomes_a_request_without_the_headers_of_connections() {
        let head = "PUT /dbs/db HTTP/1.1\r\nhost: a:1\r\nconnection: keep-alive\r\nx-ms-date: b: c\r\ncontent-length: 0";
        let request = parsed(head).unwrap();
        assert_eq!(
            (request.method(), request.uri().to_string()),
            (&Method::PUT, "http://a:1/dbs/db".to_owned())
        );
        let names: Vec<&str> = request.headers().keys().map(http::HeaderName::as_str).collect();
        assert_eq!(names, ["x-ms-date", "content-length"]);
        assert_eq!(request.headers()["x-ms-date"], "b: c");
    }
}
