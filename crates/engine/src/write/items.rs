//! The operations of the NoSQL API on one item: the checks before the transaction, and the work of each inside it.

use std::sync::Arc;

use document::{Document, PartitionKey, ValueRef, check_item_id};
use query::Context;
use storage::Transaction;

use super::container_schema::{ContainerContext, ContainerSchema};
use super::context::Deleted;
use super::operation::Operation;
use super::schema::Draft;
use crate::access::gate::Gate;
use crate::access::outcome::{Effect, Outcome, read_outcome};
use crate::access::renewal;
use crate::catalog::container::Container;
use crate::catalog::home::{home_of_body, home_of_key, is_at_home};
use crate::definition::OwnTtl;
use crate::definition::patch::Patch;
use crate::entries::counters;
use crate::entries::traces::Home;
use crate::entries::writes::Writes;
use crate::expiry::header::Record;
use crate::expiry::item::{Item, SYSTEM_PROPERTIES, id_of};
use crate::feed::history::Manner;
use crate::index::ExtractedTerms;
use crate::types::charge::Charge;
use crate::types::error::{Error, Result};
use crate::types::limits::{self, PATCH_CONDITION_STEPS_MAX};
use crate::types::lsn::RangeLsn;
use crate::types::request::{ItemName, Precondition};

type ItemDraft = Draft<ContainerSchema>;

/// An operation that has passed every check that needs no state.
pub(super) struct Prepared {
    pub(super) home: Arc<Home>,
    pub(super) action: Action,
}

/// What it does, with what was worked out before.
pub(super) enum Action {
    Create(ItemDraft),
    Upsert(ItemDraft, Precondition),
    Replace(ItemName, ItemDraft, Precondition),
    /// A replacement that cannot be: with this error if there is an item to replace.
    Refuse(ItemName, Error),
    Patch(ItemName, Patch, Precondition),
    Delete(ItemName, Precondition),
    Read(ItemName, Precondition),
}

impl Prepared {
    /// Prepares everything that needs no state.
    pub(super) fn new(
        container: &Container,
        key: Option<PartitionKey>,
        operation: Operation,
    ) -> Result<Prepared> {
        let (home, action) = match operation {
            Operation::Create { body } => {
                let (home, draft) = prepare_body(container, key, &body)?;
                (home, Action::Create(draft))
            }
            Operation::Upsert { body, precondition } => {
                let (home, draft) = prepare_body(container, key, &body)?;
                (home, Action::Upsert(draft, precondition))
            }
            Operation::Replace { name, body, precondition } => {
                match prepare_body(container, key.clone(), &body) {
                    Ok((home, draft)) => (home, Action::Replace(name, draft, precondition)),
                    Err(mismatch @ Error::KeyMismatch { .. }) => {
                        (home_of_key(container, key)?, Action::Refuse(name, mismatch))
                    }
                    Err(error) => return Err(error),
                }
            }
            Operation::Patch { name, patch, precondition } => {
                patch.check_paths(&container.definition.partition_key)?;
                (home_of_key(container, key)?, Action::Patch(name, patch, precondition))
            }
            Operation::Delete { name, precondition } => {
                (home_of_key(container, key)?, Action::Delete(name, precondition))
            }
            Operation::Read { name, precondition } => {
                (home_of_key(container, key)?, Action::Read(name, precondition))
            }
        };
        Ok(Prepared { home: Arc::new(home), action })
    }
}

/// Checks a body: a valid id, a valid ttl, within limits; without system properties.
fn check_body(body: &Document) -> Result<ItemDraft> {
    let Some(root) = body.root().as_object() else {
        return Err(Error::invalid("The item must be a JSON object."));
    };
    let id = match root.get("id") {
        Some(id) => id.as_str().ok_or_else(|| Error::invalid("The item's 'id' must be a string."))?,
        None => return Err(Error::invalid("The item has no 'id'; a non-empty string is required.")),
    };
    check_item_id(id)?;
    let ttl = OwnTtl::of(root).map_err(|invalid| Error::InvalidTtl { text: invalid.text })?;
    let body = body.without(&SYSTEM_PROPERTIES);
    let size = body.as_bytes().len();
    if size > limits::ITEM_BYTES_MAX {
        return Err(Error::TooLarge { what: "the item", actual: size, limit: limits::ITEM_BYTES_MAX });
    }
    Ok(Draft { body, ttl, extracted: ExtractedTerms::default() })
}

/// Returns the draft of a body with its index terms, extracted before the transaction, and the logical partition that it
/// is for.
fn prepare_body(
    container: &Container,
    key: Option<PartitionKey>,
    body: &Document,
) -> Result<(Home, ItemDraft)> {
    let home = home_of_body(container, key, body)?;
    let mut draft = check_body(body)?;
    draft.extracted = container.partition_of(&home.effective).extract_terms(&draft.body);
    Ok((home, draft))
}

impl Action {
    /// Runs the operation inside the transaction.
    pub(super) fn apply(
        self,
        tx: &mut Transaction<'_>,
        (context, home): (&ContainerContext, &Home),
        writes: &mut Writes,
    ) -> Result<Outcome> {
        let mut run = RunningOperation { context, home, writes };
        match self {
            Action::Create(draft) => run.create(tx, draft),
            Action::Upsert(draft, precondition) => run.upsert(tx, draft, &precondition),
            Action::Replace(name, draft, precondition) => {
                let old = run.living(tx, &name)?;
                run.replace(tx, &old, draft, &precondition)
            }
            Action::Refuse(name, error) => run.living(tx, &name).and(Err(error)),
            Action::Patch(name, patch, precondition) => run.patch(tx, &name, &patch, &precondition),
            Action::Delete(name, precondition) => run.delete(tx, &name, &precondition),
            Action::Read(name, precondition) => run.read(tx, &name, &precondition),
        }
    }
}

