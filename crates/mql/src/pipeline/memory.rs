//! A bound on what a stage keeps. Nothing is ever spilled to disk: a stage that needs more is refused by name.

use crate::context::Context;
use crate::error::{Code, Error, Result};

/// What one stage keeps.
#[derive(Debug)]
pub(crate) struct Memory {
    stage: &'static str,
    code: Code,
    used: usize,
}

impl Memory {
    pub(crate) fn of(stage: &'static str) -> Memory {
        Memory::with_code(stage, Code::QUERY_EXCEEDED_MEMORY_LIMIT)
    }

    /// For stages whose refusal has a code of its own.
    pub(crate) fn with_code(stage: &'static str, code: Code) -> Memory {
        Memory { stage, code, used: 0 }
    }

    pub(crate) fn take(&mut self, bytes: usize, context: &Context) -> Result<()> {
        self.used = self.used.saturating_add(bytes);
        if self.used > context.stage_bytes_max {
            let message = format!(
                "Exceeded memory limit for {}: it may keep {} bytes, and nothing is spilled to disk",
                self.stage, context.stage_bytes_max
            );
            return Err(Error::new(self.code, message));
        }
        Ok(())
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }
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
}
