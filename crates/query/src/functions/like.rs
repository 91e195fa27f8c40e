//! The patterns of `LIKE`: `%` any text, `_` any character, `[a-f]` one of, `[^a-f]` none of, and whatever follows
//! the escape character as itself.
//!
//! A pattern is a row of segments with `%` between them. The first must stand at the text's beginning, the last at
//! its end, and each between them is taken where it first occurs: taking it later never helps. So the matcher never
//! backtracks, and no pattern takes more than the product of its length and the text's.
//!
//! ```text
//!  ab%c_d%[xy]     first "ab"   between "c_d"   last "[xy]"
//! ```

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Like {
    prefix: String,
    first: Segment,
    /// The part after the first `%`, if there is one: the segments up to the last `%`, and the last segment.
    rest: Option<(Vec<Segment>, Segment)>,
}

/// Compiles a pattern; `None` if a bracket is not closed or the escape character is at the end.
pub(crate) fn compile(pattern: &str, escape: Option<char>) -> Option<Like> {
    let mut segments = Vec::new();
    let mut open = Vec::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            open.push(One::Is(characters.next()?));
            continue;
        }
        match character {
            '%' => segments.push(std::mem::take(&mut open)),
            '_' => open.push(One::Any),
            '[' => open.push(set(&mut characters, escape)?),
            _ => open.push(One::Is(character)),
        }
    }
    segments.push(open);
    let prefix = segments[0].iter().map_while(One::literal).collect();
    let mut segments = segments.into_iter().map(Segment::new);
    let first = segments.next()?;
    let last = segments.next_back();
    // Segments between two neighbouring `%` are empty and match anything.
    let rest = last.map(|last| (segments.filter(|segment| !segment.is_empty()).collect(), last));
    Some(Like { prefix, first, rest })
}

impl Like {
    /// Returns `true` if the whole text matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some(mut left) = self.first.at_start(text) else { return false };
        let Some((between, last)) = &self.rest else { return left.is_empty() };
        for segment in between {
            let Some(behind) = segment.anywhere(left) else { return false };
            left = behind;
        }
        last.at_end(left)
    }

    /// Returns the prefix of every text that matches.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the only text that matches, if there is just one.
    pub(crate) fn only(&self) -> Option<&str> {
        match (&self.first, &self.rest) {
            (Segment::Text(text), None) => Some(text),
            _ => None,
        }
    }

    /// Returns `true` if every text with the prefix matches.
    pub(crate) fn is_prefix_only(&self) -> bool {
        let prefix = matches!(self.first, Segment::Text(_));
        prefix && self.rest.as_ref().is_some_and(|(between, last)| between.is_empty() && last.is_empty())
    }

    /// Returns an upper bound of the steps that a match against that text takes.
    pub(crate) fn steps(&self, text: &str) -> u64 {
        let between = self.rest.as_ref().map_or(&[][..], |(between, _)| between);
        let longest = between.iter().map(Segment::tries).max().unwrap_or(1);
        (text.len() as u64).saturating_mul(longest as u64) / 64 + 1
    }
}

/// A part of a pattern in which no `%` occurs.
#[derive(Debug, Clone, PartialEq)]
enum Segment {
    Text(String),
    Shape(Vec<One>),
}

/// A matcher of exactly one character.
#[derive(Debug, Clone, PartialEq)]
enum One {
    Is(char),
    Any,
    /// Ranges of characters, both ends included, in order and without overlap.
    In(Vec<(char, char)>),
    NotIn(Vec<(char, char)>),
}

impl Segment {
    fn new(ones: Vec<One>) -> Segment {
        let text: Option<String> = ones.iter().map(One::literal).collect();
        text.map_or(Segment::Shape(ones), Segment::Text)
    }

    fn is_empty(&self) -> bool {
        matches!(self, Segment::Text(text) if text.is_empty())
    }

    /// Returns how often, at most, a character of the text is compared when the segment may be anywhere.
    fn tries(&self) -> usize {
        if let Segment::Shape(ones) = self { ones.len() } else { 1 }
    }

