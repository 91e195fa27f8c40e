//! Items as files: exports and imports of containers and collections, in formats that other tools read and write.
//!
//! ```text
//!   DIR/database/name.jsonl            one item per line; documents of a collection in canonical Extended JSON
//!   DIR/database/name.json             a JSON array of items, as Azure's tools write it
//!   DIR/database/name.bson             concatenated documents, as mongodump writes them
//!   DIR/database/name.container.json   the definition of a container
//!   DIR/database/name.metadata.json    options and indexes of a collection, as mongodump writes them
//!   FILE.gz                            any of the first three, compressed
//!   FILE.progress                      the progress of an interrupted export or import
//! ```
//!
//! Both work page by page, and record the position after each page: a killed transfer continues from there with
//! `--resume`. An export first cuts its file to the recorded position; an import writes the last page once more, which
//! changes nothing, because it replaces items by themselves.

mod collections;
mod export;
mod files;
mod import;
mod meter;
mod progress;
mod records;

pub(crate) use export::{ExistingFile, Export, Kind};
pub(crate) use files::{Form, Layout, StoredNamespace};
pub(crate) use import::{Import, Imported, Mode, make, make_with_key};
