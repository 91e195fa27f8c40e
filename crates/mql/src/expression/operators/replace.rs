//! `$replaceOne`, `$replaceAll`, and the trims: strings with something else in them, or less at their ends.

use bson::{Value, ValueRef};

use crate::error::{Error, Result};
use crate::expression::operand::{Budget, is_nullish, text, type_name};
use crate::expression::table::{Call, Group, Names, Refusal, named, optional, required};

pub(crate) const GROUP: Group = Group {
    foldable: true,
    operators: &[
        named("$replaceOne", &REPLACE_ONE, replace_one),
        named("$replaceAll", &REPLACE_ALL, replace_all),
        named("$trim", &TRIM, |call| trim(call, true, true)),
        named("$ltrim", &LTRIM, |call| trim(call, true, false)),
        named("$rtrim", &RTRIM, |call| trim(call, false, true)),
    ],
};

const REPLACE_ONE: Names = Names {
    parameters: &[
        required("input", 51749, "$replaceOne requires 'input' to be specified"),
        required("find", 51748, "$replaceOne requires 'find' to be specified"),
        required("replacement", 51747, "$replaceOne requires 'replacement' to be specified"),
    ],
    not_a_document: Refusal(51751, "$replaceOne requires an object as an argument, found: {}"),
    unknown: Refusal(51750, "$replaceOne found an unknown argument: {}"),
};

const REPLACE_ALL: Names = Names {
    parameters: &[
        required("input", 51749, "$replaceAll requires 'input' to be specified"),
        required("find", 51748, "$replaceAll requires 'find' to be specified"),
        required("replacement", 51747, "$replaceAll requires 'replacement' to be specified"),
    ],
    not_a_document: Refusal(51751, "$replaceAll requires an object as an argument, found: {}"),
    unknown: Refusal(51750, "$replaceAll found an unknown argument: {}"),
};

const TRIM: Names = Names {
    parameters: &[required("input", 50695, "$trim requires an 'input' field"), optional("chars")],
    not_a_document: Refusal(50696, "$trim only supports an object as an argument, found {}"),
    unknown: Refusal(50694, "$trim found an unknown argument: {}"),
};

const LTRIM: Names = Names {
    parameters: &[required("input", 50695, "$ltrim requires an 'input' field"), optional("chars")],
    not_a_document: Refusal(50696, "$ltrim only supports an object as an argument, found {}"),
    unknown: Refusal(50694, "$ltrim found an unknown argument: {}"),
};

const RTRIM: Names = Names {
    parameters: &[required("input", 50695, "$rtrim requires an 'input' field"), optional("chars")],
    not_a_document: Refusal(50696, "$rtrim only supports an object as an argument, found {}"),
    unknown: Refusal(50694, "$rtrim found an unknown argument: {}"),
};

/// Returns the three strings, or nothing if one of them is null.
fn parts<'a>(call: &Call<'a>) -> Result<Option<[&'a str; 3]>> {
    let mut parts = [""; 3];
    let mut null = false;
    for (at, (name, code)) in
        [("input", 51746), ("find", 51745), ("replacement", 51744)].into_iter().enumerate()
    {
        match call.get(at) {
            Some(ValueRef::String(text)) => parts[at] = text,
            value if is_nullish(value) => null = true,
            value => {
                let message =
                    format!("{} requires that '{name}' be a string, found: {}", call.name, text(value));
                return Err(Error::location(code, message));
            }
        }
    }
    Ok((!null).then_some(parts))
}

fn replace_one(call: &Call<'_>) -> Result<Option<Value>> {
    let Some([input, find, replacement]) = parts(call)? else { return Ok(Some(Value::Null)) };
    Ok(Some(Value::String(input.replacen(find, replacement, 1))))
}

fn replace_all(call: &Call<'_>) -> Result<Option<Value>> {
    let Some([input, find, replacement]) = parts(call)? else { return Ok(Some(Value::Null)) };
    let count = input.matches(find).count();
    // The growth is charged before the result is built.
    let growth = replacement.len().saturating_sub(find.len()).saturating_mul(count);
    Budget::new(call.context).bytes(input.len().saturating_add(growth))?;
    Ok(Some(Value::String(input.replace(find, replacement))))
}

/// The characters that are trimmed by default: the spaces of Unicode as they were when this was defined, and zero bytes.
fn is_space(letter: char) -> bool {
    matches!(letter, '\0' | '\t'..='\r' | ' ' | '\u{A0}' | '\u{1680}' | '\u{2000}'..='\u{200A}')
}

fn trim(call: &Call<'_>, left: bool, right: bool) -> Result<Option<Value>> {
    if is_nullish(call.get(0)) || (call.is_given(1) && is_nullish(call.get(1))) {
        return Ok(Some(Value::Null));
    }
    let string = |at: usize, code: i32, what: &str| {
        call.get(at).and_then(ValueRef::as_str).ok_or_else(|| {
            let (name, value, found) = (call.name, text(call.get(at)), type_name(call.get(at)));
            let message =
                format!("{name} requires {what} to be a string, got {value} (of type {found}) instead.");
            Error::location(code, message)
        })
    };
    let mut trimmed = string(0, 50699, "its input")?;
    let mut letters: Option<Vec<char>> = None;
    if call.is_given(1) {
        letters = Some(string(1, 50700, "'chars'")?.chars().collect());
    }
    if let Some(letters) = &mut letters {
        letters.sort_unstable();
    }
    let goes = |letter: char| match &letters {
        Some(letters) => letters.binary_search(&letter).is_ok(),
        None => is_space(letter),
    };
    if left {
        trimmed = trimmed.trim_start_matches(goes);
    }
    if right {
        trimmed = trimmed.trim_end_matches(goes);
    }
    Ok(Some(Value::from(trimmed)))
}
