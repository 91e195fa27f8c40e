//! Any damage to the files of a stopped store.
//!
//! The library below the store has assertions in its recovery that damage violates. The store catches those panics, so one
//! is no finding here unless it reaches this file.

#![no_main]

use bolide_fuzz::recovery;

libfuzzer_sys::fuzz_target!(
    init: std::panic::set_hook(Box::new(|_| {})),
    |data: &[u8]| -> libfuzzer_sys::Corpus { recovery(data) }
);
