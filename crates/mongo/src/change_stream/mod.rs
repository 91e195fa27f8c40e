//! Change streams: `$changeStream` on a collection, a database or the whole deployment.
//!
//! A stream reads the engine's watches (`engine::Watch`): every version, delete and expiry of the collections that
//! it covers, and what happens to the collections themselves, in one order. Opening one begins the watch, so no collection has
//! to be prepared for it; what happened before is not shown.
//!
//! An expiry is a `delete` as of its instant, whether or not the purge has run, with a field of our own that no other delete
//! has: `bolide: {expired: true}` (T28). A resume token is a position in that order, so it is good for any stream that
//! covers it, also of another process over the same data.

mod event;
mod images;
mod open;
mod stream;
mod token;

pub(crate) use images::{check as check_images, keep as keep_images};
pub(crate) use open::{is_change_stream, open};
pub(crate) use stream::{ChangeBatch, Stream};
pub(crate) use token::read as read_token;

/// The stream cannot be resumed: drivers do not try.
const NON_RESUMABLE: &str = "NonResumableChangeStreamError";
