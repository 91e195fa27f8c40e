//! Properties of updates over random documents.

use bson::{Document, RawDocument, Value};
use mql::Context;
use mql::filter::{Filter, Settings};
use mql::update::{Update, describe_change};
use proptest::prelude::*;

fn apply(
    document: &Document,
    update: &Document,
    filter: &Document,
    array_filters: &[Document],
) -> Option<Document> {
    let settings = Settings::default();
    let array_filters: Vec<_> = array_filters.iter().map(Document::view).collect();
    let filter = Filter::parse(filter.view(), &settings).unwrap();
    let update = Update::parse(Value::Document(update.clone()).view(), &array_filters, &settings).unwrap();
    let before = RawDocument::from_document(document);
    let after = update.apply(&before, Some(&filter), false, &Context::at(0)).unwrap();
    after.map(|after| after.to_document())
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-3..3_i32).prop_map(Value::Int32),
        (-3..3_i64).prop_map(Value::Int64),
        prop_oneof![Just(0.0), Just(-0.0), Just(f64::NAN), Just(1.5)].prop_map(Value::Double),
        "[ab]{0,2}".prop_map(Value::String),
        Just(Value::Null),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("c"), Just("0"), Just("1")].prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|fields| Value::Document(fields.into_iter().collect())),
        ]
    })
}

fn document() -> impl Strategy<Value = Document> {
    prop::collection::btree_map(name(), value(), 0..4)
        .prop_map(|fields| [("_id".to_owned(), Value::Int32(1))].into_iter().chain(fields).collect())
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..4).prop_map(|names| names.join("."))
}

/// Applies `$set` of one path, in the simplest way; `None` if the path leads nowhere.
fn set(value: &mut Value, path: &[&str], new: &Value) -> Option<()> {
    let Some((name, rest)) = path.split_first() else {
        *value = new.clone();
        return Some(());
    };
    match value {
        Value::Document(document) => {
            if !document.contains(name) {
                document.push(*name, Document::new());
                if rest.is_empty() {
                    document.insert(*name, new.clone());
                }
            }
            set(document.get_mut(name)?, rest, new)
        }
        Value::Array(items) => {
            let index: usize = name.parse().ok()?;
            while items.len() <= index {
                let is_last = items.len() == index;
                items.push(if is_last { Value::Document(Document::new()) } else { Value::Null });
            }
            set(&mut items[index], rest, new)
        }
        _ => None,
    }
}

/// Returns `true` if two documents are equal to the bit: NaN equals itself, and zero has a sign.
fn same(one: &Document, other: &Document) -> bool {
    RawDocument::from_document(one) == RawDocument::from_document(other)
}

