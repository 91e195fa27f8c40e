//! Histories that are not linearizable: a real history in which one answer is replaced by another real one.
//!
//! Any checker would refuse a value that was never written. These two histories look right, each answer by itself: only a
//! checker that keeps the order of operations refuses the first, and only one that replaces each version once refuses the
//! second.

use super::History;
use super::items::{Answer, Call, Tag};
use super::search::Operation;

type Step = Operation<Call, Answer>;

/// Returns a history in which a read sees a version that was replaced or removed before the read began.
pub(super) fn stale_read(history: &History) -> Option<History> {
    for (place, read) in history.iter().enumerate() {
        let Call::Read { key } = read.call else { continue };
        let writes = || history.iter().filter(|write| version(write, key).is_some() || removes(write, key));
        for old in writes() {
            let Some((value, tag)) = version(old, key) else { continue };
            let is_over = writes().any(|new| old.ended < new.began && new.ended < read.began);
            if is_over {
                let mut lie = history.clone();
                lie[place].answer = Answer::Value { value, tag: tag.clone() };
                return Some(lie);
            }
        }
    }
    None
}

/// Returns a history in which two clients that replace the same version both succeed.
pub(super) fn second_winner(history: &History) -> Option<History> {
    let wanted = |operation: &Step| match &operation.call {
        Call::Replace { key, at: Some(at), .. } => Some((*key, at.clone())),
        _ => None,
    };
    let has_won = |operation: &&Step| matches!(operation.answer, Answer::Written { .. });
    for winner in history.iter().filter(has_won) {
        let Some(version) = wanted(winner) else { continue };
        let is_loser = |other: &Step| !has_won(&other) && wanted(other).as_ref() == Some(&version);
        if let Some(place) = history.iter().position(is_loser) {
            let mut lie = history.clone();
            lie[place].answer = Answer::Written { tag: "another".to_owned(), is_new: None };
            return Some(lie);
        }
    }
    None
}

/// Returns the version of an item that an operation wrote.
fn version(operation: &Step, of: usize) -> Option<(u64, &Tag)> {
    match (&operation.call, &operation.answer) {
        (
            Call::Create { key, value } | Call::Put { key, value } | Call::Replace { key, value, .. },
            Answer::Written { tag, .. },
        ) if *key == of => Some((*value, tag)),
        (Call::Add { key }, Answer::Value { value, tag }) if *key == of => Some((*value, tag)),
        _ => None,
    }
}

fn removes(operation: &Step, of: usize) -> bool {
    matches!((&operation.call, &operation.answer), (Call::Delete { key, .. }, Answer::Done) if *key == of)
}

#[cfg(test)]
mod tests {
    use super::super::items::Items;
    use super::super::search::{Verdict, search};
    use super::*;

    fn is_linear(history: &History) -> bool {
        matches!(search(&Items { keys: 1 }, history), Verdict::Linear(_))
    }

    fn step(client: usize, call: Call, answer: Answer, began: u64) -> Step {
        Operation { client, call, answer, began, ended: began + 1 }
    }

    fn written(tag: &str) -> Answer {
        Answer::Written { tag: tag.to_owned(), is_new: None }
    }

    fn replace(value: u64) -> Call {
        Call::Replace { key: 0, value, at: Some("a".to_owned()) }
    }

    fn history() -> History {
        vec![
            step(0, Call::Create { key: 0, value: 1 }, written("a"), 0),
            step(0, replace(2), written("b"), 2),
            step(1, replace(3), Answer::Stale, 2),
            step(1, Call::Read { key: 0 }, Answer::Value { value: 2, tag: "b".to_owned() }, 4),
        ]
    }

    #[test]
    fn a_stale_read_is_a_lie_only_to_who_minds_the_order() {
        assert!(is_linear(&history()));
        let lie = stale_read(&history()).unwrap();
        assert_eq!(lie[3].answer, Answer::Value { value: 1, tag: "a".to_owned() });
        assert!(!is_linear(&lie));
        let at_once = lie.into_iter().map(|step| Operation { began: 0, ended: 9, ..step }).collect();
        assert!(is_linear(&at_once), "everything is explained if nothing came before anything else");
    }

    #[test]
    fn two_winners_are_a_lie_in_every_order() {
        let lie = second_winner(&history()).unwrap();
        assert_eq!(lie[2].answer, written("another"));
        assert!(!is_linear(&lie));
        let at_once = lie.into_iter().map(|step| Operation { began: 0, ended: 9, ..step }).collect();
        assert!(!is_linear(&at_once));
    }

    #[test]
    fn where_there_is_nothing_to_falsify_nothing_is() {
        assert_eq!(stale_read(&history()[..2].to_vec()), None);
        assert_eq!(second_winner(&history()[..2].to_vec()), None);
    }
}
