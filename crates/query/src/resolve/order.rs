//! `ORDER BY`: paths, the keys and aggregates of groups, and scores.

use document::Value;

use super::Resolver;
use super::call::is_distance;
use super::query::FromScope;
use super::tree::{as_path, is_path};
use crate::error::Code;
use crate::functions;
use crate::logical::{Expression, Order, Projection, Query, Score, ScoreKind, SortKey};
use crate::syntax::ast::{self, Direction, Node, NodeKind, Span};

/// Scores of one rank, and keywords of one text. A plan repeats every score with each, and the text with every keyword.
const SCORES_MAX: usize = 16;
const KEYWORDS_MAX: usize = 64;

impl Resolver<'_> {
    pub(super) fn order(&mut self, query: &ast::Query, resolved: &Query, reach: FromScope) -> Order {
        let Some(order) = &query.order_by else { return Order::None };
        if order.rank {
            return self.rank(query, order, reach);
        }
        let keys = order.keys.iter().map(|key| self.sort_key(key, resolved));
        Order::Keys(keys.collect())
    }

    fn sort_key(&mut self, key: &ast::SortKey, resolved: &Query) -> SortKey {
        let grouped = !resolved.group_by.is_empty();
        let known = self.reports.len();
        let value = match self.projected(&key.node, resolved) {
            Some(value) if grouped => value,
            _ => self.expression(&key.node),
        };
        let best_first = match &value {
            Expression::Call(entry, arguments) if is_distance(entry) => larger_is_better(arguments),
            _ => false,
        };
        let sortable = grouped || is_path(&key.node) || is_score(&value);
        if !sortable && self.reports.len() == known {
            let message = "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.";
            self.report_as(Code::Number(2206), None, message.to_owned());
        }
        if matches!(&value, Expression::Call(entry, _) if entry.name == "VECTORDISTANCE")
            && key.direction.is_some()
        {
            let message =
                "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.";
            self.report("SC9002", key.node.span, message.to_owned());
        }
        let descending = key.direction.map_or(best_first, |direction| direction == Direction::Descending);
        if is_score(&value) && !descending {
            // A missing distance sorts last: texts come after numbers.
            let last = Expression::Literal(Value::String(String::new()));
            return SortKey { value: Expression::Coalesce(vec![value, last]), descending };
        }
        SortKey { value, descending }
    }

    /// Returns the member of the select list that a bare name stands for, unless a source has that name.
    fn projected(&self, node: &Node, resolved: &Query) -> Option<Expression> {
        let NodeKind::Name(name) = &node.kind else { return None };
        let Projection::Members(members) = &resolved.select else { return None };
        if self.find(name).is_some() {
            return None;
        }
        members.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    fn rank(&mut self, query: &ast::Query, order: &ast::OrderBy, reach: FromScope) -> Order {
        let refused = if reach != FromScope::Container || self.statements > 1 {
            Some("ORDER BY RANK is not allowed in a subquery.")
        } else if query.from.is_empty() {
            Some("ORDER BY RANK needs a container to rank the items of.")
        } else if !is_container(&query.from) {
            Some("ORDER BY RANK ranks the items of the container; FROM must name just that.")
        } else if order.keys.iter().any(|key| key.direction.is_some()) {
            Some("Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed.")
        } else if order.keys.len() > 1 {
            Some("ORDER BY RANK takes one function; several are combined by RRF.")
        } else if !query.group_by.is_empty() || query.distinct {
            Some("ORDER BY RANK cannot be combined with GROUP BY or DISTINCT.")
        } else {
            None
        };
        if let Some(message) = refused {
            self.report("SC9002", order.span, message.to_owned());
            return Order::None;
        }
        Order::Rank(order.keys.iter().flat_map(|key| self.scores(key)).collect())
    }

    /// Returns the components of a rank: one function, or those of `RRF`.
    fn scores(&mut self, key: &ast::SortKey) -> Vec<Score> {
        let NodeKind::Call { name, udf: false, arguments } = &key.node.kind else {
            self.no_score(key.node.span);
            return Vec::new();
        };
        if !name.text.eq_ignore_ascii_case("RRF") {
            return self.score(&key.node).into_iter().collect();
        }
        let (components, weights) = self.weights(arguments);
        if components.len() > SCORES_MAX {
            let message = format!("RRF takes at most {SCORES_MAX} functions.");
            self.report("SC9002", key.node.span, message);
            return Vec::new();
        }
        if components.is_empty() {
            self.fits("RRF", 1, usize::MAX, 0, key.node.span);
        }
        if weights.as_ref().is_some_and(|weights| weights.len() != components.len()) {
            let message = "The weights of RRF must be as many as its functions.".to_owned();
            self.report("SC9002", key.node.span, message);
        }
        let mut scores: Vec<Score> =
            components.iter().filter_map(|component| self.score(component)).collect();
        for (score, weight) in scores.iter_mut().zip(weights.unwrap_or_default()) {
            score.weight = weight;
        }
        scores
    }

    /// Splits the arguments of `RRF` into functions and the array of weights that may follow them.
    fn weights<'n>(&mut self, arguments: &'n [Node]) -> (&'n [Node], Option<Vec<f64>>) {
        let Some((last, components)) = arguments.split_last() else { return (arguments, None) };
        if matches!(last.kind, NodeKind::Call { .. }) {
            return (arguments, None);
        }
        let weights = match self.expression(last) {
            Expression::Literal(Value::Array(weights)) => {
                weights.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>()
            }
            _ => None,
        };
        if weights.is_none() {
            let message = "The weights of RRF must be an array of numbers.".to_owned();
            self.report("SC9002", last.span, message);
        }
        (components, weights)
    }

    fn score(&mut self, node: &Node) -> Option<Score> {
        let NodeKind::Call { name, udf: false, arguments } = &node.kind else {
            self.no_score(node.span);
            return None;
        };
        let kind = if name.text.eq_ignore_ascii_case("FULLTEXTSCORE") {
            if !self.fits("FULLTEXTSCORE", 2, usize::MAX, arguments.len(), node.span) {
                return None;
            }
            self.full_text(arguments)?
        } else if name.text.eq_ignore_ascii_case("VECTORDISTANCE") {
            let distance = self.expression(node);
            let Expression::Call(_, arguments) = &distance else { return None };
            let larger_is_better = larger_is_better(arguments);
            ScoreKind::Vector { distance, larger_is_better }
        } else if name.text.eq_ignore_ascii_case("RRF") {
            // A rank is fused of scores, and a rank is none.
            let message = format!("'{}' is not a recognized built-in function name.", name.text);
            self.report("SC2005", name.span, message);
            return None;
        } else {
            if functions::find(&name.text, self.dialect.surface).is_some() {
                self.no_score(node.span)
            } else {
                self.expression(node)
            };
            return None;
        };
        Some(Score { kind, weight: 1.0 })
    }

    /// `FullTextScore(path, keyword, ...)`, or with one array of keywords.
    fn full_text(&mut self, arguments: &[Node]) -> Option<ScoreKind> {
        let (text, keywords) = arguments.split_first()?;
        let span = text.span;
        let text = if let Some(path) = as_path(text) {
            self.expression(&path)
        } else {
            let message = "The first argument of FullTextScore must be a path.".to_owned();
            self.report("SC9002", text.span, message);
            self.expression(text)
        };
        let mut texts = Vec::new();
        for keyword in keywords {
            match self.expression(keyword) {
                Expression::Literal(Value::String(keyword)) => texts.push(keyword),
                Expression::Literal(Value::Array(several))
                    if several.iter().all(|keyword| keyword.as_str().is_some()) =>
                {
                    texts.extend(several.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                _ => {
                    let message = "The keywords of FullTextScore must be constant strings.".to_owned();
                    self.report("SC9002", keyword.span, message);
                }
            }
        }
        if texts.len() > KEYWORDS_MAX {
            let message = format!("FullTextScore takes at most {KEYWORDS_MAX} keywords.");
            self.report("SC9002", span, message);
            return None;
        }
        Some(ScoreKind::FullText { text, keywords: texts })
    }

    fn no_score(&mut self, span: Span) -> Expression {
        let message = "The ORDER BY RANK clause takes FullTextScore, VectorDistance or RRF.".to_owned();
        self.report("SC9002", span, message)
    }
}

/// Returns `true` if a sort key is computed by one of the functions that the service sorts by.
fn is_score(value: &Expression) -> bool {
    matches!(value, Expression::Call(entry, _) if is_distance(entry) || entry.name == "_FULLTEXTSCORE")
}

/// Returns `true` if near vectors have a large distance: so for the cosine, the default, and the dot product.
fn larger_is_better(arguments: &[Expression]) -> bool {
    let options = arguments.get(3);
    let Some(Expression::Literal(options)) = options else { return true };
    let function = options.get("distanceFunction").and_then(Value::as_str);
    !function.is_some_and(|function| function.eq_ignore_ascii_case("euclidean"))
}

/// Returns `true` if `FROM` names the container and nothing inside or beside it.
fn is_container(from: &[ast::Source]) -> bool {
    let [source] = from else { return false };
    !source.iterates && matches!(&source.collection, ast::Collection::Path { steps, .. } if steps.is_empty())
}
