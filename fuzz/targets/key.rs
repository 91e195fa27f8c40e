//! Any bytes, read as ordered keys.

#![no_main]

use bolide_fuzz::key;

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { key(data) });
