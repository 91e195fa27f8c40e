//! Any text, read as a query and as the condition of a patch.

#![no_main]

use bolide_fuzz::{Language, mutate, syntax};

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { syntax(data) });

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Language::Sql, data, size, max_size, seed)
});
