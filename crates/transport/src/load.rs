//! How much a server does at once, all front ends together, and what becomes of the rest.
//!
//! A server that takes on everything gets slower for everybody, until nobody waits for its answers any more. So each kind of
//! work has a [line](Load::enter): so many places, and a wait for one that ends. Who finds no place in time is told to come
//! back, which costs a fraction of the work, and those who have one are served as fast as ever.
//!
//! ```text
//!   request -> is there room for answers? -> wait for room for a large body -> wait for a place -> work -> answer
//!                        | no                        | too long, or too many wait   |
//!                        +-----------------------> Busy <---------------------------+
//! ```
//!
//! How long one waits depends on whether the line is a burst or a state. A line that came up just now is waited out; one that
//! has stood for as long as anybody would wait in it is more than the server can do, and from there on only a short wait is
//! allowed: then those who get a place have not waited long, and places are never empty.
//!
//! Half of the bytes that may be held are for large bodies on their way in, half for answers on their way out: peers that
//! announce much and send nothing hold up other large bodies, and nobody else; those that read nothing hold up large answers.
//!
//! What is answered by computing on the spot, a point read above all, waits for nobody and so never fills a line: to refuse it
//! would cost about as much. It waits where it arrives, in its connection, of which there are so many.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

/// Who may wait in a line at once; whoever comes then is sent away at once.
const WAITING_MAX: usize = 4096;

/// Where a line has stood for the whole patience, this part of it is all that is waited.
const SHORT_WAIT: u32 = 10;

/// What a query is counted with while it works, for the answer that it will have: a page. Less where all of them together would
/// leave no room for themselves.
const PAGE_BYTES: usize = 4 << 20;

/// Room for large bodies is given out in pieces of so many bytes.
const PIECE_BYTES: usize = 4096;

/// The shortest and the longest time after which those who were sent away are told to come back. They are spread between the
/// two, so that they do not come together.
const RETRY_AFTER_MS: (u64, u64) = (100, 500);

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Single writes and small things: mostly it waits for its commit, and many commit together.
    Brief,
    /// What may look for documents, change them and wait for the commit.
    Statement,
    /// What reads many documents: it takes a processor for as long as it lasts.
    Query,
}

impl Work {
    /// All of them.
    pub const ALL: [Work; 3] = [Work::Brief, Work::Statement, Work::Query];

    /// As metrics name it.
    pub fn name(self) -> &'static str {
        match self {
            Work::Brief => "brief",
            Work::Statement => "statement",
            Work::Query => "query",
        }
    }
}

/// How much is done at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Work of [`Work::Brief`].
    pub brief: usize,
    /// Work of [`Work::Statement`].
    pub statements: usize,
    /// Work of [`Work::Query`].
    pub queries: usize,
    /// How long a place is waited for.
    pub patience: Duration,
    /// Bytes of requests and answers that are held at once, half of it for each. Work that is under way may exceed it with
    /// its answer, new work is refused then.
    pub held_bytes: usize,
    /// Connections in all.
    pub connections: usize,
}

impl Default for Bounds {
    /// What suits a small machine.
    fn default() -> Bounds {
        Bounds {
            brief: 1000,
            statements: 64,
            queries: 8,
            patience: Duration::from_secs(5),
            held_bytes: 512 * 1024 * 1024,
            connections: Semaphore::MAX_PERMITS,
        }
    }
}

/// There is too much to do. Nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// When to come back.
    pub retry_after_ms: u64,
}

/// What a server is doing.
#[derive(Debug)]
pub struct Load {
    lines: [Line; Work::ALL.len()],
    /// Large bodies that are being received; a place is a piece.
    bodies: Line,
    /// Bytes of answers.
    answers: AtomicUsize,
    answers_max: usize,
    /// What the answer of a query is taken for until it is known.
    page_bytes: usize,
    /// Refused for want of room for an answer.
    refused_for_answers: AtomicU64,
    connections: Arc<Semaphore>,
}

impl Default for Load {
    fn default() -> Load {
        Load::new(Bounds::default())
    }
}

