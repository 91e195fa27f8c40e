//! Any pipeline over any few documents.

#![no_main]

use bolide_fuzz::{Language, mutate, pipeline};

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { pipeline(data) });

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Language::Json, data, size, max_size, seed)
});
