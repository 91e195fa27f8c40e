//! Regular expressions: compiled when a request is parsed, bounded in size and in work.
//!
//! Clients write PCRE. Two engines stand behind what is left of it: a pattern without look-around, back references and the
//! like runs on automata, in time proportional to the text; the others backtrack, and are held to a number of steps and to
//! texts whose worst case is bearable. [`translate`](super::pcre::translate) takes care of what PCRE spells differently.

use std::fmt;
use std::sync::Arc;

use bson::{RegexRef, ValueRef};
use fancy_regex::{CompileError, Error as RegexError, Regex, RegexBuilder};

use super::pcre::translate;
use crate::context::Context;
use crate::error::{Error, Result};

/// Longest pattern.
const PATTERN_BYTES: usize = 32 * 1024;
/// Longest pattern that backtracks: each of its parts may get an automaton of its own.
const BACKTRACKING_PATTERN_BYTES: usize = 2 * 1024;
/// Sizes an automaton may have. A pattern gets the first that is large enough.
const AUTOMATON_BYTES: [usize; 3] = [32 * 1024, 256 * 1024, 4 * 1024 * 1024];
/// Size of each of the automata inside a pattern that backtracks.
const INNER_AUTOMATON_BYTES: usize = 512 * 1024;
/// Memory that an automaton may use to remember its states.
const STATES_BYTES: usize = 512 * 1024;
/// Instructions of a pattern that backtracks.
const PROGRAM_LENGTH: usize = 2000;
/// Backtracking steps of one match.
const BACKTRACKS: usize = 200_000;
/// Bytes of text times bytes of automaton that one match may take: some seconds if the automaton is slow for once.
const AUTOMATON_WORK: u64 = 1 << 37;
/// Bytes of text squared, times the parts of the pattern, that one match may take: some seconds.
const BACKTRACKING_WORK: u64 = 1 << 31;

/// Where the groups of a match begin and end, those that took part; the first is the whole match.
pub type Groups = Vec<Option<(usize, usize)>>;

/// A regular expression, ready to run. Cloning shares it.
#[derive(Clone)]
pub struct Pattern(Arc<Compiled>);

struct Compiled {
    pattern: String,
    options: String,
    regex: Regex,
    engine: Engine,
}

#[derive(Clone, Copy)]
enum Engine {
    Automaton { bytes: usize },
    Backtracking { parts: usize },
}

/// How a pattern is read.
#[expect(clippy::struct_excessive_bools, reason = "four switches that have nothing to do with each other")]
#[derive(Debug, Clone, Copy, Default)]
struct Options {
    ignore_case: bool,
    multiline: bool,
    dot_all: bool,
    extended: bool,
}

impl Options {
    fn parse(letters: &str) -> Result<Options> {
        let mut options = Options::default();
        for letter in letters.chars() {
            match letter {
                'i' => options.ignore_case = true,
                'm' => options.multiline = true,
                's' => options.dot_all = true,
                'x' => options.extended = true,
                'u' => {}
                _ => {
                    return Err(Error::location(51108, format!("invalid flag in regex options: {letter}")));
                }
            }
        }
        Ok(options)
    }
}

impl Pattern {
    /// Compiles a pattern with options such as `im`.
    pub fn parse(pattern: &str, options: &str) -> Result<Pattern> {
        if pattern.contains('\0') {
            return Err(Error::bad_value("Regular expression cannot contain an embedded null byte"));
        }
        if options.contains('\0') {
            return Err(Error::bad_value(
                "Regular expression options string cannot contain an embedded null byte",
            ));
        }
        let switches = Options::parse(options)?;
        let (regex, engine) = compile(&translate(pattern, switches.extended), pattern.len(), switches)?;
        let compiled = Compiled { pattern: pattern.to_owned(), options: options.to_owned(), regex, engine };
        Ok(Pattern(Arc::new(compiled)))
    }

    /// The pattern as the client wrote it.
    pub fn pattern(&self) -> &str {
        &self.0.pattern
    }

    /// The options as the client wrote them.
    pub fn options(&self) -> &str {
        &self.0.options
    }