/// One operation inside its transaction.
struct RunningOperation<'a> {
    context: &'a ContainerContext,
    home: &'a Home,
    writes: &'a mut Writes,
}

impl RunningOperation<'_> {
    fn create(&mut self, tx: &mut Transaction<'_>, draft: ItemDraft) -> Result<Outcome> {
        let (record, charge) = self.context.insert(tx, self.writes, draft)?;
        Ok(self.written(Effect::Created, record, charge))
    }

    fn upsert(
        &mut self,
        tx: &mut Transaction<'_>,
        draft: ItemDraft,
        precondition: &Precondition,
    ) -> Result<Outcome> {
        let id = draft.body.get("id").and_then(ValueRef::as_str).unwrap_or_default();
        match self.at_id(tx, id)? {
            Some(old) => self.replace(tx, &old, draft, precondition),
            // Conditions are on a version that is replaced, as in the service. Where there is none, an upsert creates.
            None => self.create(tx, draft),
        }
    }

    fn replace(
        &mut self,
        tx: &mut Transaction<'_>,
        old: &Record,
        draft: ItemDraft,
        precondition: &Precondition,
    ) -> Result<Outcome> {
        check(old, precondition)?;
        let (record, charge) = self.context.replace(tx, self.writes, old, draft, Manner::Whole)?;
        Ok(self.written(Effect::Replaced, record, charge))
    }

    fn patch(
        &mut self,
        tx: &mut Transaction<'_>,
        name: &ItemName,
        patch: &Patch,
        precondition: &Precondition,
    ) -> Result<Outcome> {
        let old = self.living(tx, name)?;
        check(&old, precondition)?;
        let item = Item::new(self.context.schema.container.rid, old.clone());
        if let Some(condition) = &patch.condition {
            let context = Context::new(tx.time().millis(), 1).with_budget(PATCH_CONDITION_STEPS_MAX);
            let holds = condition.matches(&item, &context);
            // A condition that could not be evaluated is an error, not a condition that does not hold.
            if let Some(fault) = context.fault() {
                return Err(fault.into());
            }
            if !holds {
                return Err(Error::PreconditionFailed {
                    what: format!("item '{name}' (condition of the patch)"),
                });
            }
        }
        let body = patch.apply(&old.body.to_value())?;
        let draft = check_body(&Document::from_value(&body)?)?;
        self.replace(tx, &old, draft, &Precondition::None)
    }

    fn delete(
        &mut self,
        tx: &mut Transaction<'_>,
        name: &ItemName,
        precondition: &Precondition,
    ) -> Result<Outcome> {
        let old = self.living(tx, name)?;
        check(&old, precondition)?;
        let Deleted { write, charge, .. } = self.context.delete(tx, self.writes, &old)?;
        let range = self.range_at(write.lsn);
        Ok(Outcome { effect: Effect::Deleted, item: None, charge, range, seconds_left: None, renewal: None })
    }

    fn read(
        &self,
        tx: &mut Transaction<'_>,
        name: &ItemName,
        precondition: &Precondition,
    ) -> Result<Outcome> {
        let mut record = self.living(tx, name)?;
        let Gate { partition, policy, now } = &self.context.gate;
        renewal::restart(tx, &self.context.gate, &mut record)?;
        let seconds_left = policy.seconds_left(&record.header, *now);
        let item = Item::new(self.context.schema.container.rid, record);
        let lsn = counters::lsn(tx, *partition)?.unwrap_or_default();
        let outcome = read_outcome(item, precondition, self.range_at(lsn))?;
        Ok(Outcome { seconds_left, ..outcome })
    }

    /// Returns the living item under a name, in this logical partition.
    fn living(&self, tx: &Transaction<'_>, name: &ItemName) -> Result<Record> {
        let found = match name {
            ItemName::Id(id) => self.at_id(tx, id)?,
            ItemName::Number(number) => self
                .context
                .gate
                .by_number(tx, *number)
                .map_err(|error| error.at_item(format_args!("item '{name}'")))?
                .living()
                .filter(|record| is_at_home(self.home, &self.context.schema.container, record)),
        };
        found.ok_or_else(|| Error::no_item(name))
    }

    /// Returns the living item of an id in this logical partition.
    fn at_id(&self, tx: &Transaction<'_>, id: &str) -> Result<Option<Record>> {
        let found = self.context.gate.by_id_key(tx, &self.home.id_key(id));
        Ok(found.map_err(|error| error.at_item(format_args!("item '{id}'")))?.living())
    }

    fn written(&self, effect: Effect, record: Record, charge: Charge) -> Outcome {
        let Gate { policy, now, .. } = &self.context.gate;
        let seconds_left = policy.seconds_left(&record.header, *now);
        let range = self.range_at(record.header.lsn);
        let item = Some(Item::new(self.context.schema.container.rid, record));
        Outcome { effect, item, charge, range, seconds_left, renewal: None }
    }

    /// Returns the range that it runs in, at an LSN.
    fn range_at(&self, lsn: u64) -> RangeLsn {
        RangeLsn { range: self.context.schema.partition.index, lsn }
    }
}

fn check(old: &Record, precondition: &Precondition) -> Result<()> {
    let etag = document::Etag::new(old.header.sequence, old.header.ts);
    precondition.check(&etag, format_args!("item '{}'", id_of(old)))
}
