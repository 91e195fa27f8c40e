//! Any update of any few documents, and as an upsert.

#![no_main]

use bolide_fuzz::{Language, mutate, update};

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { update(data) });

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Language::Json, data, size, max_size, seed)
});