proptest! {
    #[test]
    fn t9_what_is_set_twice_changes_nothing_the_second_time(
        document in document(),
        path in path(),
        value in value(),
    ) {
        let update = Document::new().with("$set", Document::new().with(path, value));
        let settings = Settings::default();
        let parsed = Update::parse(Value::Document(update.clone()).view(), &[], &settings).unwrap();
        let before = RawDocument::from_document(&document);
        let Ok(after) = parsed.apply(&before, None, false, &Context::at(0)) else { return Ok(()) };
        let after = after.unwrap_or(before);
        prop_assert_eq!(parsed.apply(&after, None, false, &Context::at(0)).unwrap(), None);
    }

    #[test]
    fn several_paths_are_set_as_one_after_the_other(
        document in document(),
        paths in prop::collection::btree_map(path(), value(), 1..5),
    ) {
        let names: Vec<Vec<&str>> = paths.keys().map(|path| path.split('.').collect()).collect();
        let conflict = names.iter().enumerate().any(|(position, one)| {
            names.iter().enumerate().any(|(other, path)| position != other && path.starts_with(one))
        });
        let fields: Document = paths.iter().map(|(path, value)| (path.clone(), value.clone())).collect();
        let update = Value::Document(Document::new().with("$set", fields));
        let parsed = Update::parse(update.view(), &[], &Settings::default());
        prop_assert_eq!(parsed.is_err(), conflict, "{:?}", paths);
        let Ok(parsed) = parsed else { return Ok(()) };

        let before = RawDocument::from_document(&document);
        let actual = parsed.apply(&before, None, false, &Context::at(0));
        let mut expected = Some(Value::Document(document.clone()));
        for (path, new) in names.iter().zip(paths.values()) {
            expected = expected.and_then(|mut value| set(&mut value, path, new).map(|()| value));
        }
        let Some(expected) = expected else {
            prop_assert_eq!(actual.unwrap_err().code.0, 28);
            return Ok(());
        };
        let expected = expected.as_document().unwrap().clone();
        let actual = actual.unwrap();
        prop_assert_eq!(actual.is_none(), same(&document, &expected));
        let actual = actual.map_or(document, |after| after.to_document());
        prop_assert!(same(&actual, &expected), "{actual:?}\n{expected:?}");
    }

    #[test]
    fn the_forms_for_elements_do_what_a_loop_does(
        numbers in prop::collection::vec(-5..5_i32, 0..6),
        limit in -5..5_i32,
        inner in any::<bool>(),
    ) {
        let wrap = |number: i32| {
            if inner { Value::Document(Document::new().with("n", number)) } else { Value::Int32(number) }
        };
        let array = |numbers: &[i32]| {
            Document::new().with("_id", 1).with("a", numbers.iter().copied().map(wrap).collect::<Vec<_>>())
        };
        let document = array(&numbers);
        let changed = |change: &dyn Fn(usize, i32) -> i32| {
            let numbers: Vec<i32> =
                numbers.iter().enumerate().map(|(position, number)| change(position, *number)).collect();
            Some(array(&numbers)).filter(|after| *after != document)
        };
        let inc = |word: &str| {
            let path = if inner { format!("a.{word}.n") } else { format!("a.{word}") };
            Document::new().with("$inc", Document::new().with(path, 10))
        };
        let nothing = Document::new();

        prop_assert_eq!(apply(&document, &inc("$[]"), &nothing, &[]), changed(&|_, number| number + 10));

        let condition = Document::new().with("$gte", limit);
        let name = if inner { "x.n" } else { "x" };
        let array_filter = Document::new().with(name, condition.clone());
        let expected = changed(&|_, number| if number >= limit { number + 10 } else { number });
        prop_assert_eq!(apply(&document, &inc("$[x]"), &nothing, &[array_filter]), expected);

        if let Some(first) = numbers.iter().position(|number| *number >= limit) {
            let filter = Document::new().with(if inner { "a.n" } else { "a" }, condition);
            let expected = changed(&|position, number| if position == first { number + 10 } else { number });
            prop_assert_eq!(apply(&document, &inc("$"), &filter, &[]), expected);
        }
    }

    /// Setting and removing the fields of a description turns the one document into the other, up to the order of fields.
    #[test]
    fn a_description_leads_from_before_to_after(before in document(), after in document()) {
        let description = describe_change(before.view(), after.view());
        let get = |name: &str| description.get(name).cloned().unwrap();
        let mut value = Value::Document(before);
        for truncated in get("truncatedArrays").as_array().unwrap() {
            let truncated = truncated.as_document().unwrap();
            let (path, size) = (truncated.get("field").unwrap(), truncated.get("newSize").unwrap());
            let Value::Int32(size) = size else { panic!("{size:?}") };
            truncate(&mut value, &path.as_str().unwrap().split('.').collect::<Vec<_>>(), *size as usize);
        }
        for removed in get("removedFields").as_array().unwrap() {
            remove(&mut value, &removed.as_str().unwrap().split('.').collect::<Vec<_>>());
        }
        for (path, new) in get("updatedFields").as_document().unwrap().iter() {
            prop_assert!(set(&mut value, &path.split('.').collect::<Vec<_>>(), new).is_some());
        }
        let (mut left, mut right) = (value, Value::Document(after));
        sort_fields(&mut left);
        sort_fields(&mut right);
        prop_assert!(same(left.as_document().unwrap(), right.as_document().unwrap()), "{left:?}\n{right:?}");
    }
}

fn descend<'v>(value: &'v mut Value, path: &[&str]) -> &'v mut Value {
    path.iter().fold(value, |value, name| match value {
        Value::Document(document) => document.get_mut(name).unwrap(),
        Value::Array(items) => &mut items[name.parse::<usize>().unwrap()],
        other => panic!("{other:?}"),
    })
}

fn truncate(value: &mut Value, path: &[&str], size: usize) {
    let Value::Array(items) = descend(value, path) else { panic!("no array at {path:?}") };
    items.truncate(size);
}

fn remove(value: &mut Value, path: &[&str]) {
    let (last, parent) = path.split_last().unwrap();
    let Value::Document(document) = descend(value, parent) else { panic!("no document at {parent:?}") };
    document.remove(last).unwrap();
}

