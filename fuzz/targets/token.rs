//! Any bytes, read as a token from which a query or a feed continues.

#![no_main]

use bolide_fuzz::token;

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { token(data) });
