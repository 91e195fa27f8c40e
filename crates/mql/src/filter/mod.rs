//! Which documents match: parsing a filter, and asking it.
