//! The same operations inside TLS, which SDKs use by default, and over HTTP/2.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use bolide_bench::client::Server;
use bolide_bench::drive::Pace;
use bolide_bench::peer::{BolideRest, Indexing, Peer};
use bolide_bench::workload::Kind;

use super::{CONNECTIONS, Options, Results, Section, go_round, loaded, plan};

/// Measures three servers alike, which differ in what their requests are sent in.
pub(super) fn measure(binary: &Path, options: &Options, results: &mut Results) -> Result<()> {
    let rest = || BolideRest::new(Arc::new(Server::start(binary, &[])?), binary, Indexing::EveryPath);
    let peers: Vec<Box<dyn Peer>> =
        vec![Box::new(rest()?), Box::new(rest()?.inside_tls()?), Box::new(rest()?.over_http2())];
    let places = loaded(peers, options)?;
    let all_peers: Vec<_> = places.iter().collect();
    for connections in [1, CONNECTIONS] {
        for kind in [Kind::Read, Kind::Query, Kind::Insert] {
            let plan = plan(kind, connections, Pace::Closed, options);
            go_round(&all_peers, options, results, Section::Transport, plan, 0);
        }
    }
    Ok(())
}
