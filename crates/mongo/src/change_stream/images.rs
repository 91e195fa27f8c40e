//! `changeStreamPreAndPostImages`: whether documents as they were before and after a change go with it.
//!
//! The feed keeps both in any case; the option says whether clients are shown them, as in MongoDB. Turning it on turns the
//! feed on, so that images are there from then on for every stream.

use std::sync::Arc;

use bson::ValueRef;
use engine::limits::WATCH_MINUTES;
use engine::{Collection, Engine, Lifecycle, Owner};

use crate::protocol::error::Result;
use crate::protocol::fields::Fields;

/// The option of a collection.
pub(super) const IMAGES: &str = "changeStreamPreAndPostImages";

/// Checks the option: `{enabled: <boolean>}`.
pub(crate) fn check(fields: Fields<'_>) -> Result<()> {
    let Some(option) = fields.document(IMAGES)? else { return Ok(()) };
    let option = Fields::new(IMAGES, option);
    option.only(&["enabled"])?;
    option.is_set("enabled").map(drop)
}

/// Turns the feed of a collection on if its options ask for images.
pub(crate) fn keep(engine: &Engine, collection: Arc<Collection>) -> Result<()> {
    if has_images(&collection) {
        let options = |lifecycle: &mut Lifecycle| {
            lifecycle.history_minutes.get_or_insert(WATCH_MINUTES);
        };
        engine.change_lifecycle(&Owner::Collection(collection), options)?;
    }
    Ok(())
}

/// Whether images of documents go with changes of a collection.
pub(super) fn has_images(collection: &Collection) -> bool {
    let option = collection.definition.options.get(IMAGES).and_then(ValueRef::as_document);
    option.and_then(|option| option.get("enabled")).and_then(ValueRef::as_bool) == Some(true)
}
