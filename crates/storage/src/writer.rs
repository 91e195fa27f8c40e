//! The single writer, common to all stores of this crate: it runs a group of jobs one after another over one
//! overlay, makes one commit for all of them and then answers each.
//!
//! A job that fails fails alone. A failed commit fails the whole group: what reached the disk is unknown, so the store
//! takes no more writes, and its time stays at that of the commit, until it is opened again.

use crate::clock::{Clock, ClockDecision, ClockOptions, ClockReading, ClockStatus, Command, Renewed};
use crate::load::LoadMeter;
use crate::overlay::Overlay;
use crate::record::StoreRecord;
use crate::sync::AtomicU64;
use crate::ticket::Resolver;
use crate::{
    Direction, Durability, Error, FreeSpace, Job, KeyRange, Keyspace, Priority, Read, Result, Scan,
    Transaction, Verdict,
};
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// The number of jobs at which a group is full…
const MAX_GROUP_JOBS: usize = 512;
/// …and the number of bytes written.
const MAX_GROUP_BYTES: usize = 4 << 20;
/// How many catalog entries are cached while a group runs.
const MAX_CATALOG_ENTRIES: usize = 64;

/// The destination of a group's writes.
pub(crate) trait Backend: Send {
    /// Returns the committed state.
    fn base(&self) -> Result<Box<dyn Read>>;

    /// Does one piece of work that later commits would have to do. Returns false if none is left.
    fn prepare(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Returns an error if no job can run now. Unlike a failed commit this is temporary.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the free space of the disk, if there is one that can get full.
    fn free_space(&mut self) -> Option<FreeSpace> {
        None
    }

    /// Writes the changes and the record atomically, with this durability, after everything written before.
    fn commit(&mut self, overlay: Overlay, record: &StoreRecord, durability: Durability) -> Result<()>;
}

/// The writer's state that the store's other threads may see.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    sequence: AtomicU64,
    commits: AtomicU64,
    jobs: AtomicU64,
    pub(crate) load: LoadMeter,
    poison: OnceLock<Error>,
}

/// A piece of work for the writer.
pub(crate) enum Work {
    Job(Box<dyn Job>),
    Clock(Command, Resolver<Result<()>>),
}

impl Work {
    pub(crate) fn priority(&self) -> Priority {
        match self {
            Work::Job(job) => job.priority(),
            Work::Clock(..) => Priority::Normal,
        }
    }
}

pub(crate) struct Writer<B> {
    backend: B,
    /// The record of the newest commit.
    committed: StoreRecord,
    shared: Arc<Shared>,
}

/// Jobs that will be committed together.
pub(crate) struct Group {
    base: Base,
    overlay: Overlay,
    record: StoreRecord,
    free_space: Option<FreeSpace>,
    decision: Option<ClockDecision>,
    jobs: Vec<(Box<dyn Job>, Result<()>)>,
    command: Option<(Resolver<Result<()>>, Result<()>)>,
}

impl Shared {
    /// Creates the state of a store whose durable record is `record`; `None` if the store is new.
    pub(crate) fn start(record: Option<&StoreRecord>, options: ClockOptions) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            clock: Clock::start(record.map(|record| record.clock), options)?,
            sequence: AtomicU64::new(record.map_or(0, |record| record.sequence)),
            commits: AtomicU64::new(0),
            jobs: AtomicU64::new(0),
            load: LoadMeter::default(),
            poison: OnceLock::new(),
        }))
    }

    pub(crate) fn last_sequence(&self) -> u64 {
        self.sequence.load(Ordering::Acquire)
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Acquire)
    }

    pub(crate) fn jobs(&self) -> u64 {
        self.jobs.load(Ordering::Relaxed)
    }

    /// Returns the error that stopped the writes, if one did.
    pub(crate) fn poison(&self) -> Option<&Error> {
        self.poison.get()
    }

    /// Stops the writes; the first reason is kept.
    pub(crate) fn stop(&self, reason: &Error) -> Error {
        self.poison.get_or_init(|| reason.poison()).clone()
    }

    /// Returns the clock's status; `renew` makes a renewal durable, waiting for it or not.
    pub(crate) fn status(&self, renew: impl Fn(Wait) -> Result<()>) -> Result<ClockStatus> {
        let mut renewed = Renewed::No;
        loop {
            if let Some(Error::Closed) = self.poison() {
                return Err(Error::Closed);
            }
            match self.clock.look(renewed) {
                ClockReading::Shown { status, renew: false } => return Ok(status),
                ClockReading::Shown { status, renew: true } => {
                    // This time may be shown in any case; the renewal matters to later ones.
                    let _ = renew(Wait::No);
                    return Ok(status);
                }
                ClockReading::Beyond => renew(Wait::Yes)?,
            }
            renewed = Renewed::Yes;
        }
    }
}

