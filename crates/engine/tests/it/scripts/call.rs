//! Parses a command: `verb name option=value ... rest`.
//!
//! A value or a word ends at a space that is in no quotes and no brackets, so JSON is one word.

use std::collections::BTreeMap;

/// A command.
pub(super) struct Call<'t> {
    pub(super) verb: &'t str,
    /// The container or collection, or whatever else comes first.
    pub(super) name: &'t str,
    options: BTreeMap<&'t str, &'t str>,
    rest: &'t str,
    /// Whether the rest was taken as a whole.
    looked: bool,
    /// The lines below it that begin with `|`.
    pub(super) block: Vec<&'t str>,
}

impl<'t> Call<'t> {
    pub(super) fn new(text: &'t str, block: Vec<&'t str>) -> Call<'t> {
        let (verb, rest) = split_word(text);
        let (name, mut rest) = match split_word(rest) {
            // A command without a name may have options.
            (word, _) if option(word).is_some() => ("", rest),
            split => split,
        };
        let mut options = BTreeMap::new();
        while let (word, behind) = split_word(rest)
            && let Some((name, value)) = option(word)
        {
            assert!(options.insert(name, value).is_none(), "{name} twice: {text}");
            rest = behind;
        }
        Call { verb, name, options, rest, looked: false, block }
    }

    /// Takes the value of an option.
    pub(super) fn take(&mut self, option: &str) -> Option<&'t str> {
        self.options.remove(option)
    }

    /// A count that is given as an option.
    pub(super) fn take_count(&mut self, option: &str) -> Option<usize> {
        self.take(option).map(|value| value.parse().unwrap_or_else(|_| panic!("{option}={value}: no count")))
    }

    /// Takes all options that are left.
    pub(super) fn take_all(&mut self) -> Vec<(&'t str, &'t str)> {
        std::mem::take(&mut self.options).into_iter().collect()
    }

    /// Takes everything after the options and the words that were taken, unchanged.
    pub(super) fn rest(&mut self) -> &'t str {
        self.looked = true;
        self.rest
    }

    /// Whether there is nothing more.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The options behind the words that were taken.
    pub(super) fn trailing_options(&mut self) -> Vec<(&'t str, &'t str)> {
        words(self.rest()).into_iter().map(|word| option(word).expect("an option")).collect()
    }

    /// The next word of the rest.
    pub(super) fn word(&mut self) -> &'t str {
        let (word, rest) = split_word(self.rest);
        self.rest = rest;
        word
    }

    /// Fails the script if a part of the command was not taken.
    pub(super) fn end(&self) {
        let left: Vec<_> = self.options.keys().collect();
        assert!(left.is_empty(), "{}: unknown options {left:?}", self.verb);
        assert!(self.looked || self.rest.is_empty(), "{}: not understood: {:?}", self.verb, self.rest);
    }
}

/// `name=value`, where the name has only letters.
fn option(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    plain.then_some((name, value))
}

/// The first word, and what comes after it.
pub(super) fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (mut depth, mut quoted, mut escaped) = (0_i32, false, false);
    let end = text.char_indices().find(|(_, letter)| {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            ' ' => return !quoted && depth == 0,
            _ => {}
        }
        false
    });
    let (word, rest) = text.split_at(end.map_or(text.len(), |(at, _)| at));
    (word, rest.trim_start())
}

/// All words.
pub(super) fn words(mut text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    while !text.is_empty() {
        let (word, rest) = split_word(text);
        words.push(word);
        text = rest;
    }
    words
}

#[test]
fn a_command_is_taken_apart() {
    let mut call = Call::new(r#"put c key=["a b"] {"id": "x"} more"#, Vec::new());
    assert_eq!((call.verb, call.name, call.take("key")), ("put", "c", Some(r#"["a b"]"#)));
    assert_eq!((call.word(), call.rest()), (r#"{"id": "x"}"#, "more"));
    let mut call = Call::new("query c SELECT * FROM c WHERE c.n = 1", Vec::new());
    assert_eq!(call.rest(), "SELECT * FROM c WHERE c.n = 1");
    let mut call = Call::new("purge step=3", Vec::new());
    assert_eq!(
        (call.name, call.take("step"), words("a  [1, 2] b")),
        ("", Some("3"), vec!["a", "[1, 2]", "b"])
    );
}