impl Load {
    /// A server that does nothing yet.
    pub fn new(bounds: Bounds) -> Load {
        let line = |work| {
            let places = match work {
                Work::Brief => bounds.brief,
                Work::Statement => bounds.statements,
                Work::Query => bounds.queries,
            };
            Line::new(places, bounds.patience)
        };
        Load {
            lines: Work::ALL.map(line),
            bodies: Line::new(bounds.held_bytes / 2 / PIECE_BYTES, bounds.patience),
            answers: AtomicUsize::new(0),
            answers_max: bounds.held_bytes / 2,
            page_bytes: PAGE_BYTES.min(bounds.held_bytes / 4 / bounds.queries.max(1)),
            refused_for_answers: AtomicU64::new(0),
            connections: Arc::new(Semaphore::new(bounds.connections.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// A place to work in, for as long as it lives, once there is also room for the answer: those who waited together all
    /// found room when they came.
    pub async fn enter(&self, work: Work) -> Result<Place<'_>, Busy> {
        let mut place = self.line(work).enter(1).await?;
        self.check_room(Some(work))?;
        if work == Work::Query {
            place.answer = Some(Expected::new(&self.answers, self.page_bytes));
        }
        Ok(place)
    }

    /// A place for what goes on with work that has begun, however long it takes: it is not sent away.
    pub async fn enter_in_the_end(&self, work: Work) -> Option<Place<'_>> {
        self.line(work).enter_in_the_end(1).await
    }

    /// Room for a large body that was announced.
    pub async fn receive(&self, bytes: usize) -> Result<Place<'_>, Busy> {
        self.bodies.enter(self.pieces(bytes)).await
    }

    /// The same, however long it takes: where nothing can be answered before everything is read.
    pub async fn receive_in_the_end(&self, bytes: usize) -> Option<Place<'_>> {
        self.bodies.enter_in_the_end(self.pieces(bytes)).await
    }

    /// What is larger than all the room there is gets all of it.
    fn pieces(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(PIECE_BYTES).min(self.bodies.limit)).unwrap_or(u32::MAX)
    }

    /// A place for one more connection, if there is one.
    pub fn connect(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.connections).try_acquire_owned().ok()
    }

    /// Whether there is room for one more answer to that kind of work; to none if it is computed on the spot. Large answers
    /// are those of queries: what they may not fill is left to the others.
    pub fn check_room(&self, work: Option<Work>) -> Result<(), Busy> {
        let room = if work == Some(Work::Query) { self.answers_max / 2 } else { self.answers_max };
        if self.answers.load(Ordering::Relaxed) < room {
            return Ok(());
        }
        Err(Busy::spread(self.refused_for_answers.fetch_add(1, Ordering::Relaxed)))
    }

    /// Counts the bytes of an answer for as long as what this returns lives.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Held {
        self.answers.fetch_add(bytes, Ordering::Relaxed);
        Held { load: Arc::clone(self), bytes }
    }

    /// Bytes of requests and answers that are held, bodies in whole pieces.
    pub fn held_bytes(&self) -> usize {
        self.bodies.taken() * PIECE_BYTES + self.answers.load(Ordering::Relaxed)
    }

    /// As many may be held before work is refused.
    pub fn held_bytes_max(&self) -> usize {
        self.bodies.limit * PIECE_BYTES + self.answers_max
    }

    /// Requests refused because too many bytes were held.
    pub fn refused_for_bytes(&self) -> u64 {
        self.bodies.shed.load(Ordering::Relaxed) + self.refused_for_answers.load(Ordering::Relaxed)
    }

    /// How much work of that kind is done at once.
    pub fn limit(&self, work: Work) -> usize {
        self.line(work).limit
    }

    /// How much work is done, how much waits, and how much was sent away since the start.
    pub fn figures(&self, work: Work) -> Figures {
        let line = self.line(work);
        Figures {
            working: line.taken(),
            waiting: line.waiting.load(Ordering::Relaxed),
            shed: line.shed.load(Ordering::Relaxed),
        }
    }

    fn line(&self, work: Work) -> &Line {
        &self.lines[work as usize]
    }
}

/// Figures of one kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Has a place.
    pub working: usize,
    /// Waits for one.
    pub waiting: usize,
    /// Was sent away.
    pub shed: u64,
}

/// A place among those who work.
#[derive(Debug)]
pub struct Place<'a> {
    _permit: SemaphorePermit<'a>,
    answer: Option<Expected<'a>>,
}

impl<'a> Place<'a> {
    fn new(permit: SemaphorePermit<'a>) -> Place<'a> {
        Place { _permit: permit, answer: None }
    }
}

/// Bytes of an answer that is not made yet.
#[derive(Debug)]
struct Expected<'a> {
    answers: &'a AtomicUsize,
    bytes: usize,
}

