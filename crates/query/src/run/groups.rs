//! `GROUP BY`, and aggregates over everything.

use std::collections::BTreeMap;

use document::{Value, encode_key};

use super::output::OutputRow;
use super::smallest::Smallest;
use super::window::Window;
use crate::evaluate::aggregate::Accumulator;
use crate::evaluate::{Environment, evaluate};
use crate::functions::context::{Context, Fault};
use crate::logical::{Order, Query};
use crate::row::Operand;

/// The bytes that the map of groups takes for one of them, besides its keys.
const GROUP_BYTES: usize = 256;

/// Rows with their keys, in order.
pub(super) type Rows = std::collections::btree_map::IntoIter<Vec<u8>, Option<Vec<u8>>>;

/// The groups of a page.
#[derive(Debug)]
pub(super) struct Groups {
    groups: Smallest<Group>,
    /// Whether the groups are shown by their own keys; otherwise all of them are needed before the first is shown.
    by_key: bool,
}

#[derive(Debug)]
struct Group {
    keys: Vec<Option<Value>>,
    accumulators: Vec<Accumulator>,
}

impl Group {
    /// Returns the values that `select` and `order` see of it: the keys, then the results.
    fn values(self) -> Vec<Option<Value>> {
        self.keys.into_iter().chain(self.accumulators.into_iter().map(Accumulator::finish)).collect()
    }
}

impl Groups {
    pub(super) fn new(query: &Query, window: &Window, context: &Context) -> Groups {
        let by_key = matches!(query.order, Order::None) && !query.distinct;
        let wanted = if by_key { window.wanted() } else { usize::MAX };
        Groups { groups: Smallest::new(wanted, context.memory()), by_key }
    }

    /// Adds a row to its group.
    pub(super) fn add(&mut self, row: &OutputRow<'_>, after: Option<&[u8]>) -> Result<(), Fault> {
        let OutputRow { query, environment, context, .. } = *row;
        let values: Vec<_> = query.group_by.iter().map(|key| evaluate(key, environment, context)).collect();
        let mut key = Vec::new();
        for value in &values {
            encode_key(value.as_ref().map(Operand::view), &mut key);
        }
        if self.by_key && after.is_some_and(|after| key.as_slice() <= after) {
            return Ok(());
        }
        if self.groups.get_mut(&key).is_none() {
            if !self.groups.admits(&key) {
                return self.refuse(context);
            }
            let keys = values.into_iter().map(|value| value.map(Operand::into_value)).collect();
            let accumulators =
                query.aggregates.iter().map(|aggregate| Accumulator::new(aggregate.kind)).collect();
            let bytes = key.len() + GROUP_BYTES + query.aggregates.len() * size_of::<Accumulator>();
            self.groups.insert(key.clone(), Group { keys, accumulators }, bytes)?;
        }
        let Some(group) = self.groups.get_mut(&key) else { return self.refuse(context) };
        let mut grown = 0;
        for (accumulator, aggregate) in group.accumulators.iter_mut().zip(&query.aggregates) {
            let value = evaluate(&aggregate.argument, environment, context);
            grown += accumulator.add(value.as_ref().map(Operand::view), context);
        }
        if grown > 0 { self.groups.grew(&key, grown) } else { Ok(()) }
    }

    /// Refuses a group that does not fit. It will be on a later page, unless all groups are needed at once.
    fn refuse(&self, context: &Context) -> Result<(), Fault> {
        if self.by_key {
            return Ok(());
        }
        Err(context.out_of_allowance("the groups"))
    }

    /// Returns the groups' rows behind `after`, in the query's order, and whether there are more.
    pub(super) fn into_rows(
        self,
        query: &Query,
        context: &Context,
        after: Option<&[u8]>,
    ) -> Result<(Rows, bool), Fault> {
        let by_key = self.by_key;
        let (groups, more) = self.groups.into_parts();
        if more && !by_key {
            return Err(context.out_of_allowance("the groups"));
        }
        // Of equal rows the first in the order is shown.
        let mut distinct = BTreeMap::<Vec<u8>, (Vec<u8>, _)>::new();
        for (group_key, group) in groups {
            let values = group.values();
            let environment = Environment::empty();
            let environment = environment.with_group(query.group_slot, &values);
            let row = OutputRow { query, item: None, environment: &environment, context };
            let identity = query.distinct.then(|| row.key()).flatten().unwrap_or(group_key);
            let order = row.order_values();
            match distinct.get_mut(&identity) {
                Some((known, _)) => *known = order.min(std::mem::take(known)),
                None => {
                    distinct.insert(identity, (order, row.json()));
                }
            }
        }
        let rows: BTreeMap<Vec<u8>, Option<Vec<u8>>> = distinct
            .into_iter()
            .map(|(identity, (order, json))| ([order, identity].concat(), json))
            .filter(|(key, _)| after.is_none_or(|after| key.as_slice() > after))
            .collect();
        if let Some(fault) = context.fault() {
            return Err(fault);
        }
        Ok((rows.into_iter(), more))
    }
}

/// Returns the one row of aggregates over everything; `None` if its value is undefined.
pub(super) fn total(
    query: &Query,
    context: &Context,
    accumulators: Vec<Accumulator>,
) -> Result<Option<Vec<u8>>, Fault> {
    let values = Group { keys: Vec::new(), accumulators }.values();
    let environment = Environment::empty();
    let environment = environment.with_group(query.group_slot, &values);
    let json = OutputRow { query, item: None, environment: &environment, context }.json();
    context.fault().map_or(Ok(json), Err)
}
