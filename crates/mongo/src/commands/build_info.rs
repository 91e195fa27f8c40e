//! `buildInfo`: the version of MongoDB that clients should take this server for. Tools decide by it what to use.

use bson::{Document, Value};

use crate::protocol::error::Result;
use crate::protocol::limits::DOCUMENT_BYTES;
use crate::protocol::reply::{Reply, list};
use crate::protocol::version::{VERSION, version};
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let environment =
        Document::new().with("target_arch", std::env::consts::ARCH).with("target_os", std::env::consts::OS);
    let answer = Document::new()
        .with("version", version())
        .with("gitVersion", env!("CARGO_PKG_VERSION"))
        .with("modules", Value::Array(Vec::new()))
        .with("allocator", "system")
        .with("javascriptEngine", "none")
        .with("sysInfo", "deprecated")
        .with("versionArray", list(VERSION))
        .with("openssl", Document::new().with("running", "rustls").with("compiled", "rustls"))
        .with("buildEnvironment", environment)
        .with("bits", 64)
        .with("debug", cfg!(debug_assertions))
        .with("maxBsonObjectSize", DOCUMENT_BYTES as i32)
        .with("storageEngines", list(["bolide"]));
    let _ = call;
    Ok(answer.into())
}