    /// Returns the rest of the text after the segment at its beginning.
    fn at_start<'a>(&self, text: &'a str) -> Option<&'a str> {
        match self {
            Segment::Text(wanted) => text.strip_prefix(wanted.as_str()),
            Segment::Shape(ones) => {
                let mut characters = text.chars();
                ones.iter().all(|one| characters.next().is_some_and(|found| one.fits(found))).then_some(())?;
                Some(characters.as_str())
            }
        }
    }

    fn at_end(&self, text: &str) -> bool {
        match self {
            Segment::Text(wanted) => text.ends_with(wanted.as_str()),
            Segment::Shape(ones) => {
                let mut characters = text.chars();
                ones.iter().rev().all(|one| characters.next_back().is_some_and(|found| one.fits(found)))
            }
        }
    }

    /// Returns the rest of the text after the first occurrence of the segment.
    fn anywhere<'a>(&self, text: &'a str) -> Option<&'a str> {
        match self {
            Segment::Text(wanted) => text.split_once(wanted.as_str()).map(|(_, behind)| behind),
            Segment::Shape(_) => text.char_indices().find_map(|(start, _)| self.at_start(&text[start..])),
        }
    }
}

impl One {
    fn literal(&self) -> Option<char> {
        if let One::Is(character) = self { Some(*character) } else { None }
    }

    fn fits(&self, character: char) -> bool {
        match self {
            One::Is(wanted) => *wanted == character,
            One::Any => true,
            One::In(ranges) => is_in(character, ranges),
            One::NotIn(ranges) => !is_in(character, ranges),
        }
    }
}

fn is_in(character: char, ranges: &[(char, char)]) -> bool {
    let behind = ranges.partition_point(|(low, _)| *low <= character);
    behind.checked_sub(1).is_some_and(|index| character <= ranges[index].1)
}

/// Reads a bracket from behind its `[` to its `]`. A `-` at either end is itself.
fn set(characters: &mut std::str::Chars<'_>, escape: Option<char>) -> Option<One> {
    let mut members: Vec<(char, Meaning)> = Vec::new();
    loop {
        let character = characters.next()?;
        if Some(character) == escape {
            members.push((characters.next()?, Meaning::Itself));
        } else if character == ']' {
            break;
        } else {
            members.push((character, Meaning::Open));
        }
    }
    let negated = members.first() == Some(&('^', Meaning::Open));
    let mut members = if negated { &members[1..] } else { &members[..] };
    let mut ranges = Vec::new();
    while let Some(((low, _), behind)) = members.split_first() {
        if let [('-', Meaning::Open), (high, _), behind @ ..] = behind {
            ranges.push((*low, *high));
            members = behind;
        } else {
            ranges.push((*low, *low));
            members = behind;
        }
    }
    Some(match (negated, merged(ranges)) {
        (true, ranges) => One::NotIn(ranges),
        (false, ranges) => match ranges[..] {
            [(low, high)] if low == high => One::Is(low),
            _ => One::In(ranges),
        },
    })
}

/// Whether a character of a bracket may be more than itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Itself,
    Open,
}

