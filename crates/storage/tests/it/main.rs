//! One suite for all stores, and tests of each alone: faults in memory, files and crashes on disk.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod backup;
mod clock;
mod contract;
mod corpus;
mod embedded;
mod faults;
mod kill;
mod scrub;
mod support;
mod torn;
