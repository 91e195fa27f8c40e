//! A search for a linearization of a history of overlapping operations.
//!
//! The search of Wing and Gong with the memory of Lowe. An operation that began before the first end of an unexplained
//! operation may come next; the search tries it, and takes it back if nothing leads on from there. States that it reached
//! before, with the same operations done, are not searched again: that makes an exponential search a short one, because few
//! operations overlap.

use std::collections::HashSet;
use std::hash::Hash;

/// One call of a client: the request, the answer, and their times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation<C, A> {
    pub client: usize,
    pub call: C,
    pub answer: A,
    /// Before it was sent.
    pub began: u64,
    /// After the answer came. Two operations of which one ended when the other began overlap.
    pub ended: u64,
}

/// The effects of operations in sequence.
pub trait Specification {
    type State: Clone + Eq + Hash;
    type Call;
    type Answer;

    /// Returns the state before the first operation.
    fn start(&self) -> Self::State;

    /// Returns the state after a call; none if the call cannot have this answer.
    fn step(&self, state: &Self::State, call: &Self::Call, answer: &Self::Answer) -> Option<Self::State>;
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// An order that explains all answers, as positions in the history.
    Linear(Vec<usize>),
    /// No order explains all answers. The longest one that explains a part, and the operations that could have come next by
    /// their times.
    Broken { explained: Vec<usize>, stuck: Vec<usize> },
}

/// Searches for an order of the operations that explains every answer.
pub fn search<S: Specification>(specification: &S, history: &[Operation<S::Call, S::Answer>]) -> Verdict {
    let mut timeline = Timeline::new(history);
    let mut done = Done::new(history.len());
    let mut reached = HashSet::new();
    let mut state = specification.start();
    // The operations done, each with the state before it.
    let mut order: Vec<(usize, S::State)> = Vec::new();
    let mut longest = Verdict::Broken { explained: Vec::new(), stuck: timeline.open() };
    let mut at = timeline.first();
    while let Some(event) = at {
        let operation = timeline.operation(event);
        if timeline.is_begin(event) {
            let next = specification.step(&state, &history[operation].call, &history[operation].answer);
            done.set(operation, true);
            match next.filter(|next| reached.insert((done.clone(), next.clone()))) {
                Some(next) => {
                    order.push((operation, std::mem::replace(&mut state, next)));
                    timeline.remove(operation);
                    longest = longer(longest, &order, &timeline);
                    at = timeline.first();
                }
                None => {
                    done.set(operation, false);
                    at = timeline.after(event);
                }
            }
        } else {
            // An unexplained operation has ended: one of the choices before was wrong.
            let Some((last, before)) = order.pop() else { return longest };
            state = before;
            done.set(last, false);
            timeline.put_back(last);
            at = timeline.after(timeline.begin_of(last));
        }
    }
    Verdict::Linear(order.into_iter().map(|(operation, _)| operation).collect())
}

fn longer<S>(longest: Verdict, order: &[(usize, S)], timeline: &Timeline) -> Verdict {
    match &longest {
        Verdict::Broken { explained, .. } if explained.len() < order.len() => Verdict::Broken {
            explained: order.iter().map(|(operation, _)| *operation).collect(),
            stuck: timeline.open(),
        },
        _ => longest,
    }
}

/// The operations that are done, one bit each.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Done(Vec<u64>);

impl Done {
    fn new(operations: usize) -> Done {
        Done(vec![0; operations.div_ceil(64)])
    }

    fn set(&mut self, operation: usize, done: bool) {
        let (word, bit) = (operation / 64, 1 << (operation % 64));
        self.0[word] = if done { self.0[word] | bit } else { self.0[word] & !bit };
    }
}

/// The beginnings and ends of operations that are not done, in the order of time: a list from which an operation is
/// removed, and put back, in constant time. Event `2n` is the beginning of operation `n` and `2n + 1` its end; two more
/// frame the list.
struct Timeline {
    next: Vec<usize>,
    before: Vec<usize>,
    head: usize,
    tail: usize,
}

