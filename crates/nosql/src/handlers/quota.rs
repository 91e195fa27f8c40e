//! The quota of a container and how much of it is used, in answers to requests that ask for them. The service sends both
//! with every answer; here they are counted over all ranges, and other requests do not pay for that.

use std::sync::Arc;

use engine::{Container, Usage};

use crate::handlers::call::Call;
use crate::handlers::resources::kilobytes;
use crate::message::fields::Field;
use crate::message::options::Flag;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

/// Item and container sizes in kilobytes; -1 is "no limit".
const QUOTA: &str = "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;";

/// Whether an answer includes the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quota {
    Wanted,
    NotWanted,
}

impl Quota {
    /// Returns whether the request asks for them.
    pub(crate) fn of(call: &Call) -> Result<Quota, Error> {
        Ok(if call.head.flag(Flag::QuotaInfo)? { Quota::Wanted } else { Quota::NotWanted })
    }

    /// Adds the figures to an answer; leaves them out if they cannot be read, since a write has happened nevertheless.
    pub(crate) async fn add(self, call: &Call, container: &Arc<Container>, reply: Reply) -> Reply {
        match self {
            Quota::Wanted => match usage(call, container).await {
                Ok(usage) => with(reply, &usage),
                Err(error) => {
                    tracing::debug!("no quota figures in an answer: {error}");
                    reply
                }
            },
            Quota::NotWanted => reply,
        }
    }
}

/// Returns the answer with these figures.
pub(crate) fn with(reply: Reply, usage: &Usage) -> Reply {
    let size = kilobytes(usage.living.bytes);
    let used = format!(
        "documentSize=0;documentsSize={size};documentsCount={};collectionSize={size};",
        usage.living.items
    );
    reply.with(Field::ResourceQuota, QUOTA).with(Field::ResourceUsage, used)
}

/// Returns the usage of the container, exactly (T18).
pub(crate) async fn usage(call: &Call, container: &Arc<Container>) -> Result<Usage, Error> {
    let handle = Arc::clone(container);
    call.blocking(move |engine| Ok(engine.usage(&handle)?)).await
}
