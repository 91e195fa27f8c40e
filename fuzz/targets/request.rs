//! Any few requests to a small server.

#![no_main]

use bolide_fuzz::{Language, mutate, request};

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { request(data) });

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Language::Requests, data, size, max_size, seed)
});
