//! How much each collection is used, for `top`.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::Document;
use parking_lot::Mutex;

/// Collections whose use is counted; further ones are not.
const NAMESPACES_MAX: usize = 10_000;

/// What `top` tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Queries,
    GetMore,
    Insert,
    Update,
    Remove,
    Commands,
}

impl Use {
    const ALL: [(Use, &'static str); 6] = [
        (Use::Queries, "queries"),
        (Use::GetMore, "getmore"),
        (Use::Insert, "insert"),
        (Use::Update, "update"),
        (Use::Remove, "remove"),
        (Use::Commands, "commands"),
    ];

    /// What a command is, if it is about a collection.
    pub(crate) fn of_command(name: &str) -> Use {
        match name {
            "find" => Use::Queries,
            "getMore" => Use::GetMore,
            "insert" => Use::Insert,
            "update" => Use::Update,
            "delete" => Use::Remove,
            _ => Use::Commands,
        }
    }

    fn writes(self) -> bool {
        matches!(self, Use::Insert | Use::Update | Use::Remove)
    }
}

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
    pub(crate) fn record(&self, namespace: &str, used: Use, duration: Duration) {
        let mut namespaces = self.namespaces.lock();
        if !namespaces.contains_key(namespace) {
            if namespaces.len() >= NAMESPACES_MAX {
                return;
            }
            namespaces.insert(namespace.to_owned(), Figures::default());
        }
        if let Some(figures) = namespaces.get_mut(namespace) {
            let (micros, count) = &mut figures.0[used as usize];
            *micros += u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
            *count += 1;
        }
    }

    /// `totals` of `top`, of those collections that are there.
    pub(crate) fn totals(&self, is_there: impl Fn(&str) -> bool) -> Document {
        let namespaces = self.namespaces.lock();
        let shown = namespaces.iter().filter(|(namespace, _)| is_there(namespace));
        shown.map(|(namespace, figures)| (namespace.as_str(), figures.to_document())).collect()
    }
}

impl Figures {
    fn sum(&self, which: impl Fn(Use) -> bool) -> Document {
        let chosen = Use::ALL.iter().zip(self.0).filter(|((used, _), _)| which(*used));
        let (micros, count) = chosen.fold((0, 0), |sum, (_, figures)| (sum.0 + figures.0, sum.1 + figures.1));
        Document::new().with("time", micros as i64).with("count", count as i64)
    }

    fn to_document(self) -> Document {
        let mut document = Document::new()
            .with("total", self.sum(|_| true))
            .with("readLock", self.sum(|used| !used.writes()))
            .with("writeLock", self.sum(Use::writes));
        for (used, name) in Use::ALL {
            document.push(name, self.sum(|other| other == used));
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
        usage.record("a.b", Use::Queries, Duration::from_micros(5));
        usage.record("a.b", Use::Insert, Duration::from_micros(7));
        usage.record("a.gone", Use::Insert, Duration::from_micros(7));
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
