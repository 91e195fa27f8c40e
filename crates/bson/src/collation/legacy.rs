//! Sort keys of strings in stores made before format 9: one order for all languages.
//!
//! Keys on disk are in this order, so a collection or an index that was created with it keeps it; newer ones have the order
//! of Unicode's collation algorithm.
//!
//! ```text
//! key        primary weights, 00 [, secondary weights, 00] [, case weights, 00]
//! primary    08..2F     white space and the signs of ASCII, one byte each
//!            31 c c c   other signs, by code point
//!            32..3B     digits 0 to 9        (numeric ordering: 32, u32 count of digits, digits)
//!            40..59     a to z
//!            5A c c c   other letters, by code point
//! secondary  02 a letter, 04 c c c a combining mark
//! case       02 lower or none, 03 a compatibility form of that, 08 upper, 09 a compatibility form
//! ```
//!
//! Every weight ends by itself and none begins with 00, so a string that ends sorts before one that goes on.

use std::cmp::Ordering;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

use super::options::Options;

/// Signs of ASCII in their order, after white space.
const SIGNS: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
const SPACES: &str = "\t\n\u{b}\u{c}\r ";
const SPACE_FIRST: u8 = 0x08;
const OTHER_SIGN: u8 = 0x31;
const DIGIT_FIRST: u8 = 0x32;
const LETTER_FIRST: u8 = 0x40;
const OTHER_LETTER: u8 = 0x5A;
const LEVEL_END: u8 = 0x00;
const BASE: u8 = 0x02;
const MARK: u8 = 0x04;
const LOWER: u8 = 0x02;
const UPPER: u8 = 0x08;
const COMPATIBILITY: u8 = 0x01;

/// The weight of a character without a primary weight.
const NONE: u8 = 0;
/// The primary weights of ASCII.
const ASCII: [u8; 128] = ascii_weights();

const fn ascii_weights() -> [u8; 128] {
    let mut weights = [NONE; 128];
    let (spaces, signs) = (SPACES.as_bytes(), SIGNS.as_bytes());
    let mut at = 0;
    while at < spaces.len() + signs.len() {
        let char = if at < spaces.len() { spaces[at] } else { signs[at - spaces.len()] };
        weights[char as usize] = SPACE_FIRST + at as u8;
        at += 1;
    }
    let mut at = 0;
    while at < 26 {
        weights[(b'a' + at) as usize] = LETTER_FIRST + at;
        weights[(b'A' + at) as usize] = LETTER_FIRST + at;
        if at < 10 {
            weights[(b'0' + at) as usize] = DIGIT_FIRST + at;
        }
        at += 1;
    }
    weights
}

/// Compares two strings.
pub(super) fn compare(options: &Options, left: &str, right: &str) -> Ordering {
    if let Some(order) = compare_ascii(options, left, right) {
        return order;
    }
    let (mut left_key, mut right_key) = (Vec::new(), Vec::new());
    sort_key(options, left, &mut left_key);
    sort_key(options, right, &mut right_key);
    left_key.cmp(&right_key)
}

/// Compares ASCII strings without building keys.
fn compare_ascii(options: &Options, left: &str, right: &str) -> Option<Ordering> {
    if left == right {
        return Some(Ordering::Equal);
    }
    if options.numeric_ordering || !left.is_ascii() || !right.is_ascii() {
        return None;
    }
    let primary = |byte: u8| Some(ASCII[usize::from(byte)]).filter(|weight| *weight != NONE);
    let order = left.bytes().filter_map(primary).cmp(right.bytes().filter_map(primary));
    if order.is_ne() || options.strength < 3 && !options.case_level {
        return Some(order);
    }
    let case = |byte: u8| primary(byte).map(|_| byte.is_ascii_uppercase());
    Some(left.bytes().filter_map(case).cmp(right.bytes().filter_map(case)))
}

/// Appends the sort key of a string.
pub(super) fn sort_key(options: &Options, text: &str, out: &mut Vec<u8>) {
    let mut key = Levels::new(options);
    if text.is_ascii() {
        text.chars().for_each(|char| key.base(char, 0));
    } else {
        // Character by character, so that each keeps whether it was a compatibility form; marks are put in order after.
        for char in ordered(text) {
            key.character(char);
        }
    }
    key.end_number();
    key.finish(options, out);
}

/// Returns the text with all marks apart from their letters, in canonical order, compatibility forms kept.
fn ordered(text: &str) -> impl Iterator<Item = char> + '_ {
    text.nfd()
}

