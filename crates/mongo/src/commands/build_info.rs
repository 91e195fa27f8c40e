//! `buildInfo`: the version of MongoDB that clients should take this server for. Tools decide by it what to use.

use bson::{Document, Value};

use crate::call::Call;
use crate::error::Result;
use crate::limits::DOCUMENT_BYTES;
use crate::reply::{Reply, list};

/// The version whose wire protocol `hello` announces.
pub(crate) const VERSION: [i32; 4] = [8, 0, 0, 0];

/// The version as text.
pub(crate) fn version() -> String {
    VERSION[..3].iter().map(ToString::to_string).collect::<Vec<_>>().join(".")
}

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