/// Whether a caller waits for the commit it requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Yes,
    No,
}

impl<B: Backend> Writer<B> {
    pub(crate) fn new(backend: B, committed: StoreRecord, shared: Arc<Shared>) -> Self {
        Self { backend, committed, shared }
    }

    /// Begins a group; `None` if the store takes no writes, in which case `refused` is answered.
    pub(crate) fn begin(&mut self, refused: Work) -> Option<(Group, Work)> {
        let base = match self.shared.poison() {
            Some(error) => Err(error.clone()),
            None if matches!(refused, Work::Job(_)) => {
                self.backend.check().and_then(|()| self.backend.base())
            }
            // The clock's own commits are small, and without them no time could be shown.
            None => self.backend.base(),
        };
        match base {
            Ok(base) => Some((Group::new(base, self.committed, self.backend.free_space()), refused)),
            Err(error) => {
                refuse(refused, error);
                None
            }
        }
    }

    /// Runs one piece of work in the group. Returns true if the group should be finished now.
    pub(crate) fn add(&self, group: &mut Group, work: Work) -> bool {
        match work {
            Work::Job(job) => {
                self.shared.jobs.fetch_add(1, Ordering::Relaxed);
                group.run(&self.shared.clock, job);
                group.jobs.len() >= MAX_GROUP_JOBS || group.overlay.bytes() >= MAX_GROUP_BYTES
            }
            Work::Clock(command, resolver) => {
                let outcome = match self.shared.clock.prepare(command, &mut group.record.clock) {
                    Ok(decision) => {
                        group.decision = decision;
                        Ok(())
                    }
                    Err(error) => Err(error),
                };
                group.command = Some((resolver, outcome));
                // Later jobs must see the clock as the command leaves it, so they run in the next group.
                true
            }
        }
    }

    /// Commits the group and answers all its work.
    pub(crate) fn finish(&mut self, group: Group) {
        let durability = self.durability(&group);
        let Group { base, overlay, mut record, decision, jobs, command, .. } = group;
        drop(base);
        let outcome = if overlay.is_empty() && record == self.committed {
            self.shared.clock.publish(record.clock, decision);
            Ok(())
        } else {
            record.commit += 1;
            self.commit(overlay, record, decision, durability)
        };
        for (job, result) in jobs {
            let answer = outcome.clone().and(result);
            guarded(move || job.done(answer));
        }
        if let Some((resolver, result)) = command {
            guarded(move || resolver.resolve(outcome.and(result)));
        }
    }

    /// Uses idle time. Returns false if there is nothing to prepare.
    pub(crate) fn prepare(&mut self) -> bool {
        let backend = &mut self.backend;
        let prepared = catch_unwind(AssertUnwindSafe(|| backend.prepare()));
        // If preparation fails now, the commit that needs it fails too, and reports it.
        matches!(prepared, Ok(Ok(true)))
    }

    /// Returns the durability the group needs: a crash must never undo a time that was shown, nor an answer unless its job
    /// allows that.
    fn durability(&self, group: &Group) -> Durability {
        let all_buffered = group.jobs.iter().all(|(job, _)| job.durability() == Durability::Buffered);
        if all_buffered && group.command.is_none() && group.record.clock == self.committed.clock {
            Durability::Buffered
        } else {
            Durability::Sync
        }
    }

    fn commit(
        &mut self,
        overlay: Overlay,
        record: StoreRecord,
        decision: Option<ClockDecision>,
        durability: Durability,
    ) -> Result<()> {
        let backend = &mut self.backend;
        let outcome = catch_unwind(AssertUnwindSafe(|| backend.commit(overlay, &record, durability)))
            .unwrap_or_else(|panic| Err(Error::Internal { message: panic_text(panic.as_ref()) }));
        match outcome {
            Ok(()) => {
                self.committed = record;
                self.shared.sequence.store(record.sequence, Ordering::Release);
                // Before the clock continues: a thread that sees the new time must also see that there was a commit.
                self.shared.commits.fetch_add(1, Ordering::Release);
                self.shared.clock.publish(record.clock, decision);
                Ok(())
            }
            Err(error) => {
                // Recovery may replay what was written, so no later time is shown before the store is opened again
                // (T13).
                self.shared.clock.hold();
                self.shared.stop(&error);
                Err(error)
            }
        }
    }
}

