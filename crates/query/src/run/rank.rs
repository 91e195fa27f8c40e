//! `ORDER BY RANK`: scores over all items that match, fused into one order.
//!
//! A score depends on all items: BM25 weighs a word by how many texts have it, and rank fusion counts ranks. So the
//! items are read twice, once for the [statistics](Ranking::observe) over every live item and once to be
//! [scored](Ranking::score).
//!
//! Fusion is the reciprocal kind: an item's rank in each component, equal scores sharing one, adds `weight / (60 + rank)`.

use document::ValueRef;

use crate::evaluate::{self, Environment, each_binding, evaluate};
use crate::functions::context::{Context, Fault};
use crate::functions::full_text::{Corpus, Phrase, bm25, tokens};
use crate::logical::{Expression, Order, Query, Score, ScoreKind};
use crate::row::{Operand, Row};

/// The constant of reciprocal rank fusion.
const FUSION: f64 = 60.0;

/// Computes the order of a query's items by rank.
#[derive(Debug)]
pub struct Ranking<'q> {
    query: &'q Query,
    context: &'q Context,
    components: Vec<Component<'q>>,
    numbers: Vec<u64>,
    /// The scores of all items, component after component for each item; larger is better.
    scores: Vec<f64>,
}

#[derive(Debug)]
struct Component<'q> {
    score: &'q Score,
    /// The input of BM25, if the component scores text.
    statistics: Option<TextStatistics<'q>>,
}

/// The phrases sought in a text, and the statistics of all texts.
#[derive(Debug)]
struct TextStatistics<'q> {
    text: &'q Expression,
    sought: Vec<Phrase>,
    corpus: Corpus,
    /// The number of texts that have each phrase.
    found_in: Vec<f64>,
}

impl<'q> Ranking<'q> {
    /// Returns a ranking, if the query orders by rank.
    pub fn of(query: &'q Query, context: &'q Context) -> Option<Ranking<'q>> {
        let Order::Rank(scores) = &query.order else { return None };
        let component = |score: &'q Score| Component { score, statistics: TextStatistics::of(score) };
        let components = scores.iter().map(component).collect();
        Some(Ranking { query, context, components, numbers: Vec::new(), scores: Vec::new() })
    }

    /// Returns `true` if any component needs statistics, that is, whether [`observe`](Self::observe) must see every item.
    pub fn needs_statistics(&self) -> bool {
        self.components.iter().any(|component| component.statistics.is_some())
    }

    /// Adds an item of the container to the statistics, whether it matches or not.
    pub fn observe(&mut self, item: &dyn Row) -> Result<(), Fault> {
        let environment = Environment::of_item(item);
        for statistics in self.components.iter_mut().filter_map(|component| component.statistics.as_mut()) {
            statistics.observe(&environment, self.context);
        }
        self.context.fault().map_or(Ok(()), Err)
    }

    /// Scores an item if it has a row.
    pub fn score(&mut self, item: &dyn Row, number: u64) -> Result<(), Fault> {
        let environment = Environment::of_item(item);
        let mut has_rows = false;
        each_binding(self.query, &environment, self.context, &mut |_, _| {
            has_rows = true;
            evaluate::Flow::Enough
        });
        if has_rows {
            if (self.scores.len() + self.numbers.len()) * size_of::<f64>() > self.context.memory() {
                return Err(self.context.out_of_allowance("the scores"));
            }
            self.numbers.push(number);
            for component in &self.components {
                self.scores.push(component.score(&environment, self.context));
            }
        }
        self.context.fault().map_or(Ok(()), Err)
    }

    /// Returns the numbers of the scored items, best first; ties in the order of their numbers.
    pub fn finish(self) -> Vec<u64> {
        let Ranking { components, numbers, scores, .. } = self;
        let width = components.len();
        let score = |item: usize, component: usize| scores[item * width + component];
        let mut total: Vec<f64> = vec![0.0; numbers.len()];
        if width == 1 {
            total = (0..numbers.len()).map(|item| score(item, 0)).collect();
        } else {
            for (component, Component { score: Score { weight, .. }, .. }) in components.iter().enumerate() {
                let mut best_first: Vec<usize> = (0..numbers.len()).collect();
                best_first.sort_by(|&one, &other| score(other, component).total_cmp(&score(one, component)));
                let (mut rank, mut last) = (0.0, f64::NAN);
                for item in best_first {
                    let score = score(item, component);
                    // The first comparison is with NaN, which equals no score.
                    if score.total_cmp(&last).is_ne() {
                        rank += 1.0;
                        last = score;
                    }
                    total[item] += weight / (FUSION + rank);
                }
            }
        }
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_by(|&one, &other| {
            total[other].total_cmp(&total[one]).then(numbers[one].cmp(&numbers[other]))
        });
        order.into_iter().map(|item| numbers[item]).collect()
    }
}

impl Component<'_> {
    /// Returns an item's score, larger is better; an item without a score comes last.
    fn score(&self, environment: &Environment<'_>, context: &Context) -> f64 {
        let score = match (&self.score.kind, &self.statistics) {
            (ScoreKind::Vector { distance, larger_is_better }, _) => {
                let distance = evaluate(distance, environment, context);
                let distance = distance.as_ref().map(Operand::view).and_then(ValueRef::as_f64);
                distance.map(|distance| if *larger_is_better { distance } else { -distance })
            }
            (ScoreKind::FullText { .. }, statistics) => {
                statistics.as_ref().and_then(|statistics| statistics.score(environment, context))
            }
        };
        score.unwrap_or(f64::NEG_INFINITY)
    }
}

impl<'q> TextStatistics<'q> {
    fn of(score: &'q Score) -> Option<TextStatistics<'q>> {
        let ScoreKind::FullText { text, keywords } = &score.kind else { return None };
        let sought: Vec<Phrase> =
            keywords.iter().filter_map(|keyword| Phrase::read(ValueRef::String(keyword))).collect();
        let found_in = vec![0.0; sought.len()];
        Some(TextStatistics { text, sought, corpus: Corpus { documents: 0.0, words: 0.0 }, found_in })
    }

    fn words(&self, environment: &Environment<'_>, context: &Context) -> Option<Vec<String>> {
        let text = evaluate(self.text, environment, context);
        let text = text.as_ref()?.view().as_str()?;
        context.spend(text.len() as u64 / 8 + 1).then(|| tokens(text).collect())
    }

    fn observe(&mut self, environment: &Environment<'_>, context: &Context) {
        self.corpus.documents += 1.0;
        let Some(words) = self.words(environment, context) else { return };
        self.corpus.words += words.len() as f64;
        for (phrase, found_in) in self.sought.iter().zip(&mut self.found_in) {
            *found_in += f64::from(u8::from(phrase.count(&words) > 0));
        }
    }

    fn score(&self, environment: &Environment<'_>, context: &Context) -> Option<f64> {
        let words = self.words(environment, context)?;
        let times = self.sought.iter().map(|phrase| phrase.count(&words) as f64);
        Some(bm25(self.corpus, words.len() as f64, times.zip(self.found_in.iter().copied())))
    }
}
