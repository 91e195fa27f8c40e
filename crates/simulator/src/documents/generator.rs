//! The generator of steps for documents.

use super::machine::NAMES;
use super::model::Model;
use super::types::{Dates, Default, Doc, FIELDS, IgnoredTtl, NumberType, Request, Rule, Ttl};
use crate::model::{Consent, Evidence};

/// One step.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A request; a crash may strike its first commit, kept or not.
    Request {
        name: &'static str,
        request: Request,
        crash: Option<bool>,
    },
    Wait {
        ms: u64,
    },
    /// A new rule, with requests while its index is built.
    AddRule {
        name: &'static str,
        field: usize,
        rule: Rule,
        consent: Consent,
        meanwhile: Vec<Request>,
    },
    /// The archive is full, or has room again.
    FillArchive {
        full: bool,
    },
    Purge {
        limit: usize,
    },
    Drain,
    Restart,
    /// The reader of the watch continues.
    Watch {
        max_items: usize,
    },
}

/// Draws steps.
pub(super) struct Generator {
    random: fastrand::Rng,
}

const IDS: i32 = 5;

impl Generator {
    pub(super) fn new(seed: u64) -> Generator {
        Generator { random: fastrand::Rng::with_seed(seed.wrapping_mul(3) ^ 0x5EED) }
    }

    pub(super) fn start_ms(&mut self) -> u64 {
        1_700_000_000_000 + self.random.u64(..400 * 24 * 3_600_000)
    }

    pub(super) fn is_watched(&mut self) -> bool {
        self.random.bool()
    }

    /// Returns the next step; `full` is whether the archive is full.
    pub(super) fn next(&mut self, model: &Model, full: bool) -> Step {
        let name = NAMES[usize::from(self.random.u8(..4) == 0)];
        let Some(collection) = model.collections.get(name) else {
            let other = if name == NAMES[0] { NAMES[1] } else { NAMES[0] };
            if model.collections.contains_key(other) && self.random.u8(..3) == 0 {
                return self.request(other, Request::Rename(name));
            }
            return self.request(name, Request::Make);
        };
        if collection.hold && self.random.u8(..4) == 0 {
            let consent = self.consent();
            return self.request(name, Request::HoldCollection(false, consent));
        }
        // The workload is short: evidence must be configured early.
        if collection.evidence.is_empty() && self.random.u8(..8) == 0 {
            return self.evidence(name);
        }
        match self.random.u8(..100) {
            0..40 => {
                let request = self.write(model, name);
                self.request(name, request)
            }
            40..60 => Step::Wait { ms: self.wait_ms(model) },
            60..66 => {
                let (default, consent) = (self.default(), self.consent());
                self.request(name, Request::SetDefault(default, consent))
            }
            66..74 => self.rule_step(model, name),
            74..80 => Step::Purge { limit: self.random.usize(1..4) },
            80..82 => Step::Drain,
            82..87 => Step::Watch { max_items: self.random.usize(1..6) },
            // A lift or a drop may have to wait for the purge, which a full archive stops.
            87..91 | 96..98 if full => Step::FillArchive { full: false },
            87..91 => self.hold(model, name),
            91 => {
                let consent = self.consent();
                self.request(name, Request::HoldCollection(true, consent))
            }
            92 => self.evidence(name),
            93 => Step::FillArchive { full: !full },
            94..96 => {
                let share = [None, Some(0), Some(400_000), Some(1_000_000)][self.random.usize(..4)];
                self.request(name, Request::Guard(share))
            }
            96..98 if collection.evidence.contains_key(&Evidence::Archive) => {
                Step::Request { name, request: Request::Drop, crash: None }
            }
            96..98 => self.request(name, Request::Drop),
            _ => Step::Restart,
        }
    }

    /// Makes the step of a request. A lift may let the purge run first, as a drop does where there is an archive, so that commits
    /// differ between the worlds: no crash there.
    fn request(&mut self, name: &'static str, request: Request) -> Step {
        let lift = matches!(request, Request::LiftItem(_));
        let crash = (!lift && self.random.u8(..15) == 0).then(|| self.random.bool());
        Step::Request { name, request, crash }
    }

    fn evidence(&mut self, name: &'static str) -> Step {
        let evidence = [Evidence::Archive, Evidence::Record][self.random.usize(..2)];
        let is_on = self.random.u8(..4) != 0;
        self.request(name, Request::Evidence(evidence, is_on))
    }

    fn consent(&mut self) -> Consent {
        if self.random.u8(..3) == 0 { Consent::Given } else { Consent::NotGiven }
    }

    fn write(&mut self, model: &Model, name: &str) -> Request {
        let doc = self.doc(model);
        let same =
            model.living(name).into_iter().find(|item| item.doc.id == doc.id).map(|item| item.doc.clone());
        match self.random.u8(..10) {
            0..5 => Request::Insert(doc),
            5..9 => {
                let doc = same.filter(|_| self.random.u8(..6) == 0).unwrap_or(doc);
                Request::Change { doc, parts: self.random.bool(), upsert: self.random.u8(..3) == 0 }
            }
            _ => Request::Delete(doc.id),
        }
    }

