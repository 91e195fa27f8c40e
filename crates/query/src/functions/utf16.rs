//! Positions in texts. The language counts UTF-16 units, as JavaScript and .NET do; texts here are UTF-8.
//!
//! A character beyond the basic plane is two units, and a position may fall between them. A cut that leaves half a
//! character puts U+FFFD in its place. Plain ASCII, by far the most frequent, needs no walk.

/// Returns how many units a text has.
pub(crate) fn length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// Returns the units from `start` on, at most `count` of them.
pub(crate) fn slice(text: &str, start: usize, count: usize) -> String {
    let end = start.saturating_add(count);
    if text.is_ascii() {
        return text[start.min(text.len())..end.min(text.len())].to_owned();
    }
    let mut out = String::new();
    let mut at = 0;
    for character in text.chars() {
        if at >= end || count == 0 {
            break;
        }
        let next = at + character.len_utf16();
        if next > start {
            let whole = at >= start && next <= end;
            out.push(if whole { character } else { char::REPLACEMENT_CHARACTER });
        }
        at = next;
    }
    out
}

/// Returns the byte at which the first character stands that begins at this unit or later; the text's end if none does.
pub(crate) fn byte_from(text: &str, unit: usize) -> usize {
    if text.is_ascii() {
        return unit.min(text.len());
    }
    let mut at = 0;
    for (byte, character) in text.char_indices() {
        if at >= unit {
            return byte;
        }
        at += character.len_utf16();
    }
    text.len()
}

/// Returns the byte behind the last character that ends at this unit or earlier.
pub(crate) fn byte_until(text: &str, unit: usize) -> usize {
    if text.is_ascii() {
        return unit.min(text.len());
    }
    let mut at = 0;
    for (byte, character) in text.char_indices() {
        at += character.len_utf16();
        if at > unit {
            return byte;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a`, a pair of two units, `é`, `z`: units 0, 1-2, 3, 4.
    const TEXT: &str = "a😀éz";

    #[test]
    fn units_are_counted_and_cut_as_in_utf16() {
        assert_eq!(length(""), 0);
        assert_eq!(length("abc"), 3);
        assert_eq!(length(TEXT), 5);
        for start in 0..7 {
            for count in 0..7 {
                let units: Vec<u16> = TEXT.encode_utf16().skip(start).take(count).collect();
                assert_eq!(slice(TEXT, start, count), String::from_utf16_lossy(&units), "{start} {count}");
            }
        }
        assert_eq!(slice("abc", 1, usize::MAX), "bc");
        assert_eq!(slice("abc", 9, 9), "");
    }

    #[test]
    fn a_position_inside_a_pair_moves_away_from_what_is_kept() {
        assert_eq!((0..6).map(|unit| byte_from(TEXT, unit)).collect::<Vec<_>>(), [0, 1, 5, 5, 7, 8]);
        assert_eq!((0..6).map(|unit| byte_until(TEXT, unit)).collect::<Vec<_>>(), [0, 1, 1, 5, 7, 8]);
        assert_eq!((byte_from("ab", 9), byte_until("ab", 9)), (2, 2));
    }
}
