//! Regular expressions from clients: bounded in size when they are compiled, and in work before they run.
//!
//! Two engines share one syntax. A pattern without look-around, back references and the like runs on automata, in time
//! proportional to the text. All other patterns backtrack, and neither the library's count of backtracking steps nor
//! anything else tells what such a match costs before it is done: a look-ahead may read the whole text at every position. So
//! the cost is estimated from the lengths in advance, for the caller to charge, and a match that could run for many seconds
//! is refused.
//!
//! A short pattern can be expensive to compile: `\w{40}` takes two megabytes and a thirtieth of a second. So compiling is
//! charged too, and [`Pattern::bytes`] returns what a cached pattern may take.

use fancy_regex::{CompileError, Error, Regex, RegexBuilder};

/// Size limits of an automaton. A pattern gets the first limit that is large enough.
const AUTOMATON_BYTES: [usize; 4] = [4 * 1024, 32 * 1024, 256 * 1024, 4 * 1024 * 1024];
/// Size limits of each automaton inside a pattern that backtracks.
const INNER_AUTOMATON_BYTES: [usize; 2] = [32 * 1024, 512 * 1024];
/// Bytes that a pattern takes even if its automaton is tiny.
const LEAST_BYTES: usize = 16 * 1024;
/// Memory for the state cache of a lazy automaton.
const STATES_BYTES: usize = 512 * 1024;
/// Instructions of a pattern that backtracks.
const PROGRAM_LENGTH: usize = 2000;
/// Letters of a backtracking pattern per inner automaton that the estimate assumes.
const LETTERS_PER_PART: usize = 16;
/// Backtracking steps of one match. Each position of the text that does not match takes one at least.
const BACKTRACKS: usize = 200_000;

/// Bytes of text times bytes of automaton that one match may take: some seconds in the slowest case.
const AUTOMATON_WORK: u64 = 1 << 37;
/// How much of that work counts as one step.
const AUTOMATON_WORK_PER_STEP: u64 = 1 << 24;
/// Bytes of text squared, times the parts of the pattern, that one match may take: some seconds.
const BACKTRACKING_WORK: u64 = 1 << 31;

/// Bytes of an automaton that compiling makes per step: a large one takes a tenth of a second.
const COMPILED_BYTES_PER_STEP: u64 = 4;
/// Steps charged for reading a byte of a pattern, and for compiling a byte of a pattern that backtracks: `\w` is two bytes
/// that stand for hundreds of ranges.
const READ_STEPS: u64 = 64;
const BACKTRACKING_COMPILE_STEPS: u64 = 256;

/// Limits on the length of a pattern.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of any pattern.
    pub pattern_bytes: usize,
    /// Bytes of a pattern that backtracks: each of its parts may get its own automaton.
    pub backtracking_pattern_bytes: usize,
}

/// How a pattern is read.
#[expect(clippy::struct_excessive_bools, reason = "four switches that have nothing to do with each other")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// `i`: letters of either case are the same.
    pub ignore_case: bool,
    /// `m`: `^` and `$` also match at the ends of lines.
    pub multiline: bool,
    /// `s`: a dot also matches the end of a line.
    pub dot_all: bool,
    /// `x`: white space and comments in the pattern do not count.
    pub extended: bool,
}

impl Options {
    /// Reads letters such as `im`; the letter that means nothing, if there is one.
    pub fn parse(letters: &str) -> Result<Options, char> {
        let mut options = Options::default();
        for letter in letters.chars() {
            match letter {
                'i' => options.ignore_case = true,
                'm' => options.multiline = true,
                's' => options.dot_all = true,
                'x' => options.extended = true,
                unknown => return Err(unknown),
            }
        }
        Ok(options)
    }
}

/// The reason why a pattern cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// The pattern is invalid, with the reason.
    Invalid(String),
    /// The pattern is valid, but too large for this server.
    TooLarge,
    /// The caller refused the cost.
    Unpaid,
}

