//! What a command answers: a document to which the dispatcher adds what every answer carries.

use bson::{Document, RawDocument, Value, Writer};

/// The answer of a command that succeeded, without `ok`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply(Body);

#[derive(Debug, Clone, PartialEq)]
enum Body {
    Tree(Document),
    Bytes(RawDocument),
}

impl Reply {
    /// Nothing but `ok`.
    pub(crate) fn ok() -> Reply {
        Document::new().into()
    }

    /// Returns the whole answer: the command's own fields, `ok`, and what `more` has.
    pub(crate) fn finish<'a>(self, ok: f64, more: impl IntoIterator<Item = &'a Document>) -> RawDocument {
        let document = match self.0 {
            Body::Tree(document) => RawDocument::from_document(&document),
            Body::Bytes(document) => document,
        };
        let mut writer = Writer::reopen(document);
        writer.field("ok", ok);
        for (name, value) in more.into_iter().flat_map(Document::iter) {
            writer.field(name, value.view());
        }
        writer.finish()
    }
}

impl From<Document> for Reply {
    fn from(document: Document) -> Reply {
        Reply(Body::Tree(document))
    }
}

impl From<RawDocument> for Reply {
    fn from(document: RawDocument) -> Reply {
        Reply(Body::Bytes(document))
    }
}

/// Returns a list of values for a reply.
pub(crate) fn list<V: Into<Value>>(items: impl IntoIterator<Item = V>) -> Value {
    Value::Array(items.into_iter().map(Into::into).collect())
}
