//! `$regexMatch`, `$regexFind`, `$regexFindAll`. A constant pattern is compiled once, when the expression is parsed.

use std::sync::Arc;

use bson::{Document, Value, ValueRef};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::expression::node::{Node, Special};
use crate::expression::operand::{Budget, Operand, is_nullish};
use crate::expression::parse::{Parser, named_fields};
use crate::expression::scope::Scope;
use crate::expression::table::{Group, Names, Refusal, optional, own, required};
use crate::regex::{Groups, Pattern};

pub(crate) const GROUP: Group = Group {
    foldable: false,
    operators: &[
        own("$regexMatch", |parser, name, argument| parse(parser, name, argument, Wanted::Match)),
        own("$regexFind", |parser, name, argument| parse(parser, name, argument, Wanted::First)),
        own("$regexFindAll", |parser, name, argument| parse(parser, name, argument, Wanted::All)),
    ],
};

/// The operation on a pattern and a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Match,
    First,
    All,
}

#[derive(Debug)]
struct Regex {
    name: &'static str,
    wanted: Wanted,
    input: Node,
    pattern: Source,
}

/// Where the pattern comes from. `None` is null, which matches nothing.
#[derive(Debug)]
enum Source {
    Known(Option<Pattern>),
    Computed { regex: Node, options: Option<Node> },
}

fn parse(
    parser: &mut Parser<'_>,
    name: &'static str,
    argument: ValueRef<'_>,
    wanted: Wanted,
) -> Result<Node> {
    const NAMES: Names = Names {
        parameters: &[
            required("input", 31022, "requires 'input' parameter"),
            required("regex", 31023, "requires 'regex' parameter"),
            optional("options"),
        ],
        not_a_document: Refusal(51103, "expects an object of named arguments but found: {}"),
        unknown: Refusal(31024, "found an unknown argument: {}"),
    };
    let fields = named_fields(&NAMES, argument)
        .map_err(|error| Error::new(error.code, format!("{name} {}", error.message)))?;
    let field = |at: usize| fields[at].unwrap_or(ValueRef::Null);
    let input = parser.operand(field(0))?;
    let regex = parser.operand(field(1))?;
    let options = fields[2].map(|options| parser.operand(options)).transpose()?;
    let keep = |pattern: &str, options: &str| Pattern::parse(pattern, options, parser.patterns());
    let known = |regex: &Option<Value>, options: Option<&Value>| {
        compile(name, regex.as_ref().map(Value::view), options.map(Value::view), keep).map(Source::Known)
    };
    let pattern = match (&regex, &options) {
        (Node::Constant(regex), None) => known(regex, None)?,
        (Node::Constant(regex), Some(Node::Constant(options))) => known(regex, options.as_ref())?,
        _ => Source::Computed { regex, options },
    };
    Ok(Node::Special(Arc::new(Regex { name, wanted, input, pattern })))
}

fn compile(
    name: &str,
    regex: Option<ValueRef<'_>>,
    options: Option<ValueRef<'_>>,
    make: impl FnOnce(&str, &str) -> Result<Pattern>,
) -> Result<Option<Pattern>> {
    let refuse = |code: i32, words: &str| Err(Error::location(code, format!("{name}{words}")));
    let given = match options {
        Some(ValueRef::String(options)) => Some(options),
        options if is_nullish(options) => None,
        _ => return refuse(51106, " needs 'options' to be of type string"),
    };
    let (pattern, own) = match regex {
        Some(ValueRef::String(pattern)) => (Some(pattern), ""),
        Some(ValueRef::Regex(regex)) => (Some(regex.pattern), regex.options),
        regex if is_nullish(regex) => (None, ""),
        _ => return refuse(51105, " needs 'regex' to be of type string or regex"),
    };
    if given.is_some() && !own.is_empty() {
        return refuse(51107, ": found regex option(s) specified in both 'regex' and 'option' fields");
    }
    if pattern.is_some_and(|pattern| pattern.contains('\0')) {
        return refuse(51109, ": regular expression cannot contain an embedded null byte");
    }
    let options = given.unwrap_or(own);
    if options.contains('\0') {
        return refuse(51110, ": regular expression options cannot contain an embedded null byte");
    }
    if let Some(letter) = options.chars().find(|letter| !"imsxu".contains(*letter)) {
        return refuse(51108, &format!(" invalid flag in regex options: {letter}"));
    }
    let invalid = |error: Error| match error.code {
        Code::MAX_TIME_MS_EXPIRED => error,
        _ => Error::location(51111, format!("Invalid Regex in {name}: {}", error.message)),
    };
    pattern.map(|pattern| make(pattern, options).map_err(invalid)).transpose()
}

impl Special for Regex {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        let input = self.input.evaluate(scope, context)?;
        let text = match input.view() {
            Some(ValueRef::String(text)) => Some(text),
            value if is_nullish(value) => None,
            _ => {
                let message = format!("{} needs 'input' to be of type string", self.name);
                return Err(Error::location(51104, message));
            }
        };
        let computed;
        let pattern = match &self.pattern {
            Source::Known(pattern) => pattern.as_ref(),
            Source::Computed { regex, options } => {
                let regex = regex.evaluate(scope, context)?;
                let options = options.as_ref().map(|options| options.evaluate(scope, context)).transpose()?;
                let make = |pattern: &str, options: &str| Pattern::compute(pattern, options, context);
                let options = options.as_ref().and_then(Operand::view);
                computed = compile(self.name, regex.view(), options, make)?;
                computed.as_ref()
            }
        };
        let (Some(text), Some(pattern)) = (text, pattern) else {
            return Ok(Operand::Owned(match self.wanted {
                Wanted::Match => Value::Bool(false),
                Wanted::First => Value::Null,
                Wanted::All => Value::Array(Vec::new()),
            }));
        };
        Ok(Operand::Owned(match self.wanted {
            Wanted::Match => Value::Bool(pattern.is_match(text, context)?),
            Wanted::First => match pattern.captures(text, 0, context)? {
                Some(groups) => found(text, &groups, text[..start(&groups)].chars().count()),
                None => Value::Null,
            },
            Wanted::All => find_all(pattern, text, context)?,
        }))
    }
}

fn start(groups: &Groups) -> usize {
    groups.first().copied().flatten().map_or(0, |(start, _)| start)
}

/// Returns one match as a document; its position counts code points.
fn found(text: &str, groups: &Groups, position: usize) -> Value {
    let part = |group: &Option<(usize, usize)>| match group {
        Some((start, end)) => Value::from(&text[*start..*end]),
        None => Value::Null,
    };
    let captures: Vec<Value> = groups.iter().skip(1).map(part).collect();
    Value::Document(
        Document::new()
            .with("match", groups.first().map_or(Value::Null, part))
            .with("idx", position as i32)
            .with("captures", captures),
    )
}

fn find_all(pattern: &Pattern, text: &str, context: &Context) -> Result<Value> {
    let mut all = Vec::new();
    let mut budget = Budget::new(context);
    let (mut from, mut counted, mut position) = (0, 0, 0);
    while let Some(groups) = pattern.captures(text, from, context)? {
        let Some((start, end)) = groups.first().copied().flatten() else { break };
        position += text[counted..start].chars().count();
        counted = start;
        let value = found(text, &groups, position);
        budget.item(value.view())?;
        all.push(value);
        // After an empty match the search continues after the next letter.
        from = if end > start { end } else { end + text[end..].chars().next().map_or(1, char::len_utf8) };
        if from >= text.len() {
            break;
        }
    }
    Ok(Value::Array(all))
}
