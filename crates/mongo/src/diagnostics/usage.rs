//! How much each collection is used, for `top`.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::Document;
use parking_lot::Mutex;

use super::operation_kind::OperationKind;

/// The number of collections whose use is counted; further collections are not.
const NAMESPACES_MAX: usize = 10_000;

/// The kinds in the order in which `top` lists them.
const TOP: [OperationKind; 6] = [
    OperationKind::Query,
    OperationKind::GetMore,
    OperationKind::Insert,
    OperationKind::Update,
    OperationKind::Delete,
    OperationKind::Command,
];

/// Times and counts of one collection.
#[derive(Debug, Clone, Copy, Default)]
struct Figures([(u64, u64); 6]);

/// All collections that were used.
#[derive(Debug, Default)]
pub(crate) struct UseByCollection {
    namespaces: Mutex<BTreeMap<String, Figures>>,
}

impl UseByCollection {
    /// Counts a command.
    pub(crate) fn record(&self, namespace: &str, kind: OperationKind, duration: Duration) {
        let mut namespaces = self.namespaces.lock();
        if !namespaces.contains_key(namespace) {
            if namespaces.len() >= NAMESPACES_MAX {
                return;
            }
            namespaces.insert(namespace.to_owned(), Figures::default());
        }
        if let Some(figures) = namespaces.get_mut(namespace) {
            let (micros, count) = &mut figures.0[kind as usize];
            *micros += u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
            *count += 1;
        }
    }

    /// `totals` of `top`, of the collections that still exist.
    pub(crate) fn totals(&self, is_there: impl Fn(&str) -> bool) -> Document {
        let namespaces = self.namespaces.lock();
        let shown = namespaces.iter().filter(|(namespace, _)| is_there(namespace));
        shown.map(|(namespace, figures)| (namespace.as_str(), figures.to_document())).collect()
    }
}

impl Figures {
    fn sum(&self, which: impl Fn(OperationKind) -> bool) -> Document {
        let chosen = OperationKind::ALL.into_iter().zip(self.0).filter(|(kind, _)| which(*kind));
        let (micros, count) = chosen.fold((0, 0), |sum, (_, figures)| (sum.0 + figures.0, sum.1 + figures.1));
        Document::new().with("time", micros as i64).with("count", count as i64)
    }

    fn to_document(self) -> Document {
        let mut document = Document::new()
            .with("total", self.sum(|_| true))
            .with("readLock", self.sum(|kind| !kind.writes()))
            .with("writeLock", self.sum(OperationKind::writes));
        for kind in TOP {
            document.push(kind.in_top(), self.sum(|other| other == kind));
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_are_told_apart() {
        let usage = UseByCollection::default();
        usage.record("a.b", OperationKind::Query, Duration::from_micros(5));
        usage.record("a.b", OperationKind::Insert, Duration::from_micros(7));
        usage.record("a.gone", OperationKind::Insert, Duration::from_micros(7));
        let totals = usage.totals(|namespace| namespace == "a.b");
        assert_eq!(totals.len(), 1);
        let figures = totals.get("a.b").and_then(|figures| figures.as_document()).unwrap();
        let counted = |time: i64, count: i64| Document::new().with("time", time).with("count", count).into();
        assert_eq!(figures.get("total"), Some(&counted(12, 2)));
        assert_eq!(figures.get("readLock"), Some(&counted(5, 1)));
        assert_eq!(figures.get("insert"), Some(&counted(7, 1)));
        assert_eq!(figures.get("remove"), Some(&counted(0, 0)));
    }
}
