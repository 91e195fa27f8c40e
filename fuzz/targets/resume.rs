//! Any text, read as the digits of a resume token.

#![no_main]

use bolide_fuzz::resume;

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { resume(data) });
