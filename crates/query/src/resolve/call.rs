//! Calls: functions of the table, aggregates, and special forms in the syntax of a call.

use document::{Object, Value};

use super::level::Aggregation;
use super::tree::{has_aggregate, has_aggregate_or_subquery};
use super::{GROUP_VALUES_MAX, Purpose, Resolver};
use crate::functions::{self, Entry};
use crate::logical::{Aggregate, AggregateKind, Expression, Segment};
use crate::syntax::ast::{Name, Node, Span};

/// Returns the aggregate of that name, in any case.
pub(crate) fn aggregate_kind(name: &str) -> Option<AggregateKind> {
    const KINDS: [(&str, AggregateKind); 8] = [
        ("AVG", AggregateKind::Average),
        ("COUNT", AggregateKind::Count),
        ("COUNTIF", AggregateKind::CountIf),
        ("MAKELIST", AggregateKind::MakeList),
        ("MAKESET", AggregateKind::MakeSet),
        ("MAX", AggregateKind::Max),
        ("MIN", AggregateKind::Min),
        ("SUM", AggregateKind::Sum),
    ];
    KINDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind)
}

/// Returns `true` if a function compares vectors. Rewritten queries of fused ranks have their own name for it.
pub(super) fn is_distance(entry: &Entry) -> bool {
    ["VECTORDISTANCE", "_VECTORSCORE"].contains(&entry.name)
}

/// The functions that only order items.
pub(super) const SCORES: [&str; 2] = ["FULLTEXTSCORE", "RRF"];

impl Resolver<'_> {
    pub(super) fn call(&mut self, name: &Name, udf: bool, arguments: &[Node], span: Span) -> Expression {
        if udf {
            return self.user_defined(name, arguments, span);
        }
        if let Some(kind) = aggregate_kind(&name.text) {
            return self.aggregate(kind, &name.text, arguments, span);
        }
        let upper = name.text.to_ascii_uppercase();
        if upper == "IIF" {
            return self.conditional(arguments, span);
        }
        if SCORES.contains(&upper.as_str()) {
            let message = format!("The {} function is only allowed in the ORDER BY RANK clause.", name.text);
            return self.report("SC9002", span, message);
        }
        let Some(entry) = functions::find(&name.text, self.dialect.surface) else {
            let message = format!("'{}' is not a recognized built-in function name.", name.text);
            return self.report("SC2005", name.span, message);
        };
        let resolved = self.all(arguments);
        if !self.fits(entry.name, entry.least, entry.most, arguments.len(), span) {
            return Expression::Undefined;
        }
        if is_distance(entry) {
            self.vector_distance(entry, resolved)
        } else {
            Expression::Call(entry, resolved)
        }
    }

    /// Returns `true` if a call has as many arguments as the function takes.
    pub(super) fn fits(&mut self, name: &str, least: usize, most: usize, given: usize, span: Span) -> bool {
        if (least..=most).contains(&given) {
            return true;
        }
        let count = match (least, most) {
            (least, most) if least == most => least.to_string(),
            (least, usize::MAX) => format!("at least {least}"),
            (least, most) => format!("{least} to {most}"),
        };
        self.report("SC2050", span, format!("The {name} function requires {count} argument(s)."));
        false
    }

    fn user_defined(&mut self, name: &Name, arguments: &[Node], span: Span) -> Expression {
        self.all(arguments);
        if self.purpose == Purpose::Run {
            let name = name.text.strip_prefix("udf.").unwrap_or(&name.text);
            let message = format!(
                "The user-defined function 'udf.{name}' cannot be run: Bolide does not execute JavaScript."
            );
            return self.report("SC9001", span, message);
        }
        // An unknown value: that of a slot which is never bound.
        Expression::Path { slot: usize::MAX, segments: Vec::new() }
    }

    fn conditional(&mut self, arguments: &[Node], span: Span) -> Expression {
        let [condition, then, otherwise] = arguments else {
            self.fits("IIF", 3, 3, arguments.len(), span);
            return Expression::Undefined;
        };
        Expression::Conditional {
            condition: self.boxed(condition),
            then: self.boxed(then),
            otherwise: self.boxed(otherwise),
        }
    }

    fn aggregate(&mut self, kind: AggregateKind, name: &str, arguments: &[Node], span: Span) -> Expression {
        let [argument] = arguments else {
            self.fits(&name.to_ascii_uppercase(), 1, 1, arguments.len(), span);
            return Expression::Undefined;
        };
        // Over the rows of a subquery, which one item has, the argument may be a subquery. Over those of all items the
        // service refuses it.
        let refused = if self.levels.len() > 1 { has_aggregate } else { has_aggregate_or_subquery };
        if refused(argument) {
            let message = "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.";
            return self.report("SC2101", span, message.to_owned());
        }
        let Aggregation::Collected { slot } = self.level().aggregation else {
            let message =
                format!("The aggregate function {} is not allowed here.", name.to_ascii_uppercase());
            return self.report("SC9002", span, message);
        };
        let aggregate = Aggregate { kind, argument: self.expression(argument) };
        let aggregates = &mut self.level().aggregates;
        let known = aggregates.iter().position(|known| *known == aggregate);
        if known.is_none() && aggregates.len() == GROUP_VALUES_MAX {
            let message = format!("The query has more than {GROUP_VALUES_MAX} different aggregates.");
            return self.report("SC9002", span, message);
        }
        let number = known.unwrap_or_else(|| {
            aggregates.push(aggregate);
            aggregates.len() - 1
        });
        Expression::Path { slot: slot + number, segments: Vec::new() }
    }

    /// `VectorDistance(a, b [, exact [, options]])`: the container's definition says how its vectors compare, unless
    /// the options do.
    fn vector_distance(&mut self, entry: &'static Entry, mut arguments: Vec<Expression>) -> Expression {
        const FUNCTION: &str = "distanceFunction";
        let Some(function) = self.embedding_of(&arguments) else { return Expression::Call(entry, arguments) };
        if arguments.len() == 2 {
            arguments.push(Expression::Literal(Value::Bool(false)));
        }
        if arguments.len() == 3 {
            arguments.push(Expression::Literal(Value::Object(Object::new())));
        }
        if let Some(Expression::Literal(Value::Object(options))) = arguments.get_mut(3)
            && !options.contains(FUNCTION)
        {
            options.insert(FUNCTION, function);
        }
        Expression::Call(entry, arguments)
    }

    /// Returns the distance function of the container's embedding among the two vectors.
    fn embedding_of(&self, arguments: &[Expression]) -> Option<String> {
        arguments.iter().take(2).find_map(|argument| {
            let Expression::Path { slot: 0, segments } = argument else { return None };
            let embeds = |path: &document::Path| {
                let names = path.segments();
                names.len() == segments.len()
                    && names
                        .iter()
                        .zip(segments)
                        .all(|(name, segment)| *segment == Segment::Name(name.clone()))
            };
            self.dialect
                .embeddings
                .iter()
                .find(|(path, _)| embeds(path))
                .map(|(_, function)| function.clone())
        })
    }
}