impl Timeline {
    fn new<C, A>(history: &[Operation<C, A>]) -> Timeline {
        let mut events: Vec<usize> = (0..2 * history.len()).collect();
        // At one time beginnings come before ends, so that these operations overlap.
        events.sort_by_key(|event| {
            let operation = &history[event / 2];
            let is_end = event % 2;
            (if is_end == 1 { operation.ended } else { operation.began }, is_end, *event)
        });
        let (head, tail) = (events.len(), events.len() + 1);
        let mut timeline = Timeline { next: vec![0; tail + 1], before: vec![0; tail + 1], head, tail };
        let mut last = head;
        for event in events.into_iter().chain([tail]) {
            timeline.next[last] = event;
            timeline.before[event] = last;
            last = event;
        }
        timeline
    }

    fn first(&self) -> Option<usize> {
        self.after(self.head)
    }

    fn after(&self, event: usize) -> Option<usize> {
        let next = self.next[event];
        (next != self.tail).then_some(next)
    }

    fn operation(&self, event: usize) -> usize {
        event / 2
    }

    fn is_begin(&self, event: usize) -> bool {
        event.is_multiple_of(2)
    }

    fn begin_of(&self, operation: usize) -> usize {
        2 * operation
    }

    /// Returns the operations that have begun before the first end.
    fn open(&self) -> Vec<usize> {
        let begins = std::iter::successors(self.first(), |event| self.after(*event));
        begins.take_while(|event| self.is_begin(*event)).map(|event| self.operation(event)).collect()
    }

    fn remove(&mut self, operation: usize) {
        for event in [2 * operation, 2 * operation + 1] {
            let (before, next) = (self.before[event], self.next[event]);
            self.next[before] = next;
            self.before[next] = before;
        }
    }