/// Returns the same ranges in order and without overlap; ranges whose ends are reversed are empty.
fn merged(mut ranges: Vec<(char, char)>) -> Vec<(char, char)> {
    ranges.retain(|(low, high)| low <= high);
    ranges.sort_unstable();
    let mut merged: Vec<(char, char)> = Vec::with_capacity(ranges.len());
    for (low, high) in ranges {
        match merged.last_mut() {
            Some(last) if low <= last.1 => last.1 = last.1.max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn like(text: &str, pattern: &str, escape: Option<char>) -> Option<bool> {
        compile(pattern, escape).map(|like| like.matches(text))
    }

    #[test]
    fn wildcards_brackets_and_escapes_mean_what_they_should() {
        let rows = [
            ("screwdriver set", "%driver%", None, Some(true)),
            ("fruit salad", "fruit%", None, Some(true)),
            ("a fruit", "fruit%", None, Some(false)),
            ("Touring Road", "%Road", None, Some(true)),
            ("SOAPS", "%SO_PS%", None, Some(true)),
            ("SOPS", "%SO_PS%", None, Some(false)),
            ("xSOuPS", "%SO[t-z]PS%", None, Some(true)),
            ("xSOaPS", "%SO[t-z]PS%", None, Some(false)),
            ("xSOdPS", "%SO[^abc]PS%", None, Some(true)),
            ("xSOaPS", "%SO[^abc]PS%", None, Some(false)),
            ("abc", "abc", None, Some(true)),
            ("abc", "ABC", None, Some(false)),
            ("abcd", "abc", None, Some(false)),
            ("", "", None, Some(true)),
            ("", "%", None, Some(true)),
            ("", "_", None, Some(false)),
            ("ab", "a%%%b", None, Some(true)),
            ("aab", "%ab", None, Some(true)),
            ("abab", "%ab%ab", None, Some(true)),
            ("ab", "%ab%ab", None, Some(false)),
            ("abcabd", "%ab_%bd", None, Some(true)),
            ("x😀y", "x_y", None, Some(true)),
            ("xéy", "x[à-ÿ]y", None, Some(true)),
            ("save 20% now", "%20^%%", Some('^'), Some(true)),
            ("save 200 now", "%20^%%", Some('^'), Some(false)),
            ("a!b", "a!!b", Some('!'), Some(true)),
            ("ab", "a!b", Some('!'), Some(true)),
            ("a", "a!", Some('!'), None),
            ("20-30%", "20-30[%]", None, Some(true)),
            ("20-30x", "20-30[%]", None, Some(false)),
            ("_n", "[_]n", None, Some(true)),
            ("[", "[[]", None, Some(true)),
            ("]", "]", None, Some(true)),
            ("]", "[!]]", Some('!'), Some(true)),
            ("-", "[-a]", None, Some(true)),
            ("-", "[a-]", None, Some(true)),
            ("b", "[a!-c]", Some('!'), Some(false)),
            ("^", "[!^a]", Some('!'), Some(true)),
            ("a^", "a[a^]", None, Some(true)),
            ("b", "[c-a]", None, Some(false)),
            ("a", "[]", None, Some(false)),
            ("a", "[^]", None, Some(true)),
            ("a", "[a", None, None),
        ];
        for (text, pattern, escape, expected) in rows {
            assert_eq!(like(text, pattern, escape), expected, "{text} LIKE {pattern} ESCAPE {escape:?}");
        }
    }

    #[test]
    fn the_prefix_is_what_an_index_can_look_for() {
        let rows = [
            ("abc%", "abc", true),
            ("%", "", true),
            ("abc", "abc", false),
            ("abc%d", "abc", false),
            ("abc%%", "abc", true),
            ("ab_%", "ab", false),
            ("a[b]c%", "abc", true),
            ("a[bc]%", "a", false),
            ("%abc", "", false),
            ("a!%b%", "a%b", true),
        ];
        for (pattern, prefix, only) in rows {
            let like = compile(pattern, Some('!')).unwrap();
            assert_eq!((like.prefix(), like.is_prefix_only()), (prefix, only), "{pattern}");
        }
    }

    #[test]
    fn hostile_patterns_end_soon() {
        let text = "a".repeat(100_000);
        assert_eq!(like(&text, &format!("{}b", "%a".repeat(10_000)), None), Some(false));
        assert_eq!(like(&text, &format!("{}%b", "%_".repeat(10_000)), None), Some(false));
        assert_eq!(like(&text, &format!("%{}[b]%", "[ab]".repeat(30)), None), Some(false));
        assert_eq!(like(&text, &"%".repeat(100_000), None), Some(true));
        assert_eq!(like("b", &format!("[{}]", "a-z".repeat(50_000)), None), Some(true));
        assert_eq!(compile("%[ab][ab]%", None).unwrap().steps(&text), 2 * 100_000 / 64 + 1);
    }

    /// Matches naively: correct, and exponential on hostile patterns.
    fn obvious(text: &[char], pattern: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|skipped| obvious(&text[skipped..], rest)),
            ['[', low, '-', high, ']', rest @ ..] => {
                text.first().is_some_and(|found| (low..=high).contains(&found)) && obvious(&text[1..], rest)
            }
            [one, rest @ ..] => {
                text.first().is_some_and(|found| *one == '_' || one == found) && obvious(&text[1..], rest)
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_obvious_matcher(text in "[abc]{0,10}", pattern in "(a|b|_|%|\\[a-b\\]){0,7}") {
            let characters = |text: &str| text.chars().collect::<Vec<char>>();
            let expected = obvious(&characters(&text), &characters(&pattern));
            prop_assert_eq!(like(&text, &pattern, None), Some(expected));
            let like = compile(&pattern, None).unwrap();
            prop_assert!(!expected || text.starts_with(like.prefix()));
            prop_assert!(!like.is_prefix_only() || expected == text.starts_with(like.prefix()));
        }

        #[test]
        fn no_pattern_panics(text in ".{0,20}", pattern in "[-\\[\\]^%_!a-c\u{e9}]{0,20}") {
            let _ = like(&text, &pattern, Some('!'));
        }
    }
}
