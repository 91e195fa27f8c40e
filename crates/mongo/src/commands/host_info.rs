//! `hostInfo`: the machine.

use bson::{Document, Value};

use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let host = &call.service.settings.host;
    let mebibytes = (host.memory_bytes / 1024 / 1024) as i64;
    let system = Document::new()
        .with("currentTime", Value::DateTime(call.now.millis() as i64))
        .with("hostname", host.name.as_str())
        .with("cpuAddrSize", 64)
        .with("memSizeMB", mebibytes)
        .with("memLimitMB", mebibytes)
        .with("numCores", host.cores as i32)
        .with("cpuArch", std::env::consts::ARCH)
        .with("numaEnabled", false);
    let (name, version) = &host.system;
    let os = Document::new()
        .with("type", std::env::consts::OS)
        .with("name", name.as_str())
        .with("version", version.as_str());
    let extra = Document::new().with("versionString", format!("{name} {version}"));
    Ok(Document::new().with("system", system).with("os", os).with("extra", extra).into())
}