/// A pattern ready to run.
#[derive(Debug)]
pub struct Pattern {
    regex: Regex,
    engine: Engine,
}

#[derive(Debug, Clone, Copy)]
enum Engine {
    Automaton { bytes: usize },
    Backtracking { parts: usize, bytes: usize },
}

/// One attempt to compile a pattern.
struct Compiler<'a> {
    builder: RegexBuilder,
    /// Bytes of the pattern as it was written, which may have become more since.
    written: usize,
    limits: Limits,
    spend: &'a mut dyn FnMut(u64) -> bool,
}

impl Pattern {
    /// Compiles a pattern of which the client wrote `written` bytes. `spend` receives the cost of each attempt in steps
    /// and returns whether the caller accepts it.
    pub fn compile(
        pattern: &str,
        written: usize,
        options: Options,
        limits: Limits,
        spend: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Pattern, Unusable> {
        if written > limits.pattern_bytes {
            return Err(Unusable::TooLarge);
        }
        let mut builder = RegexBuilder::new(pattern);
        builder
            .case_insensitive(options.ignore_case)
            .multi_line(options.multiline)
            .dot_matches_new_line(options.dot_all)
            .verbose_mode(options.extended)
            .delegate_dfa_size_limit(STATES_BYTES)
            .backtrack_limit(BACKTRACKS);
        Compiler { builder, written, limits, spend }.run()
    }

    /// Returns the matcher. Call [`Pattern::steps`] before each match.
    pub fn regex(&self) -> &Regex {
        &self.regex
    }

    /// Returns the estimated cost, in steps, of a match on a text of that length; `None` if that is too much.
    pub fn steps(&self, length: usize) -> Option<u64> {
        let length = length as u64;
        match self.engine {
            Engine::Automaton { bytes } => {
                let work = length.saturating_mul(bytes as u64);
                (work <= AUTOMATON_WORK).then_some(work / AUTOMATON_WORK_PER_STEP + 1)
            }
            Engine::Backtracking { parts, .. } => {
                let work = length.saturating_mul(length).saturating_mul(parts as u64);
                (work <= BACKTRACKING_WORK).then_some(work / 1024 + length / 64 + 1)
            }
        }
    }

    /// Bytes of memory that the pattern may take while it is kept, estimated.
    pub fn bytes(&self) -> usize {
        match self.engine {
            Engine::Automaton { bytes } => bytes.max(LEAST_BYTES),
            Engine::Backtracking { parts, bytes } => parts * bytes,
        }
    }
}

impl Compiler<'_> {
    fn run(mut self) -> Result<Pattern, Unusable> {
        for bytes in AUTOMATON_BYTES {
            self.pay(bytes as u64 / COMPILED_BYTES_PER_STEP + self.written as u64 * READ_STEPS)?;
            // Only patterns that backtrack have a program: compiling with room for no instruction tells which they
            // are.
            match self.builder.delegate_size_limit(bytes).max_prog_size(0).build() {
                Ok(regex) => return Ok(Pattern { regex, engine: Engine::Automaton { bytes } }),
                Err(error) if has_program(&error) => return self.backtracking(),
                Err(error) if is_too_large(&error) => {}
                Err(error) => return Err(Unusable::Invalid(error.to_string())),
            }
        }
        Err(Unusable::TooLarge)
    }

    fn backtracking(mut self) -> Result<Pattern, Unusable> {
        if self.written > self.limits.backtracking_pattern_bytes {
            return Err(Unusable::TooLarge);
        }
        let parts = self.written / LETTERS_PER_PART + 1;
        for bytes in INNER_AUTOMATON_BYTES {
            self.pay(self.written as u64 * BACKTRACKING_COMPILE_STEPS)?;
            match self.builder.delegate_size_limit(bytes).max_prog_size(PROGRAM_LENGTH).build() {
                Ok(regex) => return Ok(Pattern { regex, engine: Engine::Backtracking { parts, bytes } }),
                Err(error) if has_program(&error) => return Err(Unusable::TooLarge),
                Err(error) if is_too_large(&error) => {}
                Err(error) => return Err(Unusable::Invalid(error.to_string())),
            }
        }
        Err(Unusable::TooLarge)
    }