struct Levels {
    numeric: bool,
    /// Digits of a number that has not ended yet, without leading zeros; `None` outside of a number.
    number: Option<Vec<u8>>,
    primary: Vec<u8>,
    secondary: Vec<u8>,
    case: Vec<u8>,
}

impl Levels {
    fn new(options: &Options) -> Levels {
        Levels {
            numeric: options.numeric_ordering,
            number: None,
            primary: Vec::new(),
            secondary: Vec::new(),
            case: Vec::new(),
        }
    }

    fn character(&mut self, char: char) {
        if is_combining_mark(char) || canonical_combining_class(char) != 0 {
            self.mark(char);
            return;
        }
        let mut folded = std::iter::once(char).nfkd().peekable();
        let compatibility = if folded.peek() == Some(&char) { 0 } else { COMPATIBILITY };
        for part in folded {
            match expansion(part) {
                Some(letters) => {
                    letters.chars().for_each(|letter| self.base(letter, COMPATIBILITY));
                    // Distinguished from the plain letters as if by a diacritic.
                    self.mark(part);
                }
                None if is_combining_mark(part) => self.mark(part),
                None => self.base(part, compatibility),
            }
        }
    }

    fn mark(&mut self, mark: char) {
        // Lower and upper form of one sign are one mark; case has its own level.
        let mark = mark.to_lowercase().next().unwrap_or(mark);
        self.end_number();
        self.secondary.push(MARK);
        self.secondary.extend_from_slice(&code_point(mark));
    }

    fn base(&mut self, char: char, compatibility: u8) {
        if let Some(digit) = char.to_digit(10).filter(|_| self.numeric) {
            let digits = self.number.get_or_insert_default();
            if digit != 0 || !digits.is_empty() {
                digits.push(digit as u8);
            }
            return;
        }
        self.end_number();
        if !self.weigh(char) {
            return;
        }
        self.secondary.push(BASE);
        let case = if char.is_uppercase() { UPPER } else { LOWER };
        self.case.push(case | compatibility);
    }

    /// Appends the primary weight; control characters have none and are ignored.
    fn weigh(&mut self, char: char) -> bool {
        if char.is_ascii() {
            let weight = ASCII[char as usize];
            self.primary.extend((weight != NONE).then_some(weight));
            return weight != NONE;
        }
        if char.is_control() {
            return false;
        }
        if !char.is_alphabetic() {
            self.primary.push(OTHER_SIGN);
            self.primary.extend_from_slice(&code_point(char));
            return true;
        }
        for letter in lower(char) {
            self.primary.push(OTHER_LETTER);
            self.primary.extend_from_slice(&code_point(letter));
        }
        true
    }

    fn end_number(&mut self) {
        let Some(digits) = self.number.take() else { return };
        self.primary.push(DIGIT_FIRST);
        self.primary.extend_from_slice(&(digits.len() as u32).to_be_bytes());
        self.primary.extend(digits);
        self.secondary.push(BASE);
        self.case.push(LOWER);
    }

    fn finish(self, options: &Options, out: &mut Vec<u8>) {
        out.extend(self.primary);
        out.push(LEVEL_END);
        if options.strength >= 2 {
            out.extend(self.secondary);
            out.push(LEVEL_END);
        }
        if options.strength >= 3 {
            out.extend(self.case);
            out.push(LEVEL_END);
        } else if options.case_level {
            // This level only distinguishes upper case.
            out.extend(self.case.into_iter().map(|case| case & !COMPATIBILITY));
            out.push(LEVEL_END);
        }
    }
}

/// Returns the lower case of a letter; the Greek final sigma is a sigma.
fn lower(letter: char) -> impl Iterator<Item = char> {
    letter.to_lowercase().map(|letter| if letter == 'ς' { 'σ' } else { letter })
}

/// Letters that are others with a stroke or grown together, which the decomposition of Unicode leaves whole.
fn expansion(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ß' => "ss",
        'ẞ' => "SS",
        'æ' => "ae",
        'Æ' => "AE",
        'œ' => "oe",
        'Œ' => "OE",
        'ø' => "o",
        'Ø' => "O",
        'đ' => "d",
        'Đ' => "D",
        'ħ' => "h",
        'Ħ' => "H",
        'ł' => "l",
        'Ł' => "L",
        'ŧ' => "t",
        'Ŧ' => "T",
        'ı' => "i",
        _ => return None,
    })
}

fn code_point(char: char) -> [u8; 3] {
    let [_, high, middle, low] = (char as u32).to_be_bytes();
    [high, middle, low]
}
