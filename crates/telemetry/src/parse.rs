//! A strict parser of metrics pages: for Bolide's own tools, and for tests that hold every page to the format.

use std::collections::BTreeMap;
use std::collections::HashSet;

/// A metric of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedFamily {
    /// The name.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    /// The help text.
    pub help: String,
    /// The samples.
    pub samples: Vec<Sample>,
}

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The metric's name; of a histogram with `_bucket`, `_sum` or `_count`.
    pub name: String,
    /// Names and values of the labels.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: f64,
}

impl Sample {
    /// Returns the value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, text)| text.as_str())
    }
}

/// Parses a page. Returns an error unless every metric has its help and its type once, its samples are together and
/// unique, counters are not negative, and histograms are complete and cumulative.
pub fn parse(text: &str) -> Result<Vec<ParsedFamily>, String> {
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    let mut families: Vec<ParsedFamily> = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let at = |what: &str| format!("line {}: {what}: {line}", number + 1);
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or_else(|| at("no help"))?;
            if !is_name(name) || families.iter().any(|family| family.name == name) {
                return Err(at("no name, or one that was there before"));
            }
            let expected = format!("# TYPE {name} ");
            let kind = lines.next().and_then(|(_, line)| line.strip_prefix(&expected));
            let kind = kind.filter(|kind| ["counter", "gauge", "histogram"].contains(kind));
            let kind = kind.ok_or_else(|| at("no type behind this help"))?.to_owned();
            families.push(ParsedFamily {
                name: name.to_owned(),
                kind,
                help: help.to_owned(),
                samples: Vec::new(),
            });
        } else {
            let sample = sample(line).ok_or_else(|| at("no sample"))?;
            let family = families.last_mut().filter(|family| family.owns(&sample));
            family.ok_or_else(|| at("a sample of another metric"))?.samples.push(sample);
        }
    }
    families.iter().try_for_each(check)?;
    Ok(families)
}

impl ParsedFamily {
    fn owns(&self, sample: &Sample) -> bool {
        match sample.name.strip_prefix(&self.name) {
            Some("") => self.kind != "histogram",
            Some("_bucket" | "_sum" | "_count") => self.kind == "histogram",
            _ => false,
        }
    }
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, after) = rest.split_once("=\"")?;
            let (text, after) = quoted(after)?;
            labels.push((Some(label).filter(|label| is_name(label))?.to_owned(), text));
            if let Some(after) = after.strip_prefix(',') {
                rest = after;
            } else {
                rest = after.strip_prefix('}')?;
                break;
            }
        }
    }
    let value = rest.strip_prefix(' ')?.parse().ok()?;
    is_name(name).then(|| Sample { name: name.to_owned(), labels, value })
}

/// Returns the text up to the closing quote, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut plain = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((plain, &text[at + 1..])),
            '\\' => plain.push(match letters.next()?.1 {
                'n' => '\n',
                letter @ ('\\' | '"') => letter,
                _ => return None,
            }),
            letter => plain.push(letter),
        }
    }
    None
}

fn check(family: &ParsedFamily) -> Result<(), String> {
    let mut seen = HashSet::new();
    for sample in &family.samples {
        let names: HashSet<_> = sample.labels.iter().map(|(name, _)| name).collect();
        if names.len() != sample.labels.len() || !seen.insert((&sample.name, sorted(&sample.labels))) {
            return Err(format!("{}: a label or a sample comes twice: {:?}", sample.name, sample.labels));
        }
        if !sample.value.is_finite() || (family.kind == "counter" && sample.value < 0.0) {
            return Err(format!("{} is {}", sample.name, sample.value));
        }
    }
    if family.kind == "histogram" { check_histogram(family) } else { Ok(()) }
}

fn sorted(labels: &[(String, String)]) -> Vec<&(String, String)> {
    let mut labels: Vec<_> = labels.iter().collect();
    labels.sort();
    labels
}

/// The parts of one histogram.
#[derive(Default)]
struct Parts {
    buckets: Vec<(f64, f64)>,
    sum: Option<f64>,
    count: Option<f64>,
}

fn check_histogram(family: &ParsedFamily) -> Result<(), String> {
    let mut histograms: BTreeMap<Vec<(String, String)>, Parts> = BTreeMap::new();
    for sample in &family.samples {
        let labels = sample.labels.iter().filter(|(name, _)| name != "le").cloned().collect();
        let parts = histograms.entry(labels).or_default();
        if sample.name.ends_with("_bucket") {
            let bound = sample.label("le").and_then(|bound| bound.parse().ok());
            parts.buckets.push((bound.ok_or_else(|| format!("{}: no bound", sample.name))?, sample.value));
        } else if sample.name.ends_with("_sum") {
            parts.sum = Some(sample.value);
        } else {
            parts.count = Some(sample.value);
        }
    }
    for (labels, Parts { buckets, sum, count }) in histograms {
        let grows = buckets.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let whole = buckets.last().is_some_and(|(bound, all)| bound.is_infinite() && Some(*all) == count);
        if !grows || !whole || sum.is_none() {
            return Err(format!(
                "{} {labels:?} is no whole histogram: {buckets:?} {sum:?} {count:?}",
                family.name
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_page_is_read() {
        let text = "# HELP a h h\n# TYPE a gauge\na{x=\"1\\\"\\\\\\n,}\",y=\"\"} -2.5\na 3\n# HELP h h\n# TYPE h histogram\n\
                    h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 9\nh_count 3\n# HELP b h\n# TYPE b counter\n";
        let families = parse(text).unwrap();
        assert_eq!(families.iter().map(|family| family.samples.len()).collect::<Vec<_>>(), [2, 4, 0]);
        assert_eq!(families[0].samples[0].label("x"), Some("1\"\\\n,}"));
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    #[test]
    fn what_the_format_does_not_allow_is_found() {
        let head = "# HELP a h\n# TYPE a counter\n";
        let histogram = "# HELP h h\n# TYPE h histogram\n";
        for wrong in [
            "a 1\n".to_owned(),
            format!("{head}a 1"),
            format!("{head}a 1\na 2\n"),
            format!("{head}a -1\n"),
            format!("{head}a NaN\n"),
            format!("{head}b 1\n"),
            format!("{head}a_sum 1\n"),
            format!("{head}a{{x=\"1\",x=\"2\"}} 1\n"),
            format!("{head}a{{x=\"\\t\"}} 1\n"),
            format!("{head}a{{x=\"1}} 1\n"),
            format!("{head}a{{1x=\"1\"}} 1\n"),
            format!("{head}a{{}} x\n"),
            format!("{head}\n"),
            format!("{head}{head}"),
            "# HELP a h\n".to_owned(),
            "# TYPE a counter\n".to_owned(),
            "# HELP a h\n# TYPE a summary\n".to_owned(),
            format!("{histogram}h_bucket{{le=\"1\"}} 2\nh_sum 9\nh_count 2\n"),
            format!("{histogram}h_bucket{{le=\"1\"}} 4\nh_bucket{{le=\"+Inf\"}} 3\nh_sum 9\nh_count 3\n"),
            format!("{histogram}h_bucket{{le=\"+Inf\"}} 3\nh_bucket{{le=\"1\"}} 3\nh_sum 9\nh_count 3\n"),
            format!("{histogram}h_bucket{{le=\"+Inf\"}} 3\nh_sum 9\nh_count 2\n"),
            format!("{histogram}h_bucket{{le=\"+Inf\"}} 3\nh_count 3\n"),
            format!("{histogram}h 3\n"),
        ] {
            assert!(parse(&wrong).is_err(), "{wrong:?}");
        }
    }
}
