//! English words without their endings, after Porter's algorithm.
//!
//! A word is a sequence of consonants and vowels, `[C](VC)^m[V]`; `m` measures how much is left of a word, and an ending is
//! only taken off where enough is left.

/// What is longer is no word: looking for its parts would take long for nothing.
const LETTERS_MAX: usize = 64;

/// The stem of a word in lower case. Long words and words with other letters than a to z stay as they are.
pub(super) fn stem(word: &str) -> String {
    let word = word.strip_suffix("'s").or_else(|| word.strip_suffix('\'')).unwrap_or(word);
    if word.len() <= 2 || word.len() > LETTERS_MAX || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut word = Word(word.to_owned());
    word.plurals();
    word.past_and_progressive();
    word.final_y();
    word.replace_long(STEP_TWO);
    word.replace_long(STEP_THREE);
    word.drop_endings();
    word.tidy();
    word.0
}

/// Endings that become others where something is left before them.
const STEP_TWO: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];
const STEP_THREE: &[(&str, &str)] = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];
/// Endings that go where more than one part is left, the longer before the shorter of the same end.
const STEP_FOUR: &[&str] = &[
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
];

struct Word(String);

impl Word {
    fn is_consonant(&self, at: usize) -> bool {
        let bytes = self.0.as_bytes();
        match bytes[at] {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => at == 0 || !self.is_consonant_before_y(at),
            _ => true,
        }
    }

    /// Whether the letter before a `y` is a consonant. Runs of `y` alternate, which a loop settles without recursion.
    fn is_consonant_before_y(&self, at: usize) -> bool {
        let bytes = self.0.as_bytes();
        let run = bytes[..at].iter().rev().take_while(|byte| **byte == b'y').count();
        let begin = at - run;
        let base =
            if begin == 0 { true } else { !matches!(bytes[begin - 1], b'a' | b'e' | b'i' | b'o' | b'u') };
        // At the beginning of a word the first y is a consonant; otherwise each y is the opposite of what is before it.
        let flips = if begin == 0 { run.saturating_sub(1) } else { run };
        if run == 0 { base } else { base == (flips % 2 == 0) }
    }

    /// How often a vowel is followed by a consonant in the first `end` letters.
    fn measure(&self, end: usize) -> usize {
        let mut count = 0;
        let mut after_vowel = false;
        for at in 0..end {
            let consonant = self.is_consonant(at);
            count += usize::from(consonant && after_vowel);
            after_vowel = !consonant;
        }
        count
    }

    fn has_vowel(&self, end: usize) -> bool {
        (0..end).any(|at| !self.is_consonant(at))
    }

    fn ends_double(&self) -> bool {
        let length = self.0.len();
        length >= 2
            && self.0.as_bytes()[length - 1] == self.0.as_bytes()[length - 2]
            && self.is_consonant(length - 1)
    }

    /// Whether the first `end` letters end in consonant, vowel, consonant other than w, x, y.
    fn ends_short(&self, end: usize) -> bool {
        end >= 3
            && self.is_consonant(end - 3)
            && !self.is_consonant(end - 2)
            && self.is_consonant(end - 1)
            && !matches!(self.0.as_bytes()[end - 1], b'w' | b'x' | b'y')
    }

    /// Where the ending begins, if the word has it.
    fn ending(&self, ending: &str) -> Option<usize> {
        self.0.ends_with(ending).then(|| self.0.len() - ending.len())
    }

    fn replace(&mut self, from: usize, with: &str) {
        self.0.truncate(from);
        self.0.push_str(with);
    }

    fn plurals(&mut self) {
        if let Some(at) = self.ending("sses") {
            self.replace(at, "ss");
        } else if let Some(at) = self.ending("ies") {
            self.replace(at, "i");
        } else if self.ending("ss").is_none()
            && let Some(at) = self.ending("s")
        {
            self.replace(at, "");
        }
    }

    fn past_and_progressive(&mut self) {
        if let Some(at) = self.ending("eed") {
            if self.measure(at) > 0 {
                self.replace(at, "ee");
            }
            return;
        }
        let Some(at) =
            ["ed", "ing"].iter().filter_map(|ending| self.ending(ending)).find(|at| self.has_vowel(*at))
        else {
            return;
        };
        self.replace(at, "");
        let restored = ["at", "bl", "iz"].iter().any(|ending| self.ending(ending).is_some());
        if restored || self.measure(self.0.len()) == 1 && self.ends_short(self.0.len()) {
            self.0.push('e');
        } else if self.ends_double() && !self.0.ends_with(['l', 's', 'z']) {
            self.0.pop();
        }
    }

    fn final_y(&mut self) {
        if let Some(at) = self.ending("y").filter(|at| self.has_vowel(*at)) {
            self.replace(at, "i");
        }
    }

    fn replace_long(&mut self, endings: &[(&str, &str)]) {
        // The longest ending decides, whether it is then replaced or not.
        let longest = endings
            .iter()
            .filter_map(|(ending, with)| self.ending(ending).map(|at| (at, *with)))
            .min_by_key(|(at, _)| *at);
        if let Some((at, with)) = longest
            && self.measure(at) > 0
        {
            self.replace(at, with);
        }
    }

    fn drop_endings(&mut self) {
        let longest = STEP_FOUR
            .iter()
            .filter_map(|ending| self.ending(ending).map(|at| (at, *ending)))
            .min_by_key(|(at, _)| *at);
        if let Some((at, ending)) = longest
            && self.measure(at) > 1
            && (ending != "ion" || self.0[..at].ends_with(['s', 't']))
        {
            self.replace(at, "");
        }
    }

    fn tidy(&mut self) {
        if let Some(at) = self.ending("e") {
            let measure = self.measure(at);
            if measure > 1 || measure == 1 && !self.ends_short(at) {
                self.replace(at, "");
            }
        }
        if self.0.ends_with("ll") && self.measure(self.0.len()) > 1 {
            self.0.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn endings_come_off() {
        for (word, expected) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("cats", "cat"),
            ("caress", "caress"),
            ("feed", "feed"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("bled", "bled"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("troubled", "troubl"),
            ("sized", "size"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("filing", "file"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("rational", "ration"),
            ("digitizer", "digit"),
            ("operator", "oper"),
            ("feudalism", "feudal"),
            ("hopefulness", "hope"),
            ("formalize", "formal"),
            ("goodness", "good"),
            ("revival", "reviv"),
            ("adjustable", "adjust"),
            ("replacement", "replac"),
            ("adoption", "adopt"),
            ("probate", "probat"),
            ("rate", "rate"),
            ("controll", "control"),
            ("roll", "roll"),
            ("running", "run"),
            ("runs", "run"),
            ("dog's", "dog"),
            ("is", "is"),
            ("über", "über"),
            ("syzygy", "syzygi"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
        assert!(stem(&"y".repeat(10_000)).len() <= 10_000);
    }
}
