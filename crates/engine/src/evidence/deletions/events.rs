//! The events of a deletion record: that it was opened, under which rules, what was purged, and how it ended.

use document::Path;
use storage::{Read, Transaction};

use super::log::Head;
use crate::catalog::collection_indexes::index_names;
use crate::catalog::container::Api;
use crate::catalog::load_policy;
use crate::catalog::owner::Owner;
use crate::definition::DefaultTtl;
use crate::entries::counters;
use crate::evidence::expiry_record::{ExpiryRecord, json_text};
use crate::expiry::{Lifecycle, Millis, Policy};
use crate::keys::PartitionId;
use crate::types::error::{Error, Result};

/// Opens the record, because the owner wants one from now on. An earlier record is continued.
pub(crate) fn opened(
    tx: &mut Transaction<'_>,
    owner: &Owner,
    position: usize,
    policy: &Policy,
) -> Result<()> {
    let partition = owner.partitions()[position].id;
    let (database, container) = (owner.database().to_owned(), owner.name().to_owned());
    let api = match owner.api() {
        Api::NoSql => "nosql",
        Api::MongoDb => "mongodb",
    };
    let mut head = match Head::load(tx, partition)? {
        Some(head) => Head { is_open: true, database, container, ..head },
        None => Head { count: 0, rules: 0, hash: [0; 32], is_open: true, database, container },
    };
    head.rules = head.count + 1;
    let members = format!(
        r#","api":"{api}","database":{},"container":{},"partition":{position},"rules":{}"#,
        json_text(&head.database),
        json_text(&head.container),
        rules(tx, partition, policy)?
    );
    head.append(tx, partition, "opened", &members);
    Ok(())
}

/// Records that an item was purged.
pub(crate) fn purged(
    tx: &mut Transaction<'_>,
    partition: PartitionId,
    expiry_record: &ExpiryRecord,
) -> Result<()> {
    let mut head = open_head(tx, partition)?;
    let members = format!(r#",{},"under":{}"#, expiry_record.members, head.rules);
    head.append(tx, partition, "purged", &members);
    Ok(())
}

/// Records what a change of policy means for the deletion record. [`opened`], which knows the names, records its
/// start.
pub(crate) fn follow(
    tx: &mut Transaction<'_>,
    partition: PartitionId,
    before: &Policy,
    after: &Policy,
) -> Result<()> {
    let is_same = before.default_ttl == after.default_ttl
        && before.lifecycle.hold == after.lifecycle.hold
        && ttl_modes(&before.lifecycle) == ttl_modes(&after.lifecycle)
        && dates_in_force(before) == dates_in_force(after);
    match (before.lifecycle.deletion_record, after.lifecycle.deletion_record) {
        (true, true) if !is_same => {
            let mut head = open_head(tx, partition)?;
            head.rules = head.count + 1;
            let members = format!(r#","rules":{}"#, rules(tx, partition, after)?);
            head.append(tx, partition, "rules", &members);
        }
        (true, false) => {
            let mut head = open_head(tx, partition)?;
            head.is_open = false;
            head.append(tx, partition, "closed", "");
        }
        (true, true) | (false, _) => {}
    }
    Ok(())
}

/// Records that the collection has another name from now on.
pub(crate) fn renamed(
    tx: &mut Transaction<'_>,
    partition: PartitionId,
    database: &str,
    container: &str,
) -> Result<()> {
    let Some(head) = Head::load(tx, partition)? else { return Ok(()) };
    let mut head = Head { database: database.to_owned(), container: container.to_owned(), ..head };
    let members = format!(r#","database":{},"container":{}"#, json_text(database), json_text(container));
    head.append(tx, partition, "renamed", &members);
    Ok(())
}

/// Records that the container is dropped, with everything that was in it.
pub(crate) fn dropped(tx: &mut Transaction<'_>, partition: PartitionId) -> Result<()> {
    if !load_policy(tx, partition)?.lifecycle.deletion_record {
        return Ok(());
    }
    let mut head = open_head(tx, partition)?;
    head.is_open = false;
    let members = format!(r#","items":{}"#, counters::total(tx, partition)?.items);
    head.append(tx, partition, "dropped", &members);
    Ok(())
}

fn open_head(tx: &Transaction<'_>, partition: PartitionId) -> Result<Head> {
    let head = Head::load(tx, partition)?.filter(|head| head.is_open);
    head.ok_or_else(|| Error::Corrupt(format!("partition {} has no deletion record", partition.0)))
}

/// Returns the indexes by whose dates items expire, and how long after them.
fn dates_in_force(policy: &Policy) -> Vec<(u32, Millis)> {
    let of_indexes = policy.rules.iter().filter(|rule| rule.is_of_an_index());
    of_indexes.filter_map(|rule| Some((rule.id, rule.delay_ms?))).collect()
}

/// Returns the TTL modes other than "since the last write" (T33), as JSON members; empty if there are none.
fn ttl_modes(settings: &Lifecycle) -> String {
    let path = |name, path: &Option<Path>| {
        path.as_ref().map(|path| format!(r#","{name}":{}"#, json_text(path.as_str())))
    };
    let members = [
        path("ttlPropertyPath", &settings.ttl_property_path),
        path("expireAtPath", &settings.expire_at_path),
        settings.sliding.then(|| r#","sliding":true"#.to_owned()),
    ];
    members.into_iter().flatten().collect()
}

/// Returns the rules in force, as JSON.
fn rules(reader: &dyn Read, partition: PartitionId, policy: &Policy) -> Result<String> {
    let default_ttl = match policy.default_ttl {
        DefaultTtl::Off => "null".to_owned(),
        DefaultTtl::Never => "-1".to_owned(),
        DefaultTtl::Seconds(seconds) => seconds.to_string(),
    };
    let in_force = dates_in_force(policy);
    let names = if in_force.is_empty() { Vec::new() } else { index_names(reader, partition)? };
    let name = |id: u32| names.iter().find(|(number, _)| *number == id).map(|(_, name)| json_text(name));
    let dates: Vec<String> = in_force
        .iter()
        .map(|(id, delay_ms)| {
            let index = name(*id).unwrap_or_else(|| "null".to_owned());
            format!(r#"{{"index":{index},"seconds":{}}}"#, delay_ms / 1000)
        })
        .collect();
    let hold = policy.lifecycle.hold.as_deref().map_or_else(|| "null".to_owned(), json_text);
    let (dates, ttl_modes) = (dates.join(","), ttl_modes(&policy.lifecycle));
    Ok(format!(r#"{{"defaultTtl":{default_ttl},"dateIndexes":[{dates}],"hold":{hold}{ttl_modes}}}"#))
}
