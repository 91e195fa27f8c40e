//! Direct mode beside REST.

use std::fmt::Write as _;

use super::cell;
use crate::compare::Results;
use crate::direct::{Comparison, Costs, IN_FLIGHT};

pub(super) fn table(text: &mut String, results: &Results) {
    // The list of bad runs says why it is missing.
    let Some(Comparison { costs, gains }) = &results.direct else { return };
    text.push_str(
        "## Direct mode beside REST\n\nServer CPU for one operation in microseconds, both inside TLS; 1 KB documents, closed loop; \
         the middle round.\n\n| | connections | REST | direct | ratio |\n|---|---|---|---|---|\n",
    );
    for cost in costs {
        let Costs { kind, connections, rest_us, direct_us } = cost;
        let (rest, direct) = (cell(Some(*rest_us)), cell(Some(*direct_us)));
        let _ =
            writeln!(text, "| {} | {connections} | {rest} | {direct} | {:.2} |", kind.name(), cost.ratio());
    }
    text.push('\n');
    for (kind, gain) in gains {
        let _ = writeln!(
            text,
            "- {}: one connection with {IN_FLIGHT} requests in flight has {gain:.1} times the throughput of one with a single \
             request.",
            kind.name()
        );
    }
    text.push('\n');
}