impl<'a> Expected<'a> {
    fn new(answers: &'a AtomicUsize, bytes: usize) -> Expected<'a> {
        answers.fetch_add(bytes, Ordering::Relaxed);
        Expected { answers, bytes }
    }
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.answers.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes of an answer that are counted.
#[derive(Debug)]
pub struct Held {
    load: Arc<Load>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.load.answers.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Busy {
    fn spread(count: u64) -> Busy {
        let (least, most) = RETRY_AFTER_MS;
        // An odd step visits every value before it comes back to the first.
        Busy { retry_after_ms: least + count.wrapping_mul(67) % (most - least) }
    }
}

/// Places of one kind, and those who wait for one.
#[derive(Debug)]
struct Line {
    places: Semaphore,
    limit: usize,
    patience: Duration,
    waiting: AtomicUsize,
    /// Since when somebody has been waiting all the time.
    crowded: Mutex<Option<Instant>>,
    shed: AtomicU64,
}

impl Line {
    fn new(places: usize, patience: Duration) -> Line {
        let limit = places.clamp(1, Semaphore::MAX_PERMITS);
        Line {
            places: Semaphore::new(limit),
            limit,
            patience,
            waiting: AtomicUsize::new(0),
            crowded: Mutex::default(),
            shed: AtomicU64::new(0),
        }
    }

    /// So many places at once.
    async fn enter(&self, places: u32) -> Result<Place<'_>, Busy> {
        match self.places.try_acquire_many(places) {
            Ok(permit) => Ok(Place::new(permit)),
            Err(_) => self.wait(places).await,
        }
    }

    async fn wait(&self, places: u32) -> Result<Place<'_>, Busy> {
        let Some(waiting) = Waiting::begin(self) else { return Err(self.shed()) };
        let place = timeout(waiting.patience, self.enter_in_the_end(places)).await;
        place.ok().flatten().ok_or_else(|| self.shed())
    }

    /// None if the line were closed, which it never is.
    async fn enter_in_the_end(&self, places: u32) -> Option<Place<'_>> {
        self.places.acquire_many(places).await.ok().map(Place::new)
    }

    fn taken(&self) -> usize {
        self.limit - self.places.available_permits()
    }

    fn shed(&self) -> Busy {
        Busy::spread(self.shed.fetch_add(1, Ordering::Relaxed))
    }
}

/// Somebody who waits.
struct Waiting<'a> {
    line: &'a Line,
    patience: Duration,
}

