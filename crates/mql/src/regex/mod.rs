//! Regular expressions: compiled when a request is parsed, bounded in size and in work.
//!
//! Clients write PCRE, of which [`patterns`] runs what can be bounded. [`translate`](pcre::translate) takes care of
//! what PCRE spells differently.
//!
//! A few letters may take megabytes once they are compiled, and a request may hold a million patterns. So all patterns kept
//! at once share a [`PatternBudget`], and those compiled for each document are charged like other work.

mod pcre;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bson::{RegexRef, ValueRef};
use patterns::{Limits, Options, Unusable};

use crate::context::Context;
use crate::error::{Error, Result};
use pcre::translate;

/// Longest patterns.
const LIMITS: Limits = Limits { pattern_bytes: 32 * 1024, backtracking_pattern_bytes: 2 * 1024 };
/// Memory for the compiled patterns of one request: thousands of simple ones, some dozens of the largest, which together are
/// compiled within seconds.
const PATTERN_BYTES_MAX: usize = 128 * 1024 * 1024;

/// The memory budget for the patterns of one request. Clones share it, and a dropped pattern releases its share.
#[derive(Debug, Clone, Default)]
pub struct PatternBudget(Arc<AtomicUsize>);

impl PatternBudget {
    fn take(&self, bytes: usize) -> Result<Reservation> {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        let taken = Reservation { budget: self.clone(), bytes };
        if before + bytes > PATTERN_BYTES_MAX {
            return Err(invalid("the regular expressions of this request are too large together"));
        }
        Ok(taken)
    }
}

/// A reserved part of a budget.
struct Reservation {
    budget: PatternBudget,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Where the groups of a match begin and end, those that took part; the first is the whole match.
pub type Groups = Vec<Option<(usize, usize)>>;

/// A compiled regular expression. Cloning shares it.
#[derive(Clone)]
pub struct Pattern(Arc<Compiled>);

struct Compiled {
    pattern: String,
    options: String,
    program: patterns::Pattern,
    /// None if the pattern is not kept.
    _reservation: Option<Reservation>,
}

impl Pattern {
    /// Compiles a pattern with options such as `im`, to be kept.
    pub fn parse(pattern: &str, options: &str, budget: &PatternBudget) -> Result<Pattern> {
        let compiled = compile(pattern, options, &mut |_| Ok(()))?;
        let taken = budget.take(compiled.bytes())?;
        Ok(Pattern::new(pattern, options, compiled, Some(taken)))
    }

    /// Compiles a pattern that was computed, for one use.
    pub(crate) fn compute(pattern: &str, options: &str, context: &Context) -> Result<Pattern> {
        let compiled = compile(pattern, options, &mut |steps| context.spend(steps))?;
        Ok(Pattern::new(pattern, options, compiled, None))
    }

    fn new(pattern: &str, options: &str, program: patterns::Pattern, budget: Option<Reservation>) -> Pattern {
        let (pattern, options) = (pattern.to_owned(), options.to_owned());
        Pattern(Arc::new(Compiled { pattern, options, program, _reservation: budget }))
    }

    /// Returns the pattern as the client wrote it.
    pub fn pattern(&self) -> &str {
        &self.0.pattern
    }

    /// Returns the options as the client wrote them.
    pub fn options(&self) -> &str {
        &self.0.options
    }

    /// Returns the text that every match begins with, if the pattern is a plain prefix of what matches: `^abc`.
    pub fn prefix(&self) -> Option<&str> {
        let rest = self.0.pattern.strip_prefix('^').or_else(|| self.0.pattern.strip_prefix("\\A"))?;
        let end = rest.find(|letter: char| "\\^$.|?*+()[]{}".contains(letter)).unwrap_or(rest.len());
        // A quantifier also removes the letter before it.
        let kept = match rest[end..].chars().next() {
            Some('?' | '*' | '{') => rest[..end].char_indices().next_back().map_or(0, |(at, _)| at),
            _ => end,
        };
        let usable = self.0.options.chars().all(|option| option == 's' || option == 'u');
        (usable && kept > 0 && !rest.contains('|')).then(|| &rest[..kept])
    }

    /// Returns whether a value matches: a string in which the pattern is found, or the same regular expression.
    pub fn matches(&self, value: ValueRef<'_>, context: &Context) -> Result<bool> {
        match value {
            ValueRef::String(text) | ValueRef::Symbol(text) => self.is_match(text, context),
            ValueRef::Regex(RegexRef { pattern, options }) => {
                Ok(pattern == self.0.pattern && options == self.0.options)
            }
            _ => Ok(false),
        }
    }

