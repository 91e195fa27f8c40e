//! Any text, read as a document and as everything else that is text.

#![no_main]

use bolide_fuzz::{Language, json, mutate};

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { json(data) });

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Language::Json, data, size, max_size, seed)
});
