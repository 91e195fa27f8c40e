//! The effects of item operations in sequence: a few items, and a clock that lets them expire.
//!
//! The clock is moved in steps of 600 seconds and items live for 1,000, so that one expires of the second step after its last
//! write, and neither of the first nor of the seconds that the run itself takes.

use super::search::Specification;

/// A step of the clock, in seconds.
pub const STEP_SECONDS: u64 = 600;
/// How long an item lives after its last write.
pub const LIFE_SECONDS: u64 = 1000;
/// Steps of the clock that an item survives.
const STEPS_SURVIVED: u32 = 1;

/// Tells versions apart: an etag, or the value itself where there are none.
pub type Tag = String;

/// An operation on the item of that number, or on the clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    Create {
        key: usize,
        value: u64,
    },
    /// Makes the item, or replaces any version.
    Put {
        key: usize,
        value: u64,
    },
    /// Replaces the item if it exists, and is at that version if one is given.
    Replace {
        key: usize,
        value: u64,
        at: Option<Tag>,
    },
    Delete {
        key: usize,
        at: Option<Tag>,
    },
    Read {
        key: usize,
    },
    /// Adds one; the answer has the new value.
    Add {
        key: usize,
    },
    MoveClock,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// There is a new version, and whether there was none before, if the answer says so.
    Written {
        tag: Tag,
        is_new: Option<bool>,
    },
    /// The value that is there now.
    Value {
        value: u64,
        tag: Tag,
    },
    /// It is gone now, or the clock was moved.
    Done,
    /// It is there already.
    Exists,
    Missing,
    /// It is at another version.
    Stale,
    /// It is missing or at another version.
    Refused,
}

/// Items and the clock.
pub struct Items {
    /// How many items there may be.
    pub keys: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    items: Vec<Option<Item>>,
    steps: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Item {
    value: u64,
    tag: Tag,
    written: u32,
}

impl State {
    /// Returns the item, if it is live.
    fn living(&self, key: usize) -> Option<&Item> {
        self.items[key].as_ref().filter(|item| self.steps - item.written <= STEPS_SURVIVED)
    }

    fn with(&self, key: usize, item: Option<(u64, &Tag)>) -> State {
        let mut after = self.clone();
        after.items[key] = item.map(|(value, tag)| Item { value, tag: tag.clone(), written: self.steps });
        after
    }

    /// Returns whether a condition on an item fails, and with what answer.
    fn refusal(&self, key: usize, at: Option<&Tag>) -> Option<Answer> {
        match (self.living(key), at) {
            (None, _) => Some(Answer::Missing),
            (Some(item), Some(tag)) if item.tag != *tag => Some(Answer::Stale),
            _ => None,
        }
    }

    /// Returns the same state, if the answer fits that refusal.
    fn refused(&self, refusal: &Answer, answer: &Answer) -> Option<State> {
        (answer == refusal || *answer == Answer::Refused).then(|| self.clone())
    }
}

impl Specification for Items {
    type State = State;
    type Call = Call;
    type Answer = Answer;

    fn start(&self) -> State {
        State { items: vec![None; self.keys], steps: 0 }
    }

