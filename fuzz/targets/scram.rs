//! Any bytes, read as the two messages by which a client proves its identity.

#![no_main]

use bolide_fuzz::scram;

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { scram(data) });
