//! Any bytes, read as BSON and as Extended JSON.

#![no_main]

use bolide_fuzz::{Language, bson, mutate};

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { bson(data) });

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Language::Json, data, size, max_size, seed)
});
