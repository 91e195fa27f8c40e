//! Regular expressions: compiled once per request, bounded in size and in work.
//!
//! [`patterns`] has the bounds; this module charges the request, and caches its compiled patterns.
//!
//! A pattern or option that is not valid makes the result undefined, as the service documents it; a valid pattern
//! that is too large for this server is an error.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use document::Value;
use fancy_regex::Error;
use patterns::{Limits, Options, Pattern, Unusable};

use super::{Arg, Entry, bounds, text};
use crate::functions::context::{Context, Fault};

/// The functions of this file.
pub(crate) const TABLE: &[Entry] = &[
    Entry { name: "REGEXEXTRACT", least: 2, most: 4, run: extract },
    Entry { name: "REGEXEXTRACTALL", least: 2, most: 4, run: extract_all },
    Entry { name: "REGEXMATCH", least: 2, most: 3, run: matches },
];

/// Longest patterns.
const LIMITS: Limits = Limits { pattern_bytes: 8 * 1024, backtracking_pattern_bytes: 1024 };

/// The most patterns that are cached: more than most queries have, few enough to bound their memory.
const CACHED_MAX: usize = 8;

/// The patterns that a request has compiled so far, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Patterns(RefCell<Vec<CachedPattern>>);

#[derive(Debug)]
struct CachedPattern {
    pattern: String,
    options: Options,
    compiled: Result<Arc<Pattern>, Unusable>,
}

impl Patterns {
    fn get(&self, pattern: &str, options: Options, context: &Context) -> Result<Arc<Pattern>, Unusable> {
        let mut kept = self.0.borrow_mut();
        if let Some(known) = kept.iter().find(|known| known.options == options && known.pattern == pattern) {
            return known.compiled.clone();
        }
        let mut spend = |steps| context.spend(steps);
        let compiled = Pattern::compile(pattern, pattern.len(), options, LIMITS, &mut spend).map(Arc::new);
        if kept.len() == CACHED_MAX {
            kept.remove(0);
        }
        kept.push(CachedPattern { pattern: pattern.to_owned(), options, compiled: compiled.clone() });
        compiled
    }
}

/// One call: a text, its compiled pattern, and the context.
struct Search<'a> {
    name: &'static str,
    subject: &'a str,
    compiled: Arc<Pattern>,
    context: &'a Context,
}

impl<'a> Search<'a> {
    /// Reads text, pattern and options, and charges one match.
    fn new(name: &'static str, arguments: &[Arg<'a>], context: &'a Context) -> Option<Search<'a>> {
        let (subject, pattern) = (text(arguments[0])?, text(arguments[1])?);
        let options = arguments.get(2).map_or(Some(""), |options| text(*options))?;
        let options = Options::parse(options).ok()?;
        let compiled = match context.patterns.get(pattern, options, context) {
            Ok(compiled) => compiled,
            // The fault is already recorded.
            Err(Unusable::Invalid(_) | Unusable::Unpaid) => return None,
            Err(Unusable::TooLarge) => {
                context.fail(Fault::Refused(format!("The pattern of {name} is too large.")));
                return None;
            }
        };
        let search = Search { name, subject, compiled, context };
        search.pay(subject.len(), 1)?;
        Some(search)
    }

    /// Charges a match on that many bytes, or a fraction of it.
    fn pay(&self, bytes: usize, divisor: u64) -> Option<()> {
        let Some(steps) = self.compiled.steps(bytes) else {
            let message = format!("A text of {bytes} bytes is too long for the pattern of {}.", self.name);
            self.context.fail(Fault::Refused(message));
            return None;
        };
        self.context.spend(steps / divisor + 1).then_some(())
    }

    /// Returns the result of a match, unless it failed; then records the fault.
    fn checked<T>(&self, result: Result<T, Error>) -> Option<T> {
        result
            .inspect_err(|_| {
                let message = format!("The pattern of {} backtracks too much on a text.", self.name);
                self.context.fail(Fault::Refused(message));
            })
            .ok()
    }

