//! Values computed from documents: the expression language of pipelines.