    fn step(&self, state: &State, call: &Call, answer: &Answer) -> Option<State> {
        let is_there = |key: &usize| state.living(*key).is_some();
        match (call, answer) {
            (Call::Create { key, .. }, Answer::Exists) => is_there(key).then(|| state.clone()),
            (Call::Create { key, value }, Answer::Written { tag, .. }) => {
                (!is_there(key)).then(|| state.with(*key, Some((*value, tag))))
            }
            (Call::Put { key, value }, Answer::Written { tag, is_new }) => {
                let told = is_new.is_none_or(|is_new| is_new != is_there(key));
                told.then(|| state.with(*key, Some((*value, tag))))
            }
            (Call::Replace { key, value, at }, answer) => match (state.refusal(*key, at.as_ref()), answer) {
                (None, Answer::Written { tag, .. }) => Some(state.with(*key, Some((*value, tag)))),
                (None, _) => None,
                (Some(refusal), answer) => state.refused(&refusal, answer),
            },
            (Call::Delete { key, at }, answer) => match (state.refusal(*key, at.as_ref()), answer) {
                (None, Answer::Done) => Some(state.with(*key, None)),
                (None, _) => None,
                (Some(refusal), answer) => state.refused(&refusal, answer),
            },
            (Call::Read { key }, Answer::Value { value, tag }) => state
                .living(*key)
                .is_some_and(|item| (item.value, &item.tag) == (*value, tag))
                .then(|| state.clone()),
            (Call::Add { key }, Answer::Value { value, tag }) => {
                let is_next = state.living(*key).is_some_and(|item| item.value + 1 == *value);
                is_next.then(|| state.with(*key, Some((*value, tag))))
            }
            (Call::Read { key } | Call::Add { key }, Answer::Missing) => {
                (!is_there(key)).then(|| state.clone())
            }
            (Call::MoveClock, Answer::Done) => Some(State { steps: state.steps + 1, ..state.clone() }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::search::{Operation, Verdict, search};
    use super::*;

    /// Returns `true` if overlapping calls are linearizable: client, call, answer, beginning, end.
    fn is_linear(history: &[(Call, Answer, u64, u64)]) -> bool {
        let operation = |(client, (call, answer, began, ended)): (usize, &(Call, Answer, u64, u64))| {
            Operation { client, call: call.clone(), answer: answer.clone(), began: *began, ended: *ended }
        };
        let history: Vec<_> = history.iter().enumerate().map(operation).collect();
        matches!(search(&Items { keys: 2 }, &history), Verdict::Linear(_))
    }

    fn create(value: u64, tag: &str) -> (Call, Answer) {
        (Call::Create { key: 0, value }, Answer::Written { tag: tag.to_owned(), is_new: None })
    }

    fn read(value: u64, tag: &str) -> (Call, Answer) {
        (Call::Read { key: 0 }, Answer::Value { value, tag: tag.to_owned() })
    }

    fn missing() -> (Call, Answer) {
        (Call::Read { key: 0 }, Answer::Missing)
    }

    fn replace(at: &str, answer: Answer) -> (Call, Answer) {
        (Call::Replace { key: 0, value: 2, at: Some(at.to_owned()) }, answer)
    }

    fn written(tag: &str) -> Answer {
        Answer::Written { tag: tag.to_owned(), is_new: None }
    }

    /// Calls one after the other.
    fn in_order<const N: usize>(calls: [(Call, Answer); N]) -> bool {
        let times = (0..).step_by(2);
        let history: Vec<_> =
            calls.into_iter().zip(times).map(|((call, answer), at)| (call, answer, at, at + 1)).collect();
        is_linear(&history)
    }

    /// Calls all at once.
    fn at_once<const N: usize>(calls: [(Call, Answer); N]) -> bool {
        let history: Vec<_> = calls.into_iter().map(|(call, answer)| (call, answer, 0, 9)).collect();
        is_linear(&history)
    }

    #[test]
    fn items_are_what_was_last_written() {
        assert!(in_order([
            missing(),
            create(1, "a"),
            read(1, "a"),
            replace("a", written("b")),
            read(2, "b")
        ]));
        assert!(!in_order([create(1, "a"), missing()]), "an acknowledged write is lost");
        assert!(
            !in_order([create(1, "a"), replace("a", written("b")), read(1, "a")]),
            "an old version is read"
        );
        assert!(!in_order([create(1, "a"), read(1, "b")]), "the value of one version, the etag of another");
        assert!(!in_order([create(1, "a"), create(2, "b")]), "made twice");
    }

    #[test]
    fn of_two_at_once_one_creates_and_one_replaces() {
        assert!(at_once([create(1, "a"), (Call::Create { key: 0, value: 2 }, Answer::Exists)]));
        assert!(!at_once([create(1, "a"), create(2, "b")]));
        let first = create(1, "a");
        let both = |second: Answer| {
            let history = [
                (first.0.clone(), first.1.clone(), 0, 1),
                (replace("a", written("b")).0, written("b"), 2, 9),
                (replace("a", second.clone()).0, second, 2, 9),
            ];
            is_linear(&history)
        };
        assert!(both(Answer::Stale) && both(Answer::Refused));
        assert!(!both(written("c")) && !both(Answer::Missing));
    }

    #[test]
    fn no_addition_is_lost() {
        let add = |value, tag: &str| (Call::Add { key: 0 }, Answer::Value { value, tag: tag.to_owned() });
        assert!(in_order([create(1, "a"), add(2, "b"), add(3, "c")]));
        assert!(!in_order([create(1, "a"), add(2, "b"), add(2, "c")]));
    }

    #[test]
    fn whether_a_put_made_the_item_is_told_rightly() {
        let put = |is_new| {
            (Call::Put { key: 0, value: 1 }, Answer::Written { tag: "a".to_owned(), is_new: Some(is_new) })
        };
        assert!(in_order([put(true), put(false)]));
        assert!(!in_order([put(true), put(true)]) && !in_order([put(false)]));
    }

    #[test]
    fn t15_expired_items_do_not_come_back_and_living_ones_do_not_expire_early() {
        let tick = || (Call::MoveClock, Answer::Done);
        assert!(in_order([create(1, "a"), tick(), read(1, "a"), tick(), missing(), create(2, "b")]));
        assert!(!in_order([create(1, "a"), tick(), tick(), read(1, "a")]), "an expired item is read");
        assert!(!in_order([create(1, "a"), tick(), missing()]), "it expired early");
        assert!(
            !in_order([create(1, "a"), tick(), replace("a", written("b")), tick(), missing()]),
            "a write restarts it"
        );
        let history = |reads: [(Call, Answer); 2]| {
            let [first, second] = reads;
            let (made, answer) = create(1, "a");
            let (call, moved) = tick();
            is_linear(&[
                (made, answer, 0, 1),
                (call.clone(), moved.clone(), 2, 3),
                (call, moved, 4, 20),
                (first.0, first.1, 5, 6),
                (second.0, second.1, 7, 8),
            ])
        };
        assert!(history([read(1, "a"), missing()]));
        assert!(!history([missing(), read(1, "a")]), "an expired item is live again");
    }
}
