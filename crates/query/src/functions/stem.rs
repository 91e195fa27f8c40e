//! English words for full-text search: which are too common to count, and what they are without their endings.
//!
//! The common words are those that the service lists. Endings go by the algorithm that Martin Porter published in
//! 1980, five steps of rules on the letters of a word; the service says that it cuts endings, not how. A word with
//! other than the letters `a` to `z` stays as it is.
//!
//! Porter's measure of a word is how often vowels are followed by consonants in it: 0 in `tree`, 1 in `trees`, 2 in
//! `private`. Most rules cut an ending only where enough of a word remains.

/// Longer words are no words of a language and stay as they are: the rules look at letters again and again.
pub(crate) const LONGEST_WORD: usize = 64;

/// Whether a lower-cased word is too common to count.
pub(crate) fn is_common(word: &str) -> bool {
    COMMON.binary_search(&word).is_ok()
}

/// A lower-cased word without its endings.
pub(crate) fn stem(word: &str) -> String {
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
    word.first_match(LONG_ENDINGS, 0);
    word.first_match(MIDDLE_ENDINGS, 0);
    word.cut_last_endings();
    word.tidy();
    String::from_utf8(word.0).expect("only letters a to z come in and are put in")
}

/// Endings of two parts and the part that stays.
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

/// Endings that go altogether; a longer one stands before the one that it ends in.
const LAST_ENDINGS: &[&str] = &[
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
];

/// A word in the making, of letters `a` to `z`.
struct Word(Vec<u8>);

impl Word {
    /// What stands before an ending, if the word has it.
    fn before(&self, ending: &str) -> Option<usize> {
        self.0.ends_with(ending.as_bytes()).then(|| self.0.len() - ending.len())
    }

    fn replace(&mut self, ending: &str, by: &str) {
        if let Some(length) = self.before(ending) {
            self.0.truncate(length);
            self.0.extend_from_slice(by.as_bytes());
        }
    }

    /// Whether the letter is a consonant; `y` is one at the beginning and after a vowel.
    fn is_consonant(&self, at: usize) -> bool {
        match self.0[at] {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => at == 0 || !self.is_consonant(at - 1),
            _ => true,
        }
    }

    /// How often a vowel is followed by a consonant in the first letters.
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

    /// Whether the first letters end in consonant, vowel, consonant, the last being none of `w`, `x`, `y`.
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