impl Group {
    fn new(base: Box<dyn Read>, record: StoreRecord, free_space: Option<FreeSpace>) -> Self {
        let (base, overlay) = (Base { state: base, catalog: RefCell::default() }, Overlay::default());
        Self { base, overlay, record, free_space, decision: None, jobs: Vec::new(), command: None }
    }

    fn run(&mut self, clock: &Clock, mut job: Box<dyn Job>) {
        let moment = clock.assign(&mut self.record.clock);
        let mut transaction = Transaction::new(&self.base, &mut self.overlay, moment, self.record.sequence)
            .with_free_space(self.free_space);
        let inside = InsideJob::enter();
        let verdict = catch_unwind(AssertUnwindSafe(|| job.run(&mut transaction)));
        drop(inside);
        let result = match verdict {
            Ok(Verdict::Commit) => transaction.keep().map(|sequence| self.record.sequence = sequence),
            Ok(Verdict::Abort) => {
                transaction.drop_writes();
                Ok(())
            }
            Err(panic) => {
                transaction.drop_writes();
                Err(Error::Internal { message: panic_text(panic.as_ref()) })
            }
        };
        self.jobs.push((job, result));
    }
}

/// The committed state below a group. Catalog entries that its jobs read are cached: each job begins with the same
/// policies.
struct Base {
    state: Box<dyn Read>,
    catalog: RefCell<BTreeMap<Box<[u8]>, Option<Bytes>>>,
}

impl Read for Base {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Bytes>> {
        if keyspace != Keyspace::Catalog {
            return self.state.get(keyspace, key);
        }
        if let Some(known) = self.catalog.borrow().get(key) {
            return Ok(known.clone());
        }
        let value = self.state.get(keyspace, key)?;
        let mut catalog = self.catalog.borrow_mut();
        if catalog.len() < MAX_CATALOG_ENTRIES {
            catalog.insert(key.into(), value.clone());
        }
        Ok(value)
    }

    fn scan(&self, keyspace: Keyspace, range: KeyRange, direction: Direction) -> Scan<'_> {
        self.state.scan(keyspace, range, direction)
    }
}

/// Answers work that will not be done.
pub(crate) fn refuse(work: Work, error: Error) {
    match work {
        Work::Job(job) => guarded(move || job.done(Err(error))),
        Work::Clock(_, resolver) => guarded(move || resolver.resolve(Err(error))),
    }
}

/// Answers a caller. Its waker is foreign code and may panic; the writer thread continues.
fn guarded(answer: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(answer));
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a panic: {}", text.unwrap_or("without a message"))
}

thread_local! {
    static INSIDE_JOB: Cell<bool> = const { Cell::new(false) };
}

/// Marks the thread while a job runs on it: a job that called its own store would deadlock.
struct InsideJob;

impl InsideJob {
    fn enter() -> Self {
        INSIDE_JOB.set(true);
        Self
    }
}

impl Drop for InsideJob {
    fn drop(&mut self) {
        INSIDE_JOB.set(false);
    }
}

