//! Indexes: what may be defined, which keys a document has in one, and which of them a filter or sort can use.
