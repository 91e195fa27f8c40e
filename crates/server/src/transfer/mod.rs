//! Items as files: exports and imports of containers and collections, in the forms that other tools write and read.
//!
//! ```text
//!   DIR/database/name.jsonl            one item a line; documents of a collection in canonical Extended JSON
//!   DIR/database/name.json             a JSON array of items, as Azure's tools write it
//!   DIR/database/name.bson             documents one behind the other, as mongodump writes them
//!   DIR/database/name.container.json   what a container is defined as
//!   DIR/database/name.metadata.json    options and indexes of a collection, as mongodump writes them
//!   FILE.gz                            any of the first three, compressed
//!   FILE.progress                      how far an export or import has come that was interrupted
//! ```
//!
//! Both ways go page by page, and after each page the place is written down: whoever is killed goes on from there with
//! `--resume`. An export cuts its file to what was written down; an import writes the last page once more, which changes
//! nothing, because it replaces items by themselves.

mod collections;
mod export;
mod files;
mod import;
mod meter;
mod progress;
mod records;

pub(crate) use export::{Begun, Export, Kind};
pub(crate) use files::{Form, Kept, Layout};
pub(crate) use import::{Import, Imported, Mode, make, make_with_key};
