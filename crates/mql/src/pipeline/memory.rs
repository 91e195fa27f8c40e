//! A bound on the memory of a stage. `$sort` and `$group` move the excess to disk, where that is allowed; every other stage
//! fails with an error that names it.

use std::sync::Arc;

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::scratch::Scratch;

/// What happens to a stage that needs more memory than it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiskUse {
    /// It uses the disk, if it can.
    #[default]
    Allowed,
    /// It fails: `allowDiskUse: false`.
    Declined,
}

/// The memory of one stage.
#[derive(Debug)]
pub(crate) struct Memory {
    stage: &'static str,
    code: Code,
    used: usize,
    /// `None` for a stage that never uses the disk.
    disk_use: Option<DiskUse>,
    /// The part of a stage's memory that this is: one in so many.
    share: usize,
}

impl Memory {
    pub(crate) fn of(stage: &'static str) -> Memory {
        Memory::with_code(stage, Code::QUERY_EXCEEDED_MEMORY_LIMIT)
    }

    /// Returns the memory of a stage whose error has a code of its own.
    pub(crate) fn with_code(stage: &'static str, code: Code) -> Memory {
        Memory { stage, code, used: 0, disk_use: None, share: 1 }
    }

    /// Returns the memory of a stage that uses the disk beyond it.
    pub(crate) fn spilling(stage: &'static str, disk_use: DiskUse) -> Memory {
        Memory { disk_use: Some(disk_use), ..Memory::of(stage) }
    }

    /// Returns the memory of one half of a stage.
    pub(crate) fn half(self) -> Memory {
        Memory { share: self.share * 2, ..self }
    }

    pub(crate) fn take(&mut self, bytes: usize, context: &Context) -> Result<()> {
        if self.fits(bytes, context) {
            self.used += bytes;
            return Ok(());
        }
        let may = self.bound(context);
        let why = match self.disk_use {
            None => "; it does not use the disk",
            Some(DiskUse::Declined) => {
                ", and did not opt in to use the disk; pass allowDiskUse:true to opt in"
            }
            Some(DiskUse::Allowed) if context.scratch.is_none() => {
                ", and this server keeps nothing on disk to spill to"
            }
            Some(DiskUse::Allowed) => " beside what it has on disk",
        };
        let message =
            format!("Exceeded memory limit for {}: it may keep {may} bytes in memory{why}", self.stage);
        Err(Error::new(self.code, message))
    }

    pub(crate) fn fits(&self, bytes: usize, context: &Context) -> bool {
        self.used.saturating_add(bytes) <= self.bound(context)
    }

    /// Returns `true` if half of the memory would still be free.
    pub(crate) fn fits_half(&self, bytes: usize, context: &Context) -> bool {
        self.used.saturating_add(bytes) <= self.bound(context) / 2
    }

    /// Returns `true` if the excess may go to disk.
    pub(crate) fn may_spill(&self, context: &Context) -> bool {
        self.disk_use == Some(DiskUse::Allowed) && context.scratch.is_some()
    }

    /// Returns the scratch files; called only if [`Memory::may_spill`].
    pub(crate) fn scratch<'a>(&self, context: &'a Context) -> Result<&'a Arc<dyn Scratch>> {
        let none = || Error::new(self.code, format!("{} has no place to spill to", self.stage));
        context.scratch.as_ref().ok_or_else(none)
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Returns the remaining part of the memory taken, where so many of all rows remain.
    pub(crate) fn left(&self, rows: usize, all: usize) -> usize {
        left(self.used, rows, all)
    }

    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }

    fn bound(&self, context: &Context) -> usize {
        context.stage_bytes_max / self.share
    }
}

/// Returns the remaining part of so many bytes, where so many of all rows remain.
pub(crate) fn left(bytes: usize, rows: usize, all: usize) -> usize {
    let share = bytes as u128 * rows as u128 / all.max(1) as u128;
    usize::try_from(share).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_keeps_too_much_is_refused_by_name() {
        let mut memory = Memory::of("$group");
        let context = Context::at(0).with_stage_bytes_max(1000);
        assert_eq!(memory.take(1000, &context), Ok(()));
        memory.give_back(1);
        assert_eq!(memory.take(1, &context), Ok(()));
        let error = memory.take(1, &context).expect_err("over the bound");
        assert_eq!(error.code, Code::QUERY_EXCEEDED_MEMORY_LIMIT);
        assert!(error.message.contains("$group"));
    }

    #[test]
    fn the_refusal_says_what_would_be_accepted() {
        let context = Context::at(0).with_stage_bytes_max(1000);
        for (memory, said) in [
            (Memory::of("$facet"), "does not use the disk"),
            (Memory::spilling("$sort", DiskUse::Declined), "pass allowDiskUse:true"),
            (Memory::spilling("$sort", DiskUse::Allowed), "keeps nothing on disk"),
        ] {
            let mut memory = memory;
            let error = memory.take(1001, &context).expect_err("over the bound");
            assert!(error.message.contains(said), "{}", error.message);
        }
    }
}
