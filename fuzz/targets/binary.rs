//! Any bytes, read as binary JSON and as a stored document.

#![no_main]

use bolide_fuzz::binary;

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { binary(data) });
