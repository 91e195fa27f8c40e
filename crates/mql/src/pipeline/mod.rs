//! Pipelines: stages that documents pass through.
