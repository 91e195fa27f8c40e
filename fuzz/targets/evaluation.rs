//! Any query over any few items.

#![no_main]

use bolide_fuzz::{Language, evaluation, mutate};

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { evaluation(data) });

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Language::Sql, data, size, max_size, seed)
});