    /// The text that every match begins with, if the pattern is a plain prefix of what matches: `^abc`.
    pub fn prefix(&self) -> Option<&str> {
        let rest = self.0.pattern.strip_prefix('^').or_else(|| self.0.pattern.strip_prefix("\\A"))?;
        let end = rest.find(|letter: char| "\\^$.|?*+()[]{}".contains(letter)).unwrap_or(rest.len());
        // A quantifier also takes the letter before it away.
        let kept = match rest[end..].chars().next() {
            Some('?' | '*' | '{') => rest[..end].char_indices().next_back().map_or(0, |(at, _)| at),
            _ => end,
        };
        let usable = self.0.options.chars().all(|option| option == 's' || option == 'u');
        (usable && kept > 0 && !rest.contains('|')).then(|| &rest[..kept])
    }

    /// Whether a value matches: a string in which the pattern is found, or the same regular expression.
    pub fn matches(&self, value: ValueRef<'_>, context: &Context) -> Result<bool> {
        match value {
            ValueRef::String(text) | ValueRef::Symbol(text) => self.is_match(text, context),
            ValueRef::Regex(RegexRef { pattern, options }) => {
                Ok(pattern == self.0.pattern && options == self.0.options)
            }
            _ => Ok(false),
        }
    }

    /// Whether the pattern is found in a text.
    pub fn is_match(&self, text: &str, context: &Context) -> Result<bool> {
        self.pay(text.len(), context)?;
        self.0.regex.is_match(text).map_err(|_| too_much())
    }

    /// The first match that begins at or behind a byte, with its groups; the first of them is the whole match.
    pub fn captures(&self, text: &str, from: usize, context: &Context) -> Result<Option<Groups>> {
        self.pay(text.len().saturating_sub(from), context)?;
        let found = self.0.regex.captures_from_pos(text, from).map_err(|_| too_much())?;
        Ok(found.map(|captures| {
            captures.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect()
        }))
    }

    fn pay(&self, length: usize, context: &Context) -> Result<()> {
        let length = length as u64;
        let steps = match self.0.engine {
            Engine::Automaton { bytes } => {
                let work = length.saturating_mul(bytes as u64);
                (work <= AUTOMATON_WORK).then_some(work / (AUTOMATON_BYTES[0] as u64 * 512) + 1)
            }
            Engine::Backtracking { parts } => {
                let work = length.saturating_mul(length).saturating_mul(parts as u64);
                (work <= BACKTRACKING_WORK).then_some(work / 1024 + length / 64 + 1)
            }
        };
        let message = "a text is too long for a regular expression that backtracks";
        context.spend(steps.ok_or_else(|| Error::location(51156, message))?)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "/{}/{}", self.0.pattern, self.0.options)
    }
}

fn too_much() -> Error {
    Error::location(51156, "Error occurred while executing the regular expression: it backtracks too much")
}

fn compile(pattern: &str, written: usize, options: Options) -> Result<(Regex, Engine)> {
    if written > PATTERN_BYTES {
        return Err(invalid("regular expression is too large"));
    }
    let mut builder = RegexBuilder::new(pattern);
    builder
        .case_insensitive(options.ignore_case)
        .multi_line(options.multiline)
        .dot_matches_new_line(options.dot_all)
        .verbose_mode(options.extended)
        .delegate_dfa_size_limit(STATES_BYTES)
        .backtrack_limit(BACKTRACKS);
    for bytes in AUTOMATON_BYTES {
        // Only patterns that backtrack have a program: one that may have no instruction shows which they are.
        match builder.delegate_size_limit(bytes).max_prog_size(0).build() {
            Ok(regex) => return Ok((regex, Engine::Automaton { bytes })),
            Err(error) if has_program(&error) => return compile_backtracking(&mut builder, written),
            Err(error) if is_too_large(&error) => {}
            Err(error) => return Err(invalid(&error.to_string())),
        }
    }
    Err(invalid("regular expression is too large"))
}