    /// Returns the group that the fourth argument names, the whole match being number 0.
    fn group(&self, arguments: &[Arg<'_>]) -> Option<usize> {
        let number = arguments.get(3).map_or(Some(0), |number| (*number)?.as_i64())?;
        usize::try_from(number).ok().filter(|number| *number < self.compiled.regex().captures_len())
    }

    /// Returns where the first match from that byte on is, and where its group is.
    fn next(&self, from: usize, group: usize) -> Option<(Range<usize>, Option<Range<usize>>)> {
        let regex = self.compiled.regex();
        if group == 0 {
            let found = self.checked(regex.find_from_pos(self.subject, from))??.range();
            return Some((found.clone(), Some(found)));
        }
        let captures = self.checked(regex.captures_from_pos(self.subject, from))??;
        Some((captures.get(0)?.range(), captures.get(group).map(|found| found.range())))
    }
}

fn matches(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let search = Search::new("REGEXMATCH", arguments, context)?;
    search.checked(search.compiled.regex().is_match(search.subject)).map(Value::Bool)
}

/// Returns the first match or a group of it; undefined if there is none.
fn extract(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let search = Search::new("REGEXEXTRACT", arguments, context)?;
    let (_, found) = search.next(0, search.group(arguments)?)?;
    Some(search.subject[found?].into())
}

/// Returns all matches, or of each the group if it took part.
fn extract_all(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let search = Search::new("REGEXEXTRACTALL", arguments, context)?;
    let group = search.group(arguments)?;
    let (mut from, mut bytes, mut items) = (0, 0, Vec::new());
    while let Some((whole, found)) = search.next(from, group) {
        // Most searches end close to where they begin, hence the fraction; groups of a look-ahead may overlap, hence
        // the charge by their size.
        search.pay(search.subject.len() - whole.end, 8)?;
        if let Some(found) = found {
            bytes += found.len();
            bounds::limit_text(bytes, context)?;
            bounds::limit_list(items.len() + 1, context)?;
            bounds::walk(found.len(), context)?;
            items.push(Value::from(&search.subject[found]));
        }
        from = whole.end;
        if whole.is_empty() {
            let Some(next) = search.subject[from..].chars().next() else { break };
            from += next.len_utf8();
        }
    }
    context.fault().is_none().then_some(Value::Array(items))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::functions::testing::{call_in, check};

    fn run(name: &str, subject: &str, pattern: &str) -> (Option<Value>, Option<Fault>) {
        let context = Context::new(0, 1);
        let arguments = [Value::from(subject).to_json(), Value::from(pattern).to_json()];
        (call_in(&context, name, &arguments.join(",")), context.fault())
    }

    fn refusal(name: &str, subject: &str, pattern: &str) -> String {
        match run(name, subject, pattern) {
            (None, Some(Fault::Refused(message))) => message,
            other => panic!("{name} of {pattern}: {other:?}"),
        }
    }

    #[test]
    fn a_pattern_is_looked_for_anywhere_in_the_text() {
        check(&[
            ("REGEXMATCH", r#""abcd", "ABC""#, "false"),
            ("REGEXMATCH", r#""abcd", "ABC", "i""#, "true"),
            ("REGEXMATCH", r#""abcd", "ab.", """#, "true"),
            ("REGEXMATCH", r#""abcd", "ab c", "x""#, "true"),
            ("REGEXMATCH", r#""abcd", "aB c", "ix""#, "true"),
            ("REGEXMATCH", r#""03a", "[0-9]""#, "true"),
            ("REGEXMATCH", r#""salt3824908", "salt{1}""#, "true"),
            ("REGEXMATCH", r#""shame", "s....", "i""#, "true"),
            ("REGEXMATCH", r#""a\nb", "^b$""#, "false"),
            ("REGEXMATCH", r#""a\nb", "^b$", "m""#, "true"),
            ("REGEXMATCH", r#""a\nb", "a.b""#, "false"),
            ("REGEXMATCH", r#""a\nb", "a.b", "s""#, "true"),
            ("REGEXMATCH", r#""", "^$""#, "true"),
            ("REGEXMATCH", r#""abc", """#, "true"),
            ("REGEXMATCH", r#""x😀y", "^x.y$""#, "true"),
            ("REGEXMATCH", r#""ÉCLAIR", "éclair", "i""#, "true"),
            ("REGEXMATCH", r#""abab", "^(ab)\\1$""#, "true"),
            ("REGEXMATCH", r#""Passw0rd", "^(?=.*[A-Z])(?=.*\\d).{8,}$""#, "true"),
            ("REGEXMATCH", r#""password", "^(?=.*[A-Z])(?=.*\\d).{8,}$""#, "false"),
            ("REGEXMATCH", r#""price: 5", "(?<=price: )\\d""#, "true"),
            ("REGEXMATCH", r#""ab", "a(?!b)""#, "false"),
            ("REGEXMATCH", r#""abc", "(""#, "undefined"),
            ("REGEXMATCH", r#""abc", "[b-a]""#, "undefined"),
            ("REGEXMATCH", r#""abc", "\\""#, "undefined"),
            ("REGEXMATCH", r#""abc", "a", "q""#, "undefined"),
            ("REGEXMATCH", r#""abc", "a", undefined"#, "undefined"),
            ("REGEXMATCH", r#""abc", 1"#, "undefined"),
            ("REGEXMATCH", r#"null, "a""#, "undefined"),
            ("REGEXMATCH", r#"undefined, "a""#, "undefined"),
        ]);
    }

    #[test]
    fn matches_and_their_groups_are_taken_out() {
        check(&[
            ("REGEXEXTRACT", r#""SKU-93821-BLUE", "[A-Z]+""#, r#""SKU""#),
            ("REGEXEXTRACT", r#""SKU-93821-BLUE", "sku-([0-9]+)", "i", 1"#, r#""93821""#),
            ("REGEXEXTRACT", r#""SKU-93821-BLUE", "sku-([0-9]+)", "i", 0"#, r#""SKU-93821""#),
            ("REGEXEXTRACT", r#""SKU-93821-BLUE", "sku-([0-9]+)", "i", 2"#, "undefined"),
            ("REGEXEXTRACT", r#""SKU-93821-BLUE", "sku-([0-9]+)", "i", -1"#, "undefined"),
            ("REGEXEXTRACT", r#""SKU-93821-BLUE", "sku-([0-9]+)", "i", 0.5"#, "undefined"),
            ("REGEXEXTRACT", r#""SKU-93821-BLUE", "sku-([0-9]+)", "i", "1""#, "undefined"),
            ("REGEXEXTRACT", r#""abc", "x(y)?|abc", "", 1"#, "undefined"),
            ("REGEXEXTRACT", r#""abc", "[0-9]""#, "undefined"),
            ("REGEXEXTRACT", r#""abc", "x*""#, r#""""#),
            ("REGEXEXTRACT", r#""aXbXc", "(?<=X).(?=X)""#, r#""b""#),
            ("REGEXEXTRACT", r#""abc", "*""#, "undefined"),
            ("REGEXEXTRACT", r#"1, "1""#, "undefined"),
            ("REGEXEXTRACTALL", r#""A12-B34-C56", "[0-9]+""#, r#"["12","34","56"]"#),
            ("REGEXEXTRACTALL", r#""A12-B34-C56", "([A-Z])[0-9]+", "", 1"#, r#"["A","B","C"]"#),
            ("REGEXEXTRACTALL", r#""a1b", "([a-z])|([0-9])", "", 2"#, r#"["1"]"#),
            ("REGEXEXTRACTALL", r#""abc", "[0-9]""#, "[]"),
            ("REGEXEXTRACTALL", r#""baac", "a*""#, r#"["","aa","",""]"#),
            ("REGEXEXTRACTALL", r#""é😀", """#, r#"["","",""]"#),
            ("REGEXEXTRACTALL", r#""aabbc", "(.)\\1""#, r#"["aa","bb"]"#),
            ("REGEXEXTRACTALL", r#""abc", "(?=(.*))", "", 1"#, r#"["abc","bc","c",""]"#),
            ("REGEXEXTRACTALL", r#""abc", "a", "i", 1"#, "undefined"),
            ("REGEXEXTRACTALL", r#""abc", "(""#, "undefined"),
            ("REGEXEXTRACTALL", r#""abc", undefined"#, "undefined"),
        ]);
    }

    #[test]
    fn patterns_are_compiled_once_and_few_are_kept() {
        let context = Context::new(0, 1);
        let get = |pattern: &str, options| {
            context.patterns.get(pattern, Options::parse(options).unwrap(), &context)
        };
        let first = get("a+", "").unwrap();
        assert!(Arc::ptr_eq(&first, &get("a+", "").unwrap()));
        assert!(!Arc::ptr_eq(&first, &get("a+", "i").unwrap()));
        assert!(matches!(get("(", "").unwrap_err(), Unusable::Invalid(_)));
        for number in 0..20 {
            get(&format!("a{number}"), "").unwrap();
        }
        assert_eq!(context.patterns.0.borrow().len(), CACHED_MAX);
        assert!(!Arc::ptr_eq(&first, &get("a+", "").unwrap()));

        let poor = Context::new(0, 1).with_budget(1000);
        assert_eq!(call_in(&poor, "REGEXMATCH", r#""a", "a""#), None);
        assert_eq!(poor.fault(), Some(Fault::OutOfBudget));
    }

    #[test]
    fn compiling_a_large_automaton_is_dear() {
        for (pattern, fits) in [("^[a-z]+@[a-z]+$", true), (r"\\w{40}", false)] {
            let context = Context::new(0, 1).with_budget(1_000_000);
            call_in(&context, "REGEXMATCH", &format!(r#""a", "{pattern}""#));
            assert_eq!(context.fault().is_none(), fits, "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_backtracks_without_end_is_refused_by_name() {
        let text = "a".repeat(5_000);
        let message = refusal("REGEXMATCH", &text, r"(a*)*\1b");
        assert_eq!(message, "The pattern of REGEXMATCH backtracks too much on a text.");
        let message = refusal("REGEXEXTRACTALL", &text, r"(a*)*\1b");
        assert_eq!(message, "The pattern of REGEXEXTRACTALL backtracks too much on a text.");
        let automaton = run("REGEXMATCH", &text, "(a*)*b");
        assert_eq!(automaton, (Some(Value::Bool(false)), None));
    }

    #[test]
    fn what_could_run_for_long_is_refused_before_it_runs() {
        let message = refusal("REGEXMATCH", &"a".repeat(100_000), "(?=.*x)y");
        assert_eq!(message, "A text of 100000 bytes is too long for the pattern of REGEXMATCH.");
        refusal("REGEXMATCH", &"a".repeat(100_000), r"\w{60}x");
        let no_match = (Some(Value::Bool(false)), None);
        assert_eq!(run("REGEXMATCH", &"a".repeat(2 << 20), "b[a-z]+[0-9]"), no_match);
        assert_eq!(run("REGEXMATCH", &"a".repeat(20_000), "(?<=b)c"), no_match);
    }

    #[test]
    fn a_pattern_that_is_too_large_is_refused() {
        let patterns = [
            &"a".repeat(LIMITS.pattern_bytes + 1),
            &"(?=a)b".repeat(200),
            "((a{999}){999}){999}",
            r"\w{999}",
            r"(\w(?=x)\g<1>?\g<1>?)",
        ];
        for pattern in patterns {
            let message = refusal("REGEXEXTRACT", "a", pattern);
            assert_eq!(message, "The pattern of REGEXEXTRACT is too large.", "{pattern}");
        }
        let nested = format!("{}a{}", "(".repeat(4000), ")".repeat(4000));
        assert_eq!(run("REGEXMATCH", "a", &nested), (None, None), "nested too deeply is not valid");
        assert_eq!(run("REGEXMATCH", "a@b.c", r"^[\w.+-]+@[\w-]+(\.[\w-]+)+$").1, None);
    }

    #[test]
    fn what_is_taken_out_is_bounded() {
        let context = Context::new(0, 1);
        let arguments = format!(r#""{}", "(?=(.*))", "", 1"#, "a".repeat(10_000));
        assert_eq!(call_in(&context, "REGEXEXTRACTALL", &arguments), None);
        assert!(matches!(context.fault(), Some(Fault::OutOfMemory { .. })));
    }

    /// Pieces of patterns; put together at random they are now and then valid.
    const PIECES: &[&str] = &[
        "a", "b", "é", ".", "(", ")", "(?=", "(?<=", "(?!", "(?<!", "(?>", "(?:", r"\1", r"\b", r"\w", r"\D",
        "[", "[^a]", "]", "*", "+", "?", "{2}", "{0,3}", "|", "^", "$", r"\K", r"\G", r"\g<1>", r"\Z",
        "(?i)",
    ];

    proptest! {
        #[test]
        fn no_pattern_panics(
            subject in "[ab1é\n]{0,12}",
            pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12),
        ) {
            for name in ["REGEXMATCH", "REGEXEXTRACT", "REGEXEXTRACTALL"] {
                run(name, &subject, &pieces.concat());
            }
        }
    }
}