impl<'a> Waiting<'a> {
    /// Joins the line, unless it is too long.
    fn begin(line: &'a Line) -> Option<Waiting<'a>> {
        let mut waiting = Waiting { line, patience: line.patience };
        let others = line.waiting.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let since = *line.crowded.lock().get_or_insert(now);
        if now.duration_since(since) >= line.patience {
            waiting.patience /= SHORT_WAIT;
        }
        (others < WAITING_MAX).then_some(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.line.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            *self.line.crowded.lock() = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn load(queries: usize) -> Arc<Load> {
        Arc::new(Load::new(Bounds { queries, held_bytes: 100, connections: 1, ..Bounds::default() }))
    }

    async fn wait_in_line(load: &Arc<Load>) -> tokio::task::JoinHandle<Result<(), Busy>> {
        let (other, before) = (Arc::clone(load), load.figures(Work::Query).waiting);
        let task = tokio::spawn(async move { other.enter(Work::Query).await.map(drop) });
        while load.figures(Work::Query).waiting == before {
            tokio::task::yield_now().await;
        }
        task
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_waited_out_in_the_order_of_arrival() {
        let load = load(1);
        let place = load.enter(Work::Query).await.unwrap();
        let (first, second) = (wait_in_line(&load).await, wait_in_line(&load).await);
        assert_eq!(load.figures(Work::Query), Figures { working: 1, waiting: 2, shed: 0 });
        advance(Duration::from_millis(4_900)).await;
        drop(place);
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (Ok(()), Ok(())));
        assert_eq!(load.figures(Work::Query), Figures { working: 0, waiting: 0, shed: 0 });
        assert!(load.enter(Work::Brief).await.is_ok(), "each kind has its own line");
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_that_stands_is_waited_in_for_a_short_while_only_and_recovers() {
        let load = load(1);
        let place = load.enter(Work::Query).await.unwrap();
        let began = Instant::now();
        let overlapping = wait_in_line(&load).await;
        advance(Duration::from_millis(4_900)).await;
        let long = wait_in_line(&load).await;
        assert!(overlapping.await.unwrap().is_err());
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        let short = wait_in_line(&load).await;
        assert!(short.await.unwrap().is_err());
        assert_eq!(began.elapsed(), Duration::from_millis(5_500), "a tenth of the patience");
        assert!(long.await.unwrap().is_err());
        drop(place);
        assert!(load.enter(Work::Query).await.is_ok());
        assert_eq!(load.figures(Work::Query), Figures { working: 0, waiting: 0, shed: 3 });

        let place = load.enter(Work::Query).await.unwrap();
        let burst = wait_in_line(&load).await;
        advance(Duration::from_secs(4)).await;
        drop(place);
        assert_eq!(burst.await.unwrap(), Ok(()), "a new line is a burst again");
    }

    #[tokio::test(start_paused = true)]
    async fn too_long_a_line_sends_away_at_once() {
        let load = load(1);
        let _place = load.enter(Work::Query).await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..WAITING_MAX {
            waiting.push(wait_in_line(&load).await);
        }
        let began = Instant::now();
        assert!(load.enter(Work::Query).await.is_err());
        assert_eq!(began.elapsed(), Duration::ZERO);
        waiting.pop().unwrap().abort();
        while load.figures(Work::Query).waiting == WAITING_MAX {
            tokio::task::yield_now().await;
        }
        wait_in_line(&load).await;
    }

    #[tokio::test]
    async fn answers_are_counted_while_they_are_held() {
        let load = load(1);
        let held = load.hold(24);
        assert_eq!(load.check_room(Some(Work::Query)), Ok(()));
        let more = load.hold(25);
        assert!(load.check_room(Some(Work::Query)).is_err(), "queries leave half of it to the others");
        assert_eq!((load.check_room(Some(Work::Brief)), load.check_room(None)), (Ok(()), Ok(())));
        let last = load.hold(1);
        assert!(load.check_room(Some(Work::Brief)).is_err() && load.check_room(None).is_err());
        drop(more);
        assert_eq!(load.check_room(Some(Work::Statement)), Ok(()));
        assert!(load.enter(Work::Query).await.is_err(), "room is looked for when the turn has come");
        assert_eq!(load.figures(Work::Query).working, 0);
        drop((held, last));
        assert_eq!((load.held_bytes(), load.refused_for_bytes()), (0, 4));
    }

    /// Otherwise those who begin together would all find room, and together have more than there is.
    #[tokio::test]
    async fn a_query_under_way_is_counted_with_a_page() {
        let load = Load::new(Bounds { queries: 2, held_bytes: 8 * PAGE_BYTES, ..Bounds::default() });
        let first = load.enter(Work::Query).await.unwrap();
        let second = load.enter(Work::Query).await.unwrap();
        assert_eq!(load.held_bytes(), 2 * PAGE_BYTES);
        assert!(load.check_room(Some(Work::Query)).is_err());
        assert_eq!(load.check_room(Some(Work::Brief)), Ok(()));
        drop((first, second));
        assert_eq!(load.held_bytes(), 0);
        let small = Load::new(Bounds { queries: 2, held_bytes: 400, ..Bounds::default() });
        let _all = (small.enter(Work::Query).await.unwrap(), small.enter(Work::Query).await.unwrap());
        assert_eq!(small.held_bytes(), 100, "there is room for as many as there are places");
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_wait_for_each_other_and_take_no_room_from_answers() {
        let load = Load::new(Bounds { held_bytes: 8 * PIECE_BYTES, ..Bounds::default() });
        let first = load.receive(2 * PIECE_BYTES + 1).await.unwrap();
        assert_eq!(load.held_bytes(), 3 * PIECE_BYTES);
        let (second, ()) = tokio::join!(load.receive(PIECE_BYTES + 1), async {
            tokio::task::yield_now().await;
            drop(first);
        });
        assert_eq!(load.held_bytes(), 2 * PIECE_BYTES);
        let began = Instant::now();
        assert!(load.receive(3 * PIECE_BYTES).await.is_err(), "nobody gives up any");
        assert_eq!((began.elapsed(), load.refused_for_bytes()), (Duration::from_secs(5), 1));
        assert_eq!(load.check_room(None), Ok(()));
        drop(second);
        let all = load.receive_in_the_end(1000 * PIECE_BYTES).await;
        assert_eq!(load.held_bytes(), 4 * PIECE_BYTES, "what is larger than all there is gets all of it");
        drop(all);
        assert_eq!(load.held_bytes(), 0);
    }

    #[test]
    fn connections_are_counted_for_all_front_ends_together() {
        let load = load(1);
        let first = load.connect();
        assert!(first.is_some() && load.connect().is_none());
        drop(first);
        assert!(load.connect().is_some());
    }

    #[test]
    fn those_who_are_sent_away_come_back_one_after_another() {
        let mut times: Vec<u64> = (0..400).map(|count| Busy::spread(count).retry_after_ms).collect();
        times.sort_unstable();
        times.dedup();
        assert_eq!((times.len(), times[0], times[399]), (400, 100, 499));
    }
}
