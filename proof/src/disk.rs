//! A disk at a power failure: the durable part of a recording, and the possible states of the rest.
//!
//! The rules: a file's bytes are durable once the file was synced; a name is durable once its directory was synced. POSIX
//! promises no more, and [`Loss::Strict`] gives no more. Journaling file systems give more: changes of names keep their
//! order, and any sync makes those before it durable. The other losses are of that kind, and differ in which unsynced bytes
//! are left.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fastrand::Rng;

use crate::recording::{Act, Event, FileId};

/// The unit that is written as a whole or not at all.
const PAGE: u64 = 4096;

/// The state of everything that was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Names and bytes that were not synced are gone.
    Strict,
    /// Names are there up to the last sync, bytes that were not synced are gone.
    Dropped,
    /// Bytes are there up to some write, and half of that one.
    Torn,
    /// Any page of what was not synced is there or not.
    Shuffled,
}

impl Loss {
    pub const ALL: [Loss; 4] = [Loss::Strict, Loss::Dropped, Loss::Torn, Loss::Shuffled];
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    File(FileId),
    Directory,
}

type Tree = HashMap<PathBuf, BTreeMap<OsString, Node>>;

/// Bytes, followed by as many zeros as there are to the length.
#[derive(Clone, Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    length: u64,
}

impl Content {
    fn resize(&mut self, length: u64) {
        self.length = length;
        self.bytes.truncate(length as usize);
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset as usize + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset as usize..end].copy_from_slice(bytes);
        self.length = self.length.max(end as u64);
    }
}

/// The disk as of some event of a recording.
#[derive(Default)]
pub struct Disk<'a> {
    /// Names as the process sees them, and as they are durable in the strict sense.
    seen: Tree,
    durable: Tree,
    synced: HashMap<FileId, Content>,
    /// Writes and changes of length since the file was synced, by the number of their event.
    pending: BTreeMap<usize, &'a Act>,
}

impl<'a> Disk<'a> {
    /// Applies the next event.
    pub fn happen(&mut self, number: usize, event: &'a Event) {
        match &event.act {
            Act::SyncFile(file) => {
                let content = self.synced.entry(*file).or_default();
                self.pending.retain(|_, act| match act {
                    Act::Write(of, offset, bytes) if of == file => {
                        content.write(*offset, bytes);
                        false
                    }
                    Act::Resize(of, length) if of == file => {
                        content.resize(*length);
                        false
                    }
                    _ => true,
                });
            }
            Act::SyncDirectory(directory) => {
                let names = self.seen.get(directory).cloned().unwrap_or_default();
                self.durable.insert(directory.clone(), names);
            }
            act @ (Act::Write(..) | Act::Resize(..)) => drop(self.pending.insert(number, act)),
            act => rename(&mut self.seen, act),
        }
    }

    /// Fills `to` with the state of `root` after a power failure now. `later` are the events that come before the next
    /// sync: some of them may have reached the disk.
    pub fn lose_power(
        &self,
        loss: Loss,
        later: &'a [Event],
        first: usize,
        root: &Path,
        to: &Path,
        random: &mut Rng,
    ) -> Result<()> {
        let mut pending = self.pending.clone();
        let mut seen = self.seen.clone();
        // Names change in order: up to this event, and no further.
        let reached = match loss {
            Loss::Strict | Loss::Dropped => 0,
            Loss::Torn | Loss::Shuffled => random.usize(..=later.len()),
        };
        for (at, event) in later.iter().enumerate() {
            match &event.act {
                act @ (Act::Write(..) | Act::Resize(..)) => drop(pending.insert(first + at, act)),
                act if at < reached => rename(&mut seen, act),
                _ => {}
            }
        }
        let mut contents = self.synced.clone();
        apply(&mut contents, &pending, loss, first + reached, random);
        let tree = if loss == Loss::Strict { &self.durable } else { &seen };
        let there = |path: &Path| {
            let names = tree.get(path.parent()?)?;
            names.get(path.file_name()?).cloned()
        };
        if there(root).is_some() {
            materialize(tree, &contents, root, to)?;
        }
        Ok(())
    }
}

