//! The common parts of the targets: the check of each, and the language of its inputs.
//!
//! The check of an input is beside the corpus of its crate, in `tests/corpus/cases.rs`.

mod mutation;

#[path = "../../crates/bson/tests/corpus/cases.rs"]
mod bson_cases;
#[path = "../../crates/document/tests/corpus/cases.rs"]
mod document_cases;
#[path = "../../crates/engine/tests/corpus/cases.rs"]
mod engine_cases;
#[path = "../../crates/hybridrow/tests/corpus/cases.rs"]
mod hybridrow_cases;
#[path = "../../crates/mongo/tests/corpus/cases.rs"]
mod mongo_cases;
#[path = "../../crates/mql/tests/corpus/cases.rs"]
mod mql_cases;
#[path = "../../crates/nosql/tests/corpus/cases.rs"]
mod nosql_cases;
#[path = "../../crates/query/tests/corpus/cases.rs"]
mod query_cases;
#[path = "../../crates/rntbd/tests/corpus/cases.rs"]
mod rntbd_cases;
#[path = "../../crates/nosql/tests/it/signature.rs"]
mod signature;
#[path = "../../crates/storage/tests/corpus/cases.rs"]
mod storage_cases;

use libfuzzer_sys::Corpus;

pub use mutation::{Language, mutate};

/// The longest input with a regular expression. Every crate is instrumented, so longer and longer patterns look like
/// progress, although they only explore the library that compiles them.
const PATTERN_INPUT_BYTES: usize = 400;

/// Checks one input of the target `syntax`.
pub fn syntax(data: &[u8]) -> Corpus {
    checked(data, query_cases::check_syntax)
}

/// Checks one input of the target `evaluation`.
pub fn evaluation(data: &[u8]) -> Corpus {
    checked(data, query_cases::check_evaluation)
}

/// Checks one input of the target `bson`.
pub fn bson(data: &[u8]) -> Corpus {
    bson_cases::check_bson(data);
    Corpus::Keep
}

/// Checks one input of the target `message`.
pub fn message(data: &[u8]) -> Corpus {
    mongo_cases::check_message(data);
    Corpus::Keep
}

/// Checks one input of the target `scram`.
pub fn scram(data: &[u8]) -> Corpus {
    mongo_cases::check_scram(data);
    Corpus::Keep
}

/// Checks one input of the target `resume`.
pub fn resume(data: &[u8]) -> Corpus {
    mongo_cases::check_resume(data);
    Corpus::Keep
}

/// Checks one input of the target `filter`.
pub fn filter(data: &[u8]) -> Corpus {
    checked(data, mql_cases::check_filter)
}

/// Checks one input of the target `update`.
pub fn update(data: &[u8]) -> Corpus {
    checked(data, mql_cases::check_update)
}

/// Checks one input of the target `pipeline`.
pub fn pipeline(data: &[u8]) -> Corpus {
    checked(data, mql_cases::check_pipeline)
}

/// Checks one input of the target `json`.
pub fn json(data: &[u8]) -> Corpus {
    document_cases::check_json(data);
    Corpus::Keep
}

/// Checks one input of the target `binary`.
pub fn binary(data: &[u8]) -> Corpus {
    document_cases::check_binary(data);
    Corpus::Keep
}

/// Checks one input of the target `key`.
pub fn key(data: &[u8]) -> Corpus {
    document_cases::check_key(data);
    Corpus::Keep
}

/// Checks one input of the target `backup`.
pub fn backup(data: &[u8]) -> Corpus {
    storage_cases::check_backup(data);
    Corpus::Keep
}

/// Checks one input of the target `recovery`.
pub fn recovery(data: &[u8]) -> Corpus {
    storage_cases::check_recovery(data);
    Corpus::Keep
}

/// Checks one input of the target `store`.
pub fn store(data: &[u8]) -> Corpus {
    engine_cases::check_store(data);
    Corpus::Keep
}

/// Checks one input of the target `token`.
pub fn token(data: &[u8]) -> Corpus {
    engine_cases::check_token(data);
    Corpus::Keep
}

/// Checks one input of the target `request`.
pub fn request(data: &[u8]) -> Corpus {
    checked(data, nosql_cases::check_request)
}

/// Checks one input of the target `rntbd`.
pub fn rntbd(data: &[u8]) -> Corpus {
    rntbd_cases::check_rntbd(data);
    Corpus::Keep
}

/// Checks one input of the target `hybridrow`.
pub fn hybridrow(data: &[u8]) -> Corpus {
    hybridrow_cases::check_hybridrow(data);
    Corpus::Keep
}

fn checked(data: &[u8], check: fn(&[u8])) -> Corpus {
    let has_pattern = || data.windows(5).any(|word| word.eq_ignore_ascii_case(b"REGEX"));
    if data.len() > PATTERN_INPUT_BYTES && has_pattern() {
        return Corpus::Reject;
    }
    check(data);
    Corpus::Keep
}
