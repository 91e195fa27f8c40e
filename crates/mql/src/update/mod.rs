//! How a document changes: update operators, replacements, pipelines as updates, and what an upsert begins with.
