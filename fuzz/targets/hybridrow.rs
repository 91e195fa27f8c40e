//! Any bytes, read as the operations or results of a batch.

#![no_main]

use bolide_fuzz::hybridrow;

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { hybridrow(data) });