    /// Undoes the last removal that was not undone; its neighbours are as they were then.
    fn put_back(&mut self, operation: usize) {
        for event in [2 * operation + 1, 2 * operation] {
            let (before, next) = (self.before[event], self.next[event]);
            self.next[before] = event;
            self.before[next] = event;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number that is read, written, and swapped if it is what was expected.
    struct Register;

    #[derive(Debug, Clone, PartialEq, Eq)]
    enum Call {
        Read,
        Write(u8),
        Swap(u8, u8),
    }

    type Step = Operation<Call, u8>;

    impl Specification for Register {
        type State = u8;
        type Call = Call;
        type Answer = u8;

        fn start(&self) -> u8 {
            0
        }

        fn step(&self, state: &u8, call: &Call, answer: &u8) -> Option<u8> {
            match call {
                Call::Read => (state == answer).then_some(*state),
                Call::Write(value) => Some(*value),
                // The answer says whether it swapped.
                Call::Swap(from, to) if from == state => (*answer == 1).then_some(*to),
                Call::Swap(..) => (*answer == 0).then_some(*state),
            }
        }
    }

    fn step(client: usize, call: Call, answer: u8, began: u64, ended: u64) -> Step {
        Operation { client, call, answer, began, ended }
    }

    fn is_linear(history: &[Step]) -> bool {
        matches!(search(&Register, history), Verdict::Linear(_))
    }

    #[test]
    fn what_one_after_the_other_explains_is_linear() {
        assert!(is_linear(&[]));
        assert!(is_linear(&[
            step(0, Call::Write(1), 0, 0, 10),
            step(1, Call::Read, 0, 1, 2),
            step(1, Call::Read, 1, 3, 4)
        ]));
        // Both overlap with the write: either may have come first.
        assert!(is_linear(&[
            step(0, Call::Write(1), 0, 0, 10),
            step(1, Call::Read, 1, 1, 2),
            step(2, Call::Read, 0, 1, 2)
        ]));
        assert!(is_linear(&[
            step(0, Call::Swap(0, 1), 1, 0, 9),
            step(1, Call::Swap(0, 2), 0, 1, 8),
            step(2, Call::Read, 1, 9, 12)
        ]));
    }

    #[test]
    fn a_value_that_was_overwritten_before_is_not_read() {
        let history = [step(0, Call::Write(1), 0, 0, 1), step(1, Call::Read, 0, 2, 3)];
        let expected = Verdict::Broken { explained: vec![0], stuck: vec![1] };
        assert_eq!(search(&Register, &history), expected);
    }

    #[test]
    fn a_value_does_not_come_back() {
        let reads = |first, second| {
            [
                step(0, Call::Write(1), 0, 0, 10),
                step(1, Call::Read, first, 1, 2),
                step(1, Call::Read, second, 3, 4),
            ]
        };
        assert!(is_linear(&reads(0, 1)) && !is_linear(&reads(1, 0)));
    }

    #[test]
    fn two_clients_do_not_see_two_orders() {
        let history = |second: [u8; 2]| {
            [
                step(0, Call::Write(1), 0, 0, 100),
                step(1, Call::Write(2), 0, 0, 100),
                step(2, Call::Read, 1, 10, 20),
                step(2, Call::Read, 2, 30, 40),
                step(3, Call::Read, second[0], 10, 20),
                step(3, Call::Read, second[1], 30, 40),
            ]
        };
        assert!(is_linear(&history([1, 2])) && !is_linear(&history([2, 1])));
    }

    #[test]
    fn only_one_of_two_swaps_finds_what_both_expect() {
        let swaps = |second| [step(0, Call::Swap(0, 1), 1, 0, 9), step(1, Call::Swap(0, 2), second, 1, 8)];
        assert!(is_linear(&swaps(0)) && !is_linear(&swaps(1)));
    }

    #[test]
    fn a_value_that_was_never_written_is_not_read() {
        assert!(!is_linear(&[step(0, Call::Write(1), 0, 0, 9), step(1, Call::Read, 3, 1, 8)]));
    }

    /// Tries every order.
    fn by_hand(history: &[Step], done: &mut Vec<usize>, state: u8) -> bool {
        if done.len() == history.len() {
            return true;
        }
        (0..history.len()).any(|next| {
            let waits = |other: usize| !done.contains(&other) && history[other].ended < history[next].began;
            if done.contains(&next) || (0..history.len()).any(waits) {
                return false;
            }
            let Some(after) = Register.step(&state, &history[next].call, &history[next].answer) else {
                return false;
            };
            done.push(next);
            let found = by_hand(history, done, after);
            done.pop();
            found
        })
    }

    #[test]
    fn it_agrees_with_a_search_of_every_order() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut linear = 0;
        for _ in 0..20_000 {
            let history: Vec<Step> = (0..random.usize(1..=6))
                .map(|client| {
                    let (call, answer) = match random.u8(..3) {
                        0 => (Call::Read, random.u8(..3)),
                        1 => (Call::Write(random.u8(..3)), 0),
                        _ => (Call::Swap(random.u8(..3), random.u8(..3)), random.u8(..2)),
                    };
                    let began = random.u64(..12);
                    step(client, call, answer, began, began + random.u64(1..8))
                })
                .collect();
            let verdict = search(&Register, &history);
            let is_linear = by_hand(&history, &mut Vec::new(), 0);
            assert_eq!(matches!(verdict, Verdict::Linear(_)), is_linear, "{history:?}");
            linear += u32::from(is_linear);
            if let Verdict::Linear(order) = verdict {
                let explain =
                    |state, at: &usize| Register.step(&state, &history[*at].call, &history[*at].answer);
                assert!(order.len() == history.len() && order.iter().try_fold(0, explain).is_some());
            }
        }
        assert!((4_000..16_000).contains(&linear), "{linear} of both kinds");
    }
}
