//! Any frames, read as a backup.

#![no_main]

use bolide_fuzz::backup;

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { backup(data) });