/// Applies the writes that were not synced to the contents, as far as the loss keeps them.
fn apply(
    contents: &mut HashMap<FileId, Content>,
    pending: &BTreeMap<usize, &Act>,
    loss: Loss,
    names_until: usize,
    random: &mut Rng,
) {
    let writes = pending.values().filter(|act| matches!(act, Act::Write(..))).count();
    let torn = random.usize(..=writes);
    // A page that reached the disk has everything that was written to it until then, and nothing written later.
    let mut pages: HashMap<(FileId, u64), usize> = HashMap::new();
    let mut number = 0;
    for (at, act) in pending {
        match act {
            // The length of a file is metadata, as names are.
            Act::Resize(file, length) if loss != Loss::Strict && *at < names_until => {
                contents.entry(*file).or_default().resize(*length);
            }
            Act::Write(file, offset, bytes) => {
                number += 1;
                let content = contents.entry(*file).or_default();
                match loss {
                    Loss::Strict | Loss::Dropped => {}
                    Loss::Torn if number <= torn => content.write(*offset, bytes),
                    Loss::Torn if number == torn + 1 => {
                        content.write(*offset, &bytes[..random.usize(..=bytes.len())]);
                    }
                    Loss::Torn => {}
                    Loss::Shuffled => {
                        for (page, from, until) in pages_of(*offset, bytes.len() as u64) {
                            let reached =
                                pages.entry((*file, page)).or_insert_with(|| random.usize(..=2 * writes));
                            if number <= *reached {
                                let piece = (from - offset) as usize..(until - offset) as usize;
                                content.write(from, &bytes[piece]);
                            }
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns the pages that a write touches, and from where to where.
fn pages_of(offset: u64, length: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let end = offset + length;
    (offset / PAGE..end.div_ceil(PAGE))
        .map(move |page| (page, offset.max(page * PAGE), end.min((page + 1) * PAGE)))
}

/// Applies a change of names.
fn rename(tree: &mut Tree, act: &Act) {
    let mut put = |path: &Path, node: Option<Node>| {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return None };
        let names = tree.entry(parent.to_owned()).or_default();
        match node {
            Some(node) => names.insert(name.to_owned(), node),
            None => names.remove(name),
        }
    };
    match act {
        Act::MakeDirectory(path) => drop(put(path, Some(Node::Directory))),
        Act::Create(path, file) => drop(put(path, Some(Node::File(*file)))),
        Act::Remove(path) => drop(put(path, None)),
        Act::Rename(from, to) => {
            let node = put(from, None);
            put(to, node);
        }
        Act::Resize(..) | Act::Write(..) | Act::SyncFile(_) | Act::SyncDirectory(_) => {}
    }
}

fn materialize(tree: &Tree, contents: &HashMap<FileId, Content>, from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let Some(names) = tree.get(from) else { return Ok(()) };
    for (name, node) in names {
        match node {
            Node::Directory => materialize(tree, contents, &from.join(name), &to.join(name))?,
            Node::File(file) => {
                let made = File::create(to.join(name))?;
                if let Some(content) = contents.get(file) {
                    let written =
                        content.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                    made.write_all_at(&content.bytes[..written], 0)?;
                    made.set_len(content.length)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes and syncs `root/a`, and the directory if told to; then writes bytes that are not synced.
    fn left(loss: Loss, directory_synced: bool) -> Option<Vec<u8>> {
        let root = Path::new("/p/root");
        let mut acts = vec![
            Act::MakeDirectory(root.to_owned()),
            Act::SyncDirectory(PathBuf::from("/p")),
            Act::Create(root.join("a"), 0),
            Act::Write(0, 0, vec![1; 4]),
        ];
        if directory_synced {
            acts.push(Act::SyncDirectory(root.to_owned()));
        }
        acts.extend([Act::SyncFile(0), Act::Write(0, 4, vec![2; 4])]);
        let events: Vec<Event> = acts.into_iter().map(|act| Event { at: 0.0, act }).collect();
        let mut disk = Disk::default();
        let until = events.len() - 1;
        for (number, event) in events[..until].iter().enumerate() {
            disk.happen(number, event);
        }
        let to = std::env::temp_dir()
            .join(format!("bolide-proof-disk-{}-{loss:?}{directory_synced}", std::process::id()));
        disk.lose_power(loss, &events[until..], until, root, &to, &mut Rng::with_seed(3)).unwrap();
        let found = std::fs::read(to.join("a")).ok();
        let _ = std::fs::remove_dir_all(to);
        found
    }

    #[test]
    fn what_was_synced_is_there_and_what_was_not_may_be() {
        assert_eq!(left(Loss::Strict, true), Some(vec![1; 4]));
        assert_eq!(left(Loss::Strict, false), None, "its name was not synced");
        assert_eq!(left(Loss::Dropped, false), Some(vec![1; 4]));
        let torn = left(Loss::Torn, true).unwrap();
        assert!(torn.len() < 9 && torn.starts_with(&[1; 4]));
        let shuffled = left(Loss::Shuffled, true).unwrap();
        assert!(shuffled == [1; 4] || shuffled == [1, 1, 1, 1, 2, 2, 2, 2]);
    }
}