    fn pay(&mut self, steps: u64) -> Result<(), Unusable> {
        if (self.spend)(steps) { Ok(()) } else { Err(Unusable::Unpaid) }
    }
}

fn has_program(error: &Error) -> bool {
    matches!(error, Error::CompileError(error) if matches!(**error, CompileError::PatternTooComplex))
}

fn is_too_large(error: &Error) -> bool {
    let Error::CompileError(error) = error else { return false };
    matches!(&**error, CompileError::InnerError(error) if error.size_limit().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { pattern_bytes: 8 * 1024, backtracking_pattern_bytes: 1024 };

    fn compile(pattern: &str) -> Result<Pattern, Unusable> {
        Pattern::compile(pattern, pattern.len(), Options::default(), LIMITS, &mut |_| true)
    }

    #[test]
    fn letters_are_switches() {
        let all = Options { ignore_case: true, multiline: true, dot_all: true, extended: true };
        assert_eq!(Options::parse("xsmi"), Ok(all));
        assert_eq!(Options::parse(""), Ok(Options::default()));
        assert_eq!(Options::parse("iq"), Err('q'));
    }

    #[test]
    fn a_pattern_says_what_it_takes() {
        for (pattern, least, most) in [
            ("^abc", LEAST_BYTES, LEAST_BYTES),
            (r"^[a-z]+@[a-z]+$", LEAST_BYTES, LEAST_BYTES),
            (r"\w{40}", 1 << 20, 8 << 20),
            (r"(?=.*\d)a", 1, 64 << 10),
            (r"(?=\w{9})a", 512 << 10, 1 << 20),
        ] {
            let bytes = compile(pattern).unwrap().bytes();
            assert!((least..=most).contains(&bytes), "{pattern}: {bytes}");
        }
    }

    #[test]
    fn what_is_too_large_is_told_from_what_is_wrong() {
        for pattern in [
            &"a".repeat(LIMITS.pattern_bytes + 1),
            &"(?=a)b".repeat(200),
            "((a{999}){999}){999}",
            r"\w{999}",
            r"(\w(?=x)\g<1>?\g<1>?)",
        ] {
            assert_eq!(compile(pattern).unwrap_err(), Unusable::TooLarge, "{pattern}");
        }
        let nested = format!("{}a{}", "(".repeat(4000), ")".repeat(4000));
        for pattern in ["(", "[b-a]", "\\", "*", &nested] {
            assert!(matches!(compile(pattern), Err(Unusable::Invalid(_))), "{pattern}");
        }
    }

    #[test]
    fn compiling_is_paid_for_before() {
        let cost = |pattern: &str| {
            let mut steps = 0;
            let pay = &mut |more| {
                steps += more;
                true
            };
            Pattern::compile(pattern, pattern.len(), Options::default(), LIMITS, pay).unwrap();
            steps
        };
        assert!(cost("abc") < 2_000);
        assert!(cost(r"\w{40}") > 1_000_000);
        let none = Pattern::compile("a", 1, Options::default(), LIMITS, &mut |_| false);
        assert_eq!(none.unwrap_err(), Unusable::Unpaid);
    }

    #[test]
    fn a_match_that_could_run_for_long_has_no_price() {
        assert_eq!(compile("(?=.*x)y").unwrap().steps(100_000), None);
        assert_eq!(compile(r"\w{60}x").unwrap().steps(100_000), None);
        assert!(compile("b[a-z]+[0-9]").unwrap().steps(2 << 20).is_some());
        assert!(compile("(?<=b)c").unwrap().steps(20_000).is_some());
    }
}
