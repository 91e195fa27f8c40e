//! Any bytes, read as a connection in direct mode.

#![no_main]

use bolide_fuzz::rntbd;

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { rntbd(data) });
