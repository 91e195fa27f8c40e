//! Any bytes, taken for the place where a walk goes on.

#![no_main]

use bolide_fuzz::token;

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { token(data) });