/// Returns an error if this thread is running a job.
pub(crate) fn check_outside_job() -> Result<()> {
    if INSIDE_JOB.get() {
        return Err(Error::Internal { message: "a job called the store it runs in".to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Backend, Group, Shared, Work, Writer, refuse};
    use crate::clock::Command;
    use crate::overlay::Overlay;
    use crate::record::StoreRecord;
    use crate::ticket::{Resolver, Ticket, ticket};
    use crate::{
        ClockOptions, Direction, Durability, Error, Job, KeyRange, Keyspace, ManualClock, Read, Result, Scan,
        Time, Transaction, Verdict, WallClock,
    };
    use bytes::Bytes;
    use parking_lot::Mutex;
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Wake};
    use std::time::Duration;

    /// A disk with a scripted outcome.
    #[derive(Clone, Copy)]
    enum Disk {
        Works,
        Fails,
        Panics,
        /// Takes no jobs for now.
        Refuses,
    }

    struct Nothing;

    impl Read for Nothing {
        fn get(&self, _: Keyspace, _: &[u8]) -> Result<Option<Bytes>> {
            Ok(None)
        }

        fn scan(&self, _: Keyspace, _: KeyRange, _: Direction) -> Scan<'_> {
            Box::new(std::iter::empty())
        }
    }

    impl Backend for Disk {
        fn base(&self) -> Result<Box<dyn Read>> {
            Ok(Box::new(Nothing))
        }

        fn check(&self) -> Result<()> {
            if matches!(self, Self::Refuses) { Err(Error::io("write", &"not now")) } else { Ok(()) }
        }

        fn commit(&mut self, _: Overlay, _: &StoreRecord, _: Durability) -> Result<()> {
            match self {
                Self::Works | Self::Refuses => Ok(()),
                Self::Fails => Err(Error::io("commit", &"no space")),
                Self::Panics => panic!("out of luck"),
            }
        }
    }

    type Answers = Arc<Mutex<Vec<Result<()>>>>;

    /// A job that writes the next sequence and looks for the one before it.
    struct Next(Answers, u64);

    impl Job for Next {
        fn run(&mut self, transaction: &mut Transaction<'_>) -> Verdict {
            assert_eq!(transaction.next_sequence(), self.1, "jobs see what those before them did");
            let before = (self.1 - 1).to_be_bytes();
            assert_eq!(transaction.get(Keyspace::Item, &before).unwrap().is_some(), self.1 > 1);
            transaction.put(Keyspace::Item, self.1.to_be_bytes(), "");
            Verdict::Commit
        }

        fn done(self: Box<Self>, outcome: Result<()>) {
            self.0.lock().push(outcome);
        }
    }

    /// A job that a crash may undo.
    struct Lazy;

    impl Job for Lazy {
        fn run(&mut self, transaction: &mut Transaction<'_>) -> Verdict {
            transaction.put(Keyspace::Item, "lazy", "");
            Verdict::Commit
        }

        fn done(self: Box<Self>, _: Result<()>) {}

        fn durability(&self) -> Durability {
            Durability::Buffered
        }
    }

    fn group_of_three(disk: Disk) -> (Writer<Disk>, Group, Answers) {
        group_at(disk, &Arc::new(ManualClock::new(Time::from_seconds(1))))
    }

    fn group_at(disk: Disk, clock: &Arc<ManualClock>) -> (Writer<Disk>, Group, Answers) {
        let shared = Shared::start(None, ClockOptions::new(Arc::clone(clock) as Arc<dyn WallClock>)).unwrap();
        let mut writer = Writer::new(disk, StoreRecord::default(), shared);
        let answers = Answers::default();
        let job = |number| Work::Job(Box::new(Next(Arc::clone(&answers), number)));
        let (mut group, first) = writer.begin(job(1)).unwrap();
        for work in [first, job(2), job(3)] {
            assert!(!writer.add(&mut group, work));
        }
        (writer, group, answers)
    }

    #[test]
    fn no_job_is_answered_before_its_groups_one_commit() {
        let (mut writer, group, answers) = group_of_three(Disk::Works);
        assert!(answers.lock().is_empty());
        writer.finish(group);
        assert_eq!(*answers.lock(), [Ok(()), Ok(()), Ok(())]);
        assert_eq!((writer.shared.commits(), writer.shared.last_sequence()), (1, 3));
    }

    #[test]
    fn a_group_is_buffered_only_if_all_its_jobs_allow_it() {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1)));
        let (mut writer, group, answers) = group_at(Disk::Works, &clock);
        assert_eq!(writer.durability(&group), Durability::Sync);
        writer.finish(group);
        let lazy = || Work::Job(Box::new(Lazy));
        let mut durability = |works: Vec<Work>| {
            let (mut group, _) = writer.begin(lazy()).unwrap();
            for work in works {
                writer.add(&mut group, work);
            }
            writer.durability(&group)
        };
        assert_eq!(durability(vec![lazy(), lazy()]), Durability::Buffered);
        let job = || Work::Job(Box::new(Next(Arc::clone(&answers), 4)));
        assert_eq!(durability(vec![lazy(), job(), lazy()]), Durability::Sync);
        let (resolver, _ticket) = ticket();
        assert_eq!(durability(vec![lazy(), Work::Clock(Command::Renew, resolver)]), Durability::Sync);
        // The time of a job lies beyond the current limit, so its record moves the bound.
        clock.advance(Duration::from_hours(1));
        assert_eq!(durability(vec![lazy()]), Durability::Sync);
    }

    #[test]
    fn a_commit_that_fails_or_panics_fails_its_group_and_stops_the_writes() {
        for disk in [Disk::Fails, Disk::Panics] {
            let (mut writer, group, answers) = group_of_three(disk);
            writer.finish(group);
            assert!(answers.lock().iter().all(Result::is_err));
            assert_eq!((answers.lock().len(), writer.shared.last_sequence()), (3, 0));
            assert!(writer.begin(Work::Job(Box::new(Next(Arc::clone(&answers), 1)))).is_none());
            let last = answers.lock().pop().unwrap();
            assert!(matches!(last, Err(Error::Poisoned { .. })), "{last:?}");
        }
    }

    #[test]
    fn a_store_that_takes_no_jobs_for_now_refuses_them_renews_its_time_and_goes_on_later() {
        let (mut writer, group, _) = group_of_three(Disk::Works);
        writer.finish(group);
        let mut outcome = |disk, work: fn(Resolver<Result<()>>) -> Work| {
            writer.backend = disk;
            let (resolver, ticket) = ticket();
            if let Some((mut group, work)) = writer.begin(work(resolver)) {
                writer.add(&mut group, work);
                writer.finish(group);
            }
            ticket.wait()
        };
        let job = |resolver| Work::Job(Box::new(Awaited(Some(resolver))));
        assert_eq!(outcome(Disk::Refuses, job), Err(Error::io("write", &"not now")));
        assert_eq!(outcome(Disk::Refuses, |resolver| Work::Clock(Command::Renew, resolver)), Ok(()));
        assert_eq!(outcome(Disk::Works, job), Ok(()));
    }

    /// A caller whose waker panics.
    struct Bad;

    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("a waker that panics");
        }
    }

    /// Returns a ticket that such a caller awaits.
    fn awaited_badly() -> (Resolver<Result<()>>, Ticket<Result<()>>) {
        let (resolver, mut ticket) = ticket();
        let waker = Arc::new(Bad).into();
        assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending());
        (resolver, ticket)
    }

    /// A job whose outcome is awaited.
    struct Awaited(Option<Resolver<Result<()>>>);

    impl Job for Awaited {
        fn run(&mut self, _: &mut Transaction<'_>) -> Verdict {
            Verdict::Commit
        }

        fn done(mut self: Box<Self>, outcome: Result<()>) {
            self.0.take().expect("answered once").resolve(outcome);
        }
    }

    #[test]
    fn a_waker_that_panics_ends_no_group_command_or_refusal() {
        type MakeWork = fn(Resolver<Result<()>>) -> Work;
        let works: [MakeWork; 2] = [
            |resolver| Work::Job(Box::new(Awaited(Some(resolver)))),
            |resolver| Work::Clock(Command::Renew, resolver),
        ];
        for (disk, work) in
            [Disk::Works, Disk::Fails].into_iter().flat_map(|disk| works.map(|work| (disk, work)))
        {
            let (mut writer, mut group, answers) = group_of_three(disk);
            let (resolver, ticket) = awaited_badly();
            writer.add(&mut group, work(resolver));
            writer.finish(group);
            assert_eq!(ticket.wait().is_ok(), matches!(disk, Disk::Works));
            assert_eq!(answers.lock().len(), 3);
            let (resolver, ticket) = awaited_badly();
            refuse(work(resolver), Error::Closed);
            assert_eq!(ticket.wait(), Err(Error::Closed));
            let (resolver, ticket) = awaited_badly();
            // After a failed commit the writer itself refuses.
            if writer.begin(work(resolver)).is_none() {
                assert!(matches!(ticket.wait(), Err(Error::Poisoned { .. })));
            }
        }
    }

    #[test]
    fn t13_time_stands_still_until_a_commit_is_there_and_after_one_that_failed() {
        for (disk, after) in [(Disk::Works, 2), (Disk::Fails, 1), (Disk::Panics, 1)] {
            let clock = Arc::new(ManualClock::new(Time::from_seconds(1)));
            let (mut writer, group, _) = group_at(disk, &clock);
            let shared = Arc::clone(&writer.shared);
            let seconds = || shared.clock.assign(&mut StoreRecord::default().clock).now.seconds();
            clock.advance(Duration::from_secs(1));
            assert_eq!(seconds(), 1, "all jobs of a group have one time");
            writer.finish(group);
            assert_eq!(seconds(), after);
        }
    }

    #[test]
    fn t13_no_time_beyond_that_of_a_pending_commit_is_shown() {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1)));
        let (mut writer, group, answers) = group_at(Disk::Works, &clock);
        writer.finish(group);
        let shared = Arc::clone(&writer.shared);
        let shown = || shared.status(|_| Ok(())).unwrap().now.seconds();
        let (mut group, job) = writer.begin(Work::Job(Box::new(Next(answers, 4)))).unwrap();
        clock.advance(Duration::from_secs(1));
        assert_eq!(shown(), 2);
        writer.add(&mut group, job);
        clock.advance(Duration::from_secs(1));
        assert_eq!(shown(), 2);
        writer.finish(group);
        assert_eq!(shown(), 3);
    }
}