    /// Returns whether the pattern is found in a text.
    pub fn is_match(&self, text: &str, context: &Context) -> Result<bool> {
        self.pay(text.len(), context)?;
        self.0.program.regex().is_match(text).map_err(|_| too_much())
    }

    /// Returns the first match that begins at or behind a byte, with its groups; the first of them is the whole match.
    pub fn captures(&self, text: &str, from: usize, context: &Context) -> Result<Option<Groups>> {
        self.pay(text.len().saturating_sub(from), context)?;
        let found = self.0.program.regex().captures_from_pos(text, from).map_err(|_| too_much())?;
        Ok(found.map(|captures| {
            captures.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect()
        }))
    }

    fn pay(&self, length: usize, context: &Context) -> Result<()> {
        let message = "a text is too long for a regular expression that backtracks";
        context.spend(self.0.program.steps(length).ok_or_else(|| Error::location(51156, message))?)
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

/// Compiles a pattern, and charges the steps of each attempt before it.
fn compile(
    pattern: &str,
    options: &str,
    spend: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<patterns::Pattern> {
    if pattern.contains('\0') {
        return Err(Error::bad_value("Regular expression cannot contain an embedded null byte"));
    }
    if options.contains('\0') {
        return Err(Error::bad_value(
            "Regular expression options string cannot contain an embedded null byte",
        ));
    }
    // Patterns are always Unicode.
    let switches = Options::parse(&options.replace('u', ""))
        .map_err(|letter| Error::location(51108, format!("invalid flag in regex options: {letter}")))?;
    let mut refusal = None;
    let mut pay = |steps| spend(steps).map_err(|error| refusal = Some(error)).is_ok();
    let translated = translate(pattern, switches.extended).map_err(|reason| invalid(&reason))?;
    let compiled = patterns::Pattern::compile(&translated, pattern.len(), switches, LIMITS, &mut pay);
    compiled.map_err(|unusable| match (refusal, unusable) {
        (Some(refusal), _) => refusal,
        (None, Unusable::Invalid(reason)) => invalid(&reason),
        (None, Unusable::TooLarge | Unusable::Unpaid) => invalid("regular expression is too large"),
    })
}

fn invalid(reason: &str) -> Error {
    Error::location(51091, format!("Regular expression is invalid: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, options: &str, text: &str) -> bool {
        let pattern = Pattern::parse(pattern, options, &PatternBudget::default())
            .unwrap_or_else(|error| panic!("{pattern}: {error}"));
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
            assert_eq!(
                Pattern::parse(pattern, options, &PatternBudget::default()).unwrap_err().code.0,
                code,
                "{pattern}"
            );
        }
        assert!(
            Pattern::parse(&"a".repeat(LIMITS.pattern_bytes + 1), "", &PatternBudget::default()).is_err()
        );
        let hard = Pattern::parse(r"(a*)*\1b", "", &PatternBudget::default()).unwrap();
        assert_eq!(hard.is_match(&"a".repeat(5_000), &Context::at(0)).unwrap_err().code.0, 51156);
        let look_ahead = Pattern::parse("(?=.*x)y", "", &PatternBudget::default()).unwrap();
        assert!(look_ahead.is_match(&"a".repeat(100_000), &Context::at(0)).is_err());
    }

    #[test]
    fn a_plain_prefix_is_told() {
        let prefix = |pattern: &str, options: &str| {
            Pattern::parse(pattern, options, &PatternBudget::default()).unwrap().prefix().map(str::to_owned)
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

    #[test]
    fn patterns_share_a_room_and_give_it_back() {
        let budget = PatternBudget::default();
        let large = r"(*UCP)\w{40}";
        let mut kept = Vec::new();
        let refusal = loop {
            match Pattern::parse(large, "", &budget) {
                Ok(pattern) => kept.push(pattern),
                Err(error) => break error,
            }
        };
        assert_eq!(refusal.code.0, 51091);
        assert!((8..64).contains(&kept.len()), "{}", kept.len());
        kept.pop();
        assert!(Pattern::parse(large, "", &budget).is_ok(), "what was refused takes nothing from the budget");
        let clones = kept.clone();
        drop(kept);
        assert!(budget.0.load(Ordering::Relaxed) > 0, "clones share what they took");
        drop(clones);
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
        let simple: Vec<_> = (0..4000).map(|_| Pattern::parse("^abc", "", &budget)).collect();
        assert!(simple.iter().all(Result::is_ok));
    }

    #[test]
    fn computed_patterns_are_paid_for() {
        let computed = |pattern| Pattern::compute(pattern, "", &Context::at(0).with_steps_max(100_000));
        assert!(computed("^abc").is_ok());
        assert_eq!(computed(r"(*UCP)\w{40}").unwrap_err().code, crate::error::Code::MAX_TIME_MS_EXPIRED);
    }
}
