//! Porter's first English stemmer.
//!
//! The algorithm that Martin Porter published in 1980: five steps of rules on the letters of a word. Stop words and the
//! splitting of texts differ between the APIs and are not decided here.
//!
//! Porter's measure of a word is how often vowels are followed by consonants in it: 0 in `tree`, 1 in `trees`, 2 in
//! `private`. Most rules cut an ending only where enough of a word remains.

/// The longest word that is stemmed. Longer ones stay as they are: stemmers read the letters of a word repeatedly.
pub const LONGEST_WORD: usize = 64;

/// Returns the stem of a lower-case word. A word with letters other than `a` to `z` stays as it is, but for `'s`.
pub fn stem(word: &str) -> String {
    let word = word.strip_suffix("'s").unwrap_or(word);
    if !(3..=LONGEST_WORD).contains(&word.len()) || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut word = Word(word.as_bytes().to_vec());
    word.cut_plural();
    word.cut_past_and_participle();
    if word.has_vowel_before("y") {
        word.replace("y", "i");
    }
    word.replace_longest(LONG_ENDINGS);
    word.replace_longest(MIDDLE_ENDINGS);
    word.cut_last_endings();
    word.tidy();
    String::from_utf8(word.0).expect("only letters a to z come in and are put in")
}

/// Compound endings and the part that remains.
const LONG_ENDINGS: &[(&str, &str)] = &[
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

const MIDDLE_ENDINGS: &[(&str, &str)] = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

/// Endings that are removed; a longer ending stands before the shorter one that it ends in.
const LAST_ENDINGS: &[&str] = &[
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
];

/// A word being stemmed, of letters `a` to `z`.
struct Word(Vec<u8>);

impl Word {
    /// Returns the length of the part before an ending, if the word has that ending.
    fn before(&self, ending: &str) -> Option<usize> {
        self.0.ends_with(ending.as_bytes()).then(|| self.0.len() - ending.len())
    }

    fn replace(&mut self, ending: &str, by: &str) {
        if let Some(length) = self.before(ending) {
            self.0.truncate(length);
            self.0.extend_from_slice(by.as_bytes());
        }
    }

    /// Returns `true` if the letter is a consonant; `y` is one at the beginning and after a vowel.
    fn is_consonant(&self, at: usize) -> bool {
        match self.0[at] {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => at == 0 || !self.is_consonant(at - 1),
            _ => true,
        }
    }

    /// Returns how often a vowel is followed by a consonant in the first letters.
    fn measure(&self, length: usize) -> usize {
        (1..length).filter(|at| self.is_consonant(*at) && !self.is_consonant(at - 1)).count()
    }

    fn has_vowel(&self, length: usize) -> bool {
        (0..length).any(|at| !self.is_consonant(at))
    }

    fn has_vowel_before(&self, ending: &str) -> bool {
        self.before(ending).is_some_and(|length| self.has_vowel(length))
    }

    fn ends_in_double_consonant(&self) -> bool {
        let last = self.0.len() - 1;
        last > 0 && self.0[last] == self.0[last - 1] && self.is_consonant(last)
    }

    /// Returns `true` if the first letters end in consonant, vowel, consonant, the last being none of `w`, `x`, `y`.
    fn ends_short(&self, length: usize) -> bool {
        length >= 3
            && self.is_consonant(length - 3)
            && !self.is_consonant(length - 2)
            && self.is_consonant(length - 1)
            && !matches!(self.0[length - 1], b'w' | b'x' | b'y')
    }

    fn cut_plural(&mut self) {
        if self.before("sses").is_some() {
            self.replace("sses", "ss");
        } else if self.before("ies").is_some() {
            self.replace("ies", "i");
        } else if self.before("ss").is_none() {
            self.replace("s", "");
        }
    }

    fn cut_past_and_participle(&mut self) {
        if let Some(length) = self.before("eed") {
            if self.measure(length) > 0 {
                self.replace("eed", "ee");
            }
            return;
        }
        let Some(ending) = ["ed", "ing"].into_iter().find(|ending| self.has_vowel_before(ending)) else {
            return;
        };
        self.replace(ending, "");
        if ["at", "bl", "iz"].iter().any(|end| self.before(end).is_some()) {
            self.0.push(b'e');
        } else if self.ends_in_double_consonant() {
            if !matches!(self.0.last(), Some(b'l' | b's' | b'z')) {
                self.0.pop();
            }
        } else if self.measure(self.0.len()) == 1 && self.ends_short(self.0.len()) {
            self.0.push(b'e');
        }
    }

    /// Replaces the longest ending of a table that the word has, if enough stands before it.
    fn replace_longest(&mut self, endings: &[(&str, &str)]) {
        let found = endings.iter().filter(|(ending, _)| self.before(ending).is_some());
        let Some((ending, by)) = found.max_by_key(|(ending, _)| ending.len()) else { return };
        if self.before(ending).is_some_and(|length| self.measure(length) > 0) {
            self.replace(ending, by);
        }
    }

    fn cut_last_endings(&mut self) {
        let found = LAST_ENDINGS.iter().find_map(|ending| Some((*ending, self.before(ending)?)));
        let Some((ending, length)) = found else { return };
        let allowed = ending != "ion" || (length > 0 && matches!(self.0[length - 1], b's' | b't'));
        if allowed && self.measure(length) > 1 {
            self.0.truncate(length);
        }
    }

    /// Removes a silent `e` and the second `l` of a final double `l`.
    fn tidy(&mut self) {
        if let Some(length) = self.before("e") {
            let measure = self.measure(length);
            if measure > 1 || (measure == 1 && !self.ends_short(length)) {
                self.0.pop();
            }
        }
        if self.before("ll").is_some() && self.measure(self.0.len() - 1) > 1 {
            self.0.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_go_as_published() {
        for (word, expected) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("cats", "cat"),
            ("feed", "feed"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("filing", "file"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("rational", "ration"),
            ("digitizer", "digit"),
            ("vietnamization", "vietnam"),
            ("formalize", "formal"),
            ("electricity", "electr"),
            ("hopefulness", "hope"),
            ("replacement", "replac"),
            ("adjustment", "adjust"),
            ("dependent", "depend"),
            ("adoption", "adopt"),
            ("probate", "probat"),
            ("cease", "ceas"),
            ("controll", "control"),
            ("roll", "roll"),
            ("generalizations", "gener"),
            ("oscillators", "oscil"),
            ("running", "run"),
            ("bicycles", "bicycl"),
            ("swim", "swim"),
            ("as", "as"),
            ("cat's", "cat"),
            ("naïve", "naïve"),
            ("a1s", "a1s"),
            ("'s", ""),
            ("caress", "caress"),
            ("bled", "bled"),
            ("troubled", "troubl"),
            ("sized", "size"),
            ("operator", "oper"),
            ("feudalism", "feudal"),
            ("goodness", "good"),
            ("revival", "reviv"),
            ("adjustable", "adjust"),
            ("rate", "rate"),
            ("runs", "run"),
            ("dog's", "dog"),
            ("is", "is"),
            ("über", "über"),
            ("syzygy", "syzygi"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
        let endless = "y".repeat(1_000_000);
        assert_eq!(stem(&endless), endless);
    }
}
