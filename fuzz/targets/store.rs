//! Any damage to the entries of a store.

#![no_main]

use bolide_fuzz::store;

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { store(data) });
