//! The pages as a browser requests them: an explorer over an engine in memory, whose clock only the test moves.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod access;
mod audit;
mod browser;
mod confirmations;
mod hostile;
mod items;
mod lifetimes;