    /// Replaces the longest ending of a table that the word has, if what stands before it measures more than `least`.
    fn first_match(&mut self, endings: &[(&str, &str)], least: usize) {
        let found = endings.iter().filter(|(ending, _)| self.before(ending).is_some());
        let Some((ending, by)) = found.max_by_key(|(ending, _)| ending.len()) else { return };
        if self.before(ending).is_some_and(|length| self.measure(length) > least) {
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

    /// Takes a silent `e` away, and one of two `l`.
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

/// The common words, sorted.
#[rustfmt::skip]
const COMMON: &[&str] = &[
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "a's", "able", "about", "above", "according",
    "accordingly", "across", "actually", "after", "afterwards", "again", "against", "ain't", "all", "allow",
    "allows", "almost", "alone", "along", "already", "also", "although", "always", "am", "among", "amongst",
    "an", "and", "another", "any", "anybody", "anyhow", "anyone", "anything", "anyway", "anyways", "anywhere",
    "apart", "appear", "appreciate", "appropriate", "are", "aren't", "around", "as", "aside", "ask", "asking",
    "associated", "at", "available", "away", "awfully", "b", "be", "became", "because", "become", "becomes",
    "becoming", "been", "before", "beforehand", "behind", "being", "believe", "below", "beside", "besides",
    "best", "better", "between", "beyond", "both", "brief", "but", "by", "c", "c'mon", "c's", "came", "can",
    "can't", "cannot", "cant", "cause", "causes", "certain", "certainly", "changes", "clearly", "co", "com",
    "come", "comes", "concerning", "consequently", "consider", "considering", "contain", "containing",
    "contains", "corresponding", "could", "couldn't", "course", "currently", "d", "definitely", "described",
    "despite", "did", "didn't", "different", "do", "does", "doesn't", "doing", "don", "don't", "done", "down",
    "downwards", "during", "e", "each", "edu", "eg", "eight", "either", "else", "elsewhere", "enough",
    "entirely", "especially", "et", "etc", "even", "ever", "every", "everybody", "everyone", "everything",
    "everywhere", "ex", "exactly", "example", "except", "f", "far", "few", "fifth", "first", "five", "followed",
    "following", "follows", "for", "former", "formerly", "forth", "four", "from", "further", "furthermore", "g",
    "get", "gets", "getting", "given", "gives", "go", "goes", "going", "gone", "got", "gotten", "greetings",
    "h", "had", "hadn't", "happens", "hardly", "has", "hasn't", "have", "haven't", "having", "he", "he's",
    "hello", "help", "hence", "her", "here", "here's", "hereafter", "hereby", "herein", "hereupon", "hers",
    "herself", "hi", "him", "himself", "his", "hither", "hopefully", "how", "howbeit", "however", "i", "i'd",
    "i'll", "i'm", "i've", "ie", "if", "ignored", "immediate", "in", "inasmuch", "inc", "indeed", "indicate",
    "indicated", "indicates", "inner", "insofar", "instead", "into", "inward", "is", "isn't", "it", "it'd",
    "it'll", "it's", "its", "itself", "j", "just", "k", "keep", "keeps", "kept", "know", "known", "knows", "l",
    "last", "lately", "later", "latter", "latterly", "least", "less", "lest", "let", "let's", "like", "liked",
    "likely", "little", "ll", "look", "looking", "looks", "ltd", "m", "mainly", "make", "many", "may", "maybe",
    "me", "mean", "meanwhile", "merely", "might", "more", "moreover", "most", "mostly", "mr", "mrs", "ms",
    "much", "must", "my", "myself", "n", "name", "namely", "nd", "near", "nearly", "necessary", "need", "needs",
    "neither", "never", "nevertheless", "new", "next", "nine", "no", "nobody", "non", "none", "noone", "nor",
    "normally", "not", "nothing", "novel", "now", "nowhere", "o", "obviously", "of", "off", "often", "oh", "ok",
    "okay", "old", "on", "once", "one", "ones", "only", "onto", "or", "other", "others", "otherwise", "ought",
    "our", "ours", "ourselves", "out", "outside", "over", "overall", "own", "p", "particular", "particularly",
    "per", "perhaps", "placed", "please", "plus", "possible", "presumably", "probably", "provides", "q", "que",
    "quite", "qv", "r", "rather", "rd", "re", "really", "reasonably", "regarding", "regardless", "regards",
    "relatively", "respectively", "right", "s", "said", "same", "saw", "say", "saying", "says", "second",
    "secondly", "see", "seeing", "seem", "seemed", "seeming", "seems", "seen", "self", "selves", "sensible",
    "sent", "serious", "seriously", "seven", "several", "shall", "she", "should", "shouldn't", "since", "six",
    "so", "some", "somebody", "somehow", "someone", "something", "sometime", "sometimes", "somewhat",
    "somewhere", "soon", "sorry", "specified", "specify", "specifying", "still", "sub", "such", "sup", "sure",
    "t", "t's", "take", "taken", "tell", "tends", "th", "than", "thank", "thanks", "thanx", "that", "that's",
    "thats", "the", "their", "theirs", "them", "themselves", "then", "thence", "there", "there's", "thereafter",
    "thereby", "therefore", "therein", "theres", "thereupon", "these", "they", "they'd", "they'll", "they're",
    "they've", "think", "third", "this", "thorough", "thoroughly", "those", "though", "three", "through",
    "throughout", "thru", "thus", "to", "together", "too", "took", "toward", "towards", "tried", "tries",
    "truly", "try", "trying", "twice", "two", "u", "un", "under", "unfortunately", "unless", "unlikely",
    "until", "unto", "up", "upon", "us", "use", "used", "useful", "uses", "using", "usually", "v", "value",
    "various", "ve", "very", "via", "viz", "vs", "w", "want", "wants", "was", "wasn't", "way", "we", "we'd",
    "we'll", "we're", "we've", "welcome", "well", "went", "were", "weren't", "what", "what's", "whatever",
    "when", "whence", "whenever", "where", "where's", "whereafter", "whereas", "whereby", "wherein",
    "whereupon", "wherever", "whether", "which", "while", "whither", "who", "who's", "whoever", "whole", "whom",
    "whose", "why", "will", "willing", "wish", "with", "within", "without", "won't", "wonder", "would",
    "wouldn't", "x", "y", "yes", "yet", "you", "you'd", "you'll", "you're", "you've", "your", "yours",
    "yourself", "yourselves", "z", "zero",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_words_are_sorted_for_the_search() {
        assert!(COMMON.is_sorted());
        assert!(is_common("the") && is_common("don't") && !is_common("bicycle"));
    }

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
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
        let endless = "y".repeat(1_000_000);
        assert_eq!(stem(&endless), endless);
    }
}
