//! Any bytes, read as one message of the wire protocol.

#![no_main]

use bolide_fuzz::message;

libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus { message(data) });
