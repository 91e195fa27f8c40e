//! Which parts of a document are shown.