    fn doc(&mut self, model: &Model) -> Doc {
        Doc {
            id: self.random.i32(0..IDS),
            ttl: self.ttl(),
            dates: [self.dates(model), self.dates(model)],
            tag: self.random.bool(),
            number: self.random.i32(0..4),
        }
    }

    fn ttl(&mut self) -> Ttl {
        const ODD: [IgnoredTtl; 6] = [
            IgnoredTtl::Fraction,
            IgnoredTtl::TooLarge,
            IgnoredTtl::Text,
            IgnoredTtl::Zero,
            IgnoredTtl::Negative,
            IgnoredTtl::Null,
        ];
        match self.random.u8(..10) {
            0..5 => Ttl::Absent,
            5 => Ttl::Never,
            6 => Ttl::Ignored(ODD[self.random.usize(..ODD.len())]),
            _ => {
                let bson_form =
                    [NumberType::Int32, NumberType::Int64, NumberType::Double][self.random.usize(..3)];
                Ttl::After(self.random.i64(1..8), bson_form)
            }
        }
    }

    /// Returns a date around now: most are a little later, some in the past, some before the first write.
    fn date(&mut self, model: &Model) -> i64 {
        let now = model.now_ms.cast_signed();
        match self.random.u8(..10) {
            0..6 => now + self.random.i64(1..12_000),
            6 => now,
            7..9 => now - self.random.i64(1..20_000),
            _ => -self.random.i64(1..1_000_000),
        }
    }

    fn dates(&mut self, model: &Model) -> Dates {
        match self.random.u8(..10) {
            0..4 => Dates::Missing,
            4 => Dates::NoDate,
            5..9 => Dates::One(self.date(model)),
            _ => Dates::Several((0..self.random.usize(1..4)).map(|_| self.date(model)).collect()),
        }
    }

    fn default(&mut self) -> Default {
        match self.random.u8(..6) {
            0..2 => Default::Off,
            2 => Default::Never,
            _ => Default::After(self.random.i64(1..9)),
        }
    }

    fn rule(&mut self) -> Rule {
        let seconds = match self.random.u8(..4) {
            0..2 => 0,
            2 => self.random.i64(1..10),
            _ => self.random.i64(10..30),
        };
        let (partial, hidden) = (self.random.u8(..3) == 0, self.random.u8(..4) == 0);
        Rule { seconds, partial, hidden, in_force: true }
    }

    /// Returns a step that adds, changes or drops a rule.
    fn rule_step(&mut self, model: &Model, name: &'static str) -> Step {
        let field = self.random.usize(..FIELDS);
        let rule = self.rule();
        match model.collections[name].rules[field] {
            None => {
                // Some give much time, so that a change can take it back.
                let seconds = if self.random.bool() { self.random.i64(10..30) } else { rule.seconds };
                let rule = Rule { seconds, ..rule };
                let meanwhile = (0..self.random.usize(..5)).map(|_| self.write(model, name)).collect();
                // A build in a held collection goes on as any other; its writes would be refused.
                let meanwhile = if model.collections[name].hold { Vec::new() } else { meanwhile };
                Step::AddRule { name, field, rule, consent: self.consent(), meanwhile }
            }
            Some(_) if self.random.u8(..3) == 0 => self.request(name, Request::DropRule(field)),
            // The documents that the rule is for stay the same: others would be another index.
            Some(before) => {
                let (rule, consent) = (Rule { partial: before.partial, ..rule }, self.consent());
                self.request(name, Request::ChangeRule(field, rule, consent))
            }
        }
    }

    fn hold(&mut self, model: &Model, name: &'static str) -> Step {
        let living = model.living(name);
        let held: Vec<i32> = living.iter().filter(|item| item.held).map(|item| item.doc.id).collect();
        if !held.is_empty() && self.random.u8(..3) != 0 {
            let id = held[self.random.usize(..held.len())];
            return self.request(name, Request::LiftItem(id));
        }
        let id = self.random.i32(0..IDS);
        self.request(name, Request::HoldItem(id))
    }

    /// Returns how long to wait: to a deadline, to a millisecond before one, or any time.
    fn wait_ms(&mut self, model: &Model) -> u64 {
        let items = model.collections.values().flat_map(|it| it.items.iter().map(move |item| (it, item)));
        let deadlines = items.filter_map(|(collection, item)| collection.deadline_ms(item));
        let waits: Vec<u64> = deadlines.filter_map(|deadline| deadline.checked_sub(model.now_ms)).collect();
        let waits: Vec<u64> = waits.into_iter().filter(|wait| (1..60_000).contains(wait)).collect();
        match self.random.u8(..10) {
            0..5 if !waits.is_empty() => waits[self.random.usize(..waits.len())],
            5..7 if !waits.is_empty() => waits[self.random.usize(..waits.len())] - 1,
            0..8 => self.random.u64(1..2000),
            _ => self.random.u64(1..12_000),
        }
    }
}