fn sort_fields(value: &mut Value) {
    match value {
        Value::Document(document) => {
            document.fields_mut().sort_by(|(one, _), (other, _)| one.cmp(other));
            document.fields_mut().iter_mut().for_each(|(_, value)| sort_fields(value));
        }
        Value::Array(items) => items.iter_mut().for_each(sort_fields),
        _ => {}
    }
}

fn refusal(document: &Document, update: &str) -> i32 {
    let update = bson::parse_extended_json(update).unwrap();
    let update = Update::parse(update.view(), &[], &Settings::default()).unwrap();
    let document = RawDocument::from_document(document);
    update.apply(&document, None, false, &Context::at(0)).map_or_else(|error| error.code.0, |_| 0)
}

#[test]
fn an_update_that_makes_too_much_is_refused_before_it_is_made() {
    let items = Document::new().with("_id", 1).with("a", vec![Value::Array(vec![]); 100_000]);
    let large = format!(r#"{{"x": "{}"}}"#, "x".repeat(10_000));
    for update in [
        format!(r#"{{"$set": {{"a.$[]": {large}}}}}"#),
        format!(r#"{{"$push": {{"a.$[]": {large}}}}}"#),
        format!(r#"{{"$push": {{"a.$[]": {{"$each": [{large}], "$slice": -1}}}}}}"#),
        format!(r#"{{"$addToSet": {{"a.$[]": {large}}}}}"#),
        r#"{"$set": {"a.$[].1400000": 1}}"#.to_owned(),
    ] {
        assert_eq!(refusal(&items, &update), 17419, "{}", &update[..40]);
    }
}

#[test]
fn what_an_update_makes_is_not_too_deep() {
    let nested =
        |levels: usize| (1..levels).fold(Document::new(), |inner, _| Document::new().with("a", inner));
    let document = |levels| Document::new().with("_id", 1).with("d", nested(levels));
    let inner = |levels: usize| format!(r#"{{"$set": {{"d{}": {{}}}}}}"#, ".a".repeat(levels));
    assert_eq!(refusal(&document(178), &inner(178)), 0);
    assert_eq!(refusal(&document(179), &inner(179)), 15);
    assert_eq!(refusal(&document(100), &inner(179)), 15);
    let deep = |levels: usize| {
        format!(r#"{{"$push": {{"x": {}1{}}}}}"#, r#"{"a":"#.repeat(levels), "}".repeat(levels))
    };
    assert_eq!(refusal(&document(1), &deep(178)), 0);
    assert_eq!(refusal(&document(1), &deep(179)), 15);
}

/// The nulls between the end of an array and a new item are made one by one.
#[test]
fn padding_counts_as_work() {
    let update = bson::parse_extended_json(r#"{"$set": {"a.1400000": 1}}"#).unwrap();
    let update = Update::parse(update.view(), &[], &Settings::default()).unwrap();
    let item = RawDocument::from_document(&Document::new().with("_id", 1).with("a", Vec::<Value>::new()));
    let apply = |steps| update.apply(&item, None, false, &Context::at(0).with_steps_max(steps));
    assert_eq!(apply(1_000_000).unwrap_err().code, mql::Code::MAX_TIME_MS_EXPIRED);
    assert!(apply(2_000_000).unwrap().is_some());
}

/// A hundred thousand paths into a document with as many fields: each is found at once.
#[test]
fn many_paths_do_not_cost_the_product() {
    let fields = |value: i32| (0..100_000).map(move |number| (format!("f{number}"), value));
    let document = Document::new().with("_id", 1).with("d", fields(1).collect::<Document>());
    let paths: Document = fields(2).map(|(name, value)| (format!("d.{name}"), value)).collect();
    let update = Value::Document(Document::new().with("$set", paths));
    let update = Update::parse(update.view(), &[], &Settings::default()).unwrap();
    let document = RawDocument::from_document(&document);
    let after = update.apply(&document, None, false, &Context::at(0)).unwrap().unwrap().to_document();
    assert_eq!(after, Document::new().with("_id", 1).with("d", fields(2).collect::<Document>()));
}

/// An update is read on one thread and applied inside a transaction on another.
#[test]
fn an_update_may_go_to_another_thread() {
    fn check<T: Send + Sync>() {}
    check::<Update>();
    check::<Filter>();
}
