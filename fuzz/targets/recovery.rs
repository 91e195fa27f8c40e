//! Any damage to the files of a stopped store.
//!
//! The library below the store asserts in its recovery what damage makes false. The store catches that, so a panic is no
//! finding here unless it comes as far as this file.

#![no_main]

use bolide_fuzz::recovery;

libfuzzer_sys::fuzz_target!(
    init: std::panic::set_hook(Box::new(|_| {})),
    |data: &[u8]| -> libfuzzer_sys::Corpus { recovery(data) }
);
