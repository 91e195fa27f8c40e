//! Requests of owners and operators: holds, settings, forecasts, and the purge on demand.

use engine::{Interval, ItemAddress, Owner, PurgeReport, Tally};

use super::evidence::directory;
use super::translate::{answer_of, container_answer, engine_consent, engine_default_ttl};
use super::{Purging, Reply, World};
use crate::body;
use crate::model::{Answer, Consent, DefaultTtl, Evidence, SettingChange};
use crate::operation::{CONTAINERS, KEYS};

const REASON: &str = "a case";

/// Items and bytes.
pub(crate) type Figures = (u64, u64);

/// A forecast as the engine made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenForecast {
    /// Expired and not purged.
    pub(crate) overdue: Figures,
    /// By interval.
    pub(crate) intervals: Vec<Figures>,
    /// Behind the last interval.
    pub(crate) later: Figures,
    /// Never.
    pub(crate) never: Figures,
    /// Whether no item is counted twice.
    pub(crate) exact: bool,
}

/// The stored settings of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenSettings {
    /// Whether the container is held.
    pub(crate) hold: bool,
    /// How long its feed of all versions is kept.
    pub(crate) feed: Option<u32>,
    /// Its `maxInstantExpiry`.
    pub(crate) guard: Option<u32>,
    /// Its TTL modes: by a property, by named instants, by reads.
    pub(crate) ttl_modes: (bool, bool, bool),
    /// Whether its expired items are archived, and recorded.
    pub(crate) evidence: Vec<Evidence>,
    /// The items that are held one by one.
    pub(crate) held: Vec<(usize, String)>,
}

impl World {
    /// Changes a setting.
    pub(crate) fn change_setting(
        &self,
        name: &'static str,
        change: SettingChange,
        consent: Consent,
    ) -> Reply {
        let changed = self.owner(name).and_then(|owner| {
            self.process().engine.change_lifecycle_with(&owner, engine_consent(consent), |lifecycle| {
                match change {
                    SettingChange::Feed(minutes) => lifecycle.history_minutes = minutes,
                    SettingChange::Hold(hold) => lifecycle.hold = hold.then(|| REASON.to_owned()),
                    SettingChange::Guard(share) => lifecycle.max_instant_expiry = share,
                    SettingChange::PurgeDelay(seconds) => lifecycle.max_purge_delay = seconds,
                    SettingChange::Evidence(Evidence::Archive, is_on) => {
                        lifecycle.archive = is_on.then(|| directory(name));
                    }
                    SettingChange::Absolute(absolute) => {
                        let path = || document::Path::parse("/gone").expect("a path");
                        lifecycle.expire_at_path = absolute.then(path);
                    }
                    SettingChange::Sliding(sliding) => lifecycle.sliding = sliding,
                    SettingChange::Evidence(Evidence::Record, is_on) => lifecycle.deletion_record = is_on,
                }
            })
        });
        match changed {
            Ok(_) => Reply::plain(Answer::Changed),
            Err(error) => Reply::plain(container_answer(&error)),
        }
    }

    /// Holds an item, or lifts its hold.
    pub(crate) fn hold_item(&self, name: &'static str, key: usize, id: &str, hold: bool) -> Reply {
        let owner = match self.owner(name) {
            Ok(owner) => owner,
            Err(error) => return Reply::plain(container_answer(&error)),
        };
        let item = ItemAddress::Id(body::partition_key(name, key), id.to_owned());
        let engine = &self.process().engine;
        let changed =
            if hold { engine.hold_item(&owner, &item, REASON) } else { engine.lift_item(&owner, &item) };
        match changed {
            Ok(()) => Reply::plain(Answer::Changed),
            Err(error) => Reply::plain(answer_of(&error)),
        }
    }

    /// Returns the settings of a container.
    pub(crate) fn lifecycle_settings(&self, name: &'static str) -> Result<SeenSettings, String> {
        let owner = self.owner(name).map_err(|error| error.to_string())?;
        let lifecycle = owner.lifecycle();
        let items = self.process().engine.held_items(&owner, None).map_err(|error| error.to_string())?;
        let mut held = Vec::new();
        for item in items {
            let ItemAddress::Id(key, id) = item.address else {
                return Err("a held item without partition key".to_owned());
            };
            let key = (0..KEYS)
                .find(|number| body::partition_key(name, *number) == key)
                .ok_or("a key of no container")?;
            held.push((key, id));
        }
        held.sort();
        Ok(SeenSettings {
            hold: lifecycle.hold.is_some(),
            feed: lifecycle.history_minutes,
            guard: lifecycle.max_instant_expiry,
            ttl_modes: (
                lifecycle.ttl_property_path.is_some(),
                lifecycle.expire_at_path.is_some(),
                lifecycle.sliding,
            ),
            evidence: lifecycle
                .archive
                .map(|_| Evidence::Archive)
                .into_iter()
                .chain(lifecycle.deletion_record.then_some(Evidence::Record))
                .collect(),
            held,
        })
    }

    /// Returns the number of living items, and of those that another `defaultTtl` would expire at once.
    pub(crate) fn dry_run(
        &self,
        name: &'static str,
        default_ttl: DefaultTtl,
    ) -> Result<(Figures, Figures), Answer> {
        let owner = self.owner(name).map_err(|error| container_answer(&error))?;
        let Some(default_ttl) = engine_default_ttl(default_ttl) else { return Err(Answer::BadTtl) };
        let run = self.process().engine.dry_run(&owner, default_ttl).map_err(|error| answer_of(&error))?;
        Ok((figures(run.living), figures(run.expiring.tally)))
    }

    /// Returns a forecast.
    pub(crate) fn forecast(
        &self,
        name: &'static str,
        interval: Interval,
        count: usize,
    ) -> Result<SeenForecast, String> {
        let owner = self.owner(name).map_err(|error| error.to_string())?;
        let forecast = self.process().engine.forecast(&owner, interval, count);
        let forecast = forecast.map_err(|error| error.to_string())?;
        Ok(SeenForecast {
            overdue: figures(forecast.overdue),
            intervals: forecast.intervals.into_iter().map(figures).collect(),
            later: figures(forecast.later),
            never: figures(forecast.never),
            exact: forecast.exact,
        })
    }

    /// Stops or restarts the purge.
    pub(crate) fn pause(&self, paused: bool) {
        self.process().engine.pause_purge(paused);
    }

    /// Runs the purge of one container, or of all, on demand.
    pub(crate) fn purge_now(
        &self,
        of: Option<&'static str>,
        limit: usize,
    ) -> Result<Option<PurgeReport>, String> {
        if self.purging == Purging::Off {
            return self.look().map(|_| None);
        }
        let owner = of.map(|name| self.owner(name)).transpose().map_err(|error| error.to_string())?;
        let report = self.process().engine.purge_at_once(owner.as_ref(), limit);
        report.map(Some).map_err(|error| error.to_string())
    }

    /// Returns how many expired items of each container wait for the purge, and for how long the oldest has.
    pub(crate) fn backlogs(&self) -> Vec<(&'static str, u64, Option<u64>)> {
        let figures = |name: &'static str| {
            let owner = self.owner(name).ok()?;
            let figures = self.process().engine.purge_figures(&owner).ok()?;
            Some((name, figures.backlog.items, figures.oldest_expiry.map(storage::Time::millis)))
        };
        CONTAINERS.into_iter().filter_map(figures).collect()
    }

    pub(super) fn owner(&self, name: &str) -> engine::Result<Owner> {
        self.current(name).map(Owner::Container)
    }
}

fn figures(tally: Tally) -> Figures {
    (tally.items, tally.bytes)
}