fn compile_backtracking(builder: &mut RegexBuilder, written: usize) -> Result<(Regex, Engine)> {
    if written > BACKTRACKING_PATTERN_BYTES {
        return Err(invalid("regular expression is too large"));
    }
    let built = builder.delegate_size_limit(INNER_AUTOMATON_BYTES).max_prog_size(PROGRAM_LENGTH).build();
    let regex = built.map_err(|error| {
        let too_large = has_program(&error) || is_too_large(&error);
        if too_large { invalid("regular expression is too large") } else { invalid(&error.to_string()) }
    })?;
    Ok((regex, Engine::Backtracking { parts: written / 16 + 1 }))
}

fn invalid(reason: &str) -> Error {
    Error::location(51091, format!("Regular expression is invalid: {reason}"))
}

fn has_program(error: &RegexError) -> bool {
    matches!(error, RegexError::CompileError(error) if matches!(**error, CompileError::PatternTooComplex))
}

fn is_too_large(error: &RegexError) -> bool {
    let RegexError::CompileError(error) = error else { return false };
    matches!(&**error, CompileError::InnerError(error) if error.size_limit().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, options: &str, text: &str) -> bool {
        let pattern = Pattern::parse(pattern, options).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        pattern.is_match(text, &Context::at(0)).unwrap()
    }

    #[test]
    fn patterns_are_found_anywhere() {
        for (pattern, options, text, expected) in [
            ("b", "", "abc", true),
            ("B", "i", "abc", true),
            ("^b$", "", "a\nb", false),
            ("^b$", "m", "a\nb", true),
            ("a.b", "", "a\nb", false),
            ("a.b", "s", "a\nb", true),
            ("a b # c", "x", "ab", true),
            ("^(?=.*\\d)(?!x)", "", "ab1", true),
            ("(.)\\1", "", "abb", true),
            ("É", "iu", "é", true),
            ("\\d", "", "٣", false),
            ("^\\w+$", "", "é", false),
            ("(*UCP)^\\w+$", "", "é", true),
            ("a{,2}", "", "a{,2}", true),
            ("[a[]", "", "[", true),
            ("\\Qa.b\\E", "", "a.b", true),
            ("\\Qa.b\\E", "", "axb", false),
            ("a\\/b\\-c\\ d", "", "a/b-c d", true),
            ("[\\w-]+@", "", "a-b@", true),
            ("[^\\s]", "", " ", false),
        ] {
            assert_eq!(found(pattern, options, text), expected, "/{pattern}/{options} on {text}");
        }
    }

    #[test]
    fn what_is_wrong_or_too_large_is_refused() {
        for (pattern, options, code) in [
            ("(", "", 51091),
            ("a**b)", "", 51091),
            ("a", "q", 51108),
            ("a\0", "", 2),
            ("((a{999}){999}){999}", "", 51091),
        ] {
            assert_eq!(Pattern::parse(pattern, options).unwrap_err().code.0, code, "{pattern}");
        }
        assert!(Pattern::parse(&"a".repeat(PATTERN_BYTES + 1), "").is_err());
        let hard = Pattern::parse(r"(a*)*\1b", "").unwrap();
        assert_eq!(hard.is_match(&"a".repeat(5_000), &Context::at(0)).unwrap_err().code.0, 51156);
        let look_ahead = Pattern::parse("(?=.*x)y", "").unwrap();
        assert!(look_ahead.is_match(&"a".repeat(100_000), &Context::at(0)).is_err());
    }

    #[test]
    fn a_plain_prefix_is_told() {
        let prefix = |pattern: &str, options: &str| {
            Pattern::parse(pattern, options).unwrap().prefix().map(str::to_owned)
        };
        assert_eq!(prefix("^abc", "").as_deref(), Some("abc"));
        assert_eq!(prefix("^abc.*", "").as_deref(), Some("abc"));
        assert_eq!(prefix("^abc*", "").as_deref(), Some("ab"));
        assert_eq!(prefix("^abc+", "").as_deref(), Some("abc"));
        assert_eq!(prefix("^ab|c", ""), None);
        assert_eq!(prefix("^ab", "i"), None);
        assert_eq!(prefix("^ab", "m"), None);
        assert_eq!(prefix("ab", ""), None);
        assert_eq!(prefix("^a?", ""), None);
    }
}
