//! Parsing of filters: the operators, their operands, and the messages of errors.

use bson::{DocumentRef, Value, ValueRef};

use super::Settings;
use super::bits::{BitRule, BitTest};
use super::expr;
use super::geo::{geo_intersects, geo_within, near};
use super::node::{Comparison, Members, Node, Test};
use super::schema::Schema;
use super::text::TextSearch;
use super::types::type_set;
use crate::error::{Code, Error, Result};
use crate::expression::{Expression, Variables};
use crate::numbers::{integer, is_nan, whole};
use crate::path::{FieldPath, is_reference_field};
use crate::regex::Pattern;

/// The position of a condition in a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The filter itself, or a branch of `$and`, `$or` and `$nor` in it.
    Top,
    /// Within `$elemMatch`.
    Element,
}

/// One parse of one filter.
pub(super) struct Parser<'s> {
    pub(super) settings: &'s Settings,
}

impl Parser<'_> {
    /// Parses a whole filter.
    pub(super) fn filter(&self, filter: DocumentRef<'_>) -> Result<Node> {
        let root = self.document(filter, Level::Top)?;
        check_specials(&root)?;
        Ok(root)
    }

    /// Parses a condition on a value: operators, a regular expression, or a value to equal. The paths in it are
    /// empty.
    pub(super) fn condition(&self, condition: ValueRef<'_>) -> Result<Node> {
        let mut nodes = Vec::new();
        self.field("", &FieldPath::default(), condition, &mut nodes)?;
        Ok(Node::all(nodes))
    }

    fn document(&self, filter: DocumentRef<'_>, level: Level) -> Result<Node> {
        let mut nodes = Vec::new();
        for (name, value) in filter.iter() {
            if is_reference_field(name) {
                let path = FieldPath::of([name]);
                nodes.push(on(&path, Test::Compare(Comparison::Equal, comparable(value)?)));
            } else if name.starts_with('$') {
                self.top_level(name, value, level, &mut nodes)?;
            } else {
                self.field(name, &FieldPath::parse(name)?, value, &mut nodes)?;
            }
        }
        Ok(Node::all(nodes))
    }

    fn top_level(&self, name: &str, value: ValueRef<'_>, level: Level, nodes: &mut Vec<Node>) -> Result<()> {
        match name {
            "$and" => {
                // All of them hold at once, so nested conjunctions are flattened.
                for branch in self.branches(name, value, level)? {
                    match branch {
                        Node::And(inner) => nodes.extend(inner),
                        other => nodes.push(other),
                    }
                }
            }
            "$or" => nodes.push(Node::Or(self.branches(name, value, level)?)),
            "$nor" => nodes.push(Node::Nor(self.branches(name, value, level)?)),
            "$comment" => {}
            "$alwaysTrue" => nodes.push(always(name, value, Node::True)?),
            "$alwaysFalse" => nodes.push(always(name, value, Node::False)?),
            "$sampleRate" => nodes.push(Node::SampleRate(sample_rate(value)?)),
            "$jsonSchema" => {
                nodes.push(Node::Schema(Box::new(Schema::parse(value, &self.settings.patterns)?)));
            }
            "$text" => {
                only_at_top(name, level)?;
                nodes.push(Node::Text(Box::new(TextSearch::parse(value, self.settings.text.as_ref())?)));
            }
            "$expr" => {
                only_at_top(name, level)?;
                let variables = Variables::of(&self.settings.variables, &self.settings.patterns);
                let expression = Expression::parse(value, &variables)?;
                let implied = expr::implied(value, &self.settings.variables);
                nodes.push(Node::Expr { expression, implied });
            }
            "$where" => {
                let message = "$where is not supported: this server does not run JavaScript";
                return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
            }
            _ => {
                return Err(Error::bad_value(format!(
                    "unknown top level operator: {name}. If you have a field name that starts with a '$' symbol, \
                     consider using $getField or $setField."
                )));
            }
        }
        Ok(())
    }

    fn branches(&self, name: &str, value: ValueRef<'_>, level: Level) -> Result<Vec<Node>> {
        let Some(items) = value.as_array() else {
            return Err(Error::bad_value(format!("{name} must be an array")));
        };
        let mut branches = Vec::new();
        for item in items.iter() {
            let Some(branch) = item.as_document() else {
                return Err(Error::bad_value("$or/$and/$nor entries need to be full objects"));
            };
            branches.push(self.document(branch, level)?);
        }
        if branches.is_empty() {
            return Err(Error::bad_value("$and/$or/$nor must be a nonempty array"));
        }
        Ok(branches)
    }

    /// Parses the condition on a field: operators, a regular expression, or a value to equal.
    fn field(&self, name: &str, path: &FieldPath, value: ValueRef<'_>, nodes: &mut Vec<Node>) -> Result<()> {
        match value {
            ValueRef::Document(operators) if is_operators(operators) => {
                self.operators(name, path, operators, nodes)
            }
            ValueRef::Regex(regex) => {
                let pattern = self.pattern(regex.pattern, regex.options)?;
                nodes.push(on(path, Test::Pattern(pattern)));
                Ok(())
            }
            value => {
                nodes.push(on(path, Test::Compare(Comparison::Equal, comparable(value)?)));
                Ok(())
            }
        }
    }

    fn operators(
        &self,
        name: &str,
        path: &FieldPath,
        operators: DocumentRef<'_>,
        nodes: &mut Vec<Node>,
    ) -> Result<()> {
        for (operator, operand) in operators.iter() {
            if let Some(node) = self.operator(name, path, operator, operand, operators)? {
                nodes.push(node);
            }
        }
        Ok(())
    }

    fn operator(
        &self,
        name: &str,
        path: &FieldPath,
        operator: &str,
        operand: ValueRef<'_>,
        siblings: DocumentRef<'_>,
    ) -> Result<Option<Node>> {
        let compare = |comparison| ordering(name, comparison, operand);
        let bits = |rule| Ok(Test::Bits(BitTest::parse(rule, operator, name, operand)?));
        let test: Result<Test> = match operator {
            "$eq" => comparable(operand).map(|value| Test::Compare(Comparison::Equal, value)),
            "$lt" => compare(Comparison::Less),
            "$lte" => compare(Comparison::LessOrEqual),
            "$gt" => compare(Comparison::Greater),
            "$gte" => compare(Comparison::GreaterOrEqual),
            "$in" => self.members(operator, operand).map(Test::In),
            "$type" => type_set(operand, "$type").map(Test::Type),
            "$mod" => modulo(operand),
            "$size" => size(operand),
            "$elemMatch" => self.element(operand),
            "$bitsAllSet" => bits(BitRule::AllSet),
            "$bitsAllClear" => bits(BitRule::AllClear),
            "$bitsAnySet" => bits(BitRule::AnySet),
            "$bitsAnyClear" => bits(BitRule::AnyClear),
            "$regex" => self.regex(siblings).map(Test::Pattern),
            "$geoWithin" | "$within" => geo_within(operand).map(|test| Test::Geo(Box::new(test))),
            "$geoIntersects" => geo_intersects(operand).map(|test| Test::Geo(Box::new(test))),
            "$near" | "$nearSphere" | "$geoNear" => {
                near(operator, path, operand, siblings).map(|near| Test::Near(Box::new(near)))
            }
            "$minDistance" | "$maxDistance" if siblings.get("$near").is_some() => return Ok(None),
            "$minDistance" | "$maxDistance" if siblings.get("$nearSphere").is_some() => return Ok(None),
            "$minDistance" | "$maxDistance" if siblings.get("$geoNear").is_some() => return Ok(None),
            "$options" if siblings.get("$regex").is_some() => return Ok(None),
            "$options" => return Err(Error::bad_value("$options needs a $regex")),
            "$comment" => return Ok(None),
            "$ne" => {
                if matches!(operand, ValueRef::Regex(_)) {
                    return Err(Error::bad_value("Can't have regex as arg to $ne."));
                }
                let equal = Test::Compare(Comparison::Equal, comparable(operand)?);
                return Ok(Some(on(path, equal).negated()));
            }
            "$nin" => return Ok(Some(on(path, Test::In(self.members(operator, operand)?)).negated())),
            "$exists" => {
                let exists = on(path, Test::Exists);
                return Ok(Some(if is_truthy(operand) { exists } else { exists.negated() }));
            }
            "$not" => return self.not(name, path, operand).map(Some),
            "$all" => return self.all(path, operand).map(Some),
            _ => return Err(Error::bad_value(format!("unknown operator: {operator}"))),
        };
        Ok(Some(on(path, test?)))
    }

    fn not(&self, name: &str, path: &FieldPath, operand: ValueRef<'_>) -> Result<Node> {
        let mut nodes = Vec::new();
        match operand {
            ValueRef::Regex(_) => self.field(name, path, operand, &mut nodes)?,
            ValueRef::Document(operators) if operators.is_empty() => {
                return Err(Error::bad_value("$not cannot be empty"));
            }
            ValueRef::Document(operators) => self.operators(name, path, operators, &mut nodes)?,
            _ => return Err(Error::bad_value("$not needs a regex or a document")),
        }
        Ok(Node::all(nodes).negated())
    }

    fn members(&self, operator: &str, operand: ValueRef<'_>) -> Result<Members> {
        let Some(items) = operand.as_array() else {
            return Err(Error::bad_value(format!("{operator} needs an array")));
        };
        let mut members = Members::default();
        for item in items.iter() {
            match item {
                ValueRef::Document(document) if is_operators(document) => {
                    return Err(Error::bad_value("cannot nest $ under $in"));
                }
                ValueRef::Regex(regex) => {
                    members.patterns.push(self.pattern(regex.pattern, regex.options)?);
                }
                value => members.values.push(comparable(value)?),
            }
        }
        let compare = |left: &Value, right: &Value| self.settings.compare(left.view(), right.view());
        members.null = members.values.contains(&Value::Null);
        members.values.sort_by(compare);
        members.values.dedup_by(|left, right| compare(left, right).is_eq());
        Ok(members)
    }

    fn all(&self, path: &FieldPath, operand: ValueRef<'_>) -> Result<Node> {
        let Some(items) = operand.as_array() else {
            return Err(Error::bad_value("$all needs an array"));
        };
        let elements = items.iter().next().is_some_and(|first| element_operand(first).is_some());
        let mut nodes = Vec::new();
        for item in items.iter() {
            let test = match item {
                item if elements => {
                    let operand = element_operand(item)
                        .ok_or_else(|| Error::bad_value("$all/$elemMatch has to be consistent"))?;
                    self.element(operand)?
                }
                ValueRef::Document(document) if is_operators(document) => {
                    return Err(Error::bad_value("no $ expressions in $all"));
                }
                ValueRef::Regex(regex) => Test::Pattern(self.pattern(regex.pattern, regex.options)?),
                value => Test::Compare(Comparison::Equal, comparable(value)?),
            };
            nodes.push(on(path, test));
        }
        Ok(if nodes.is_empty() { Node::False } else { Node::all(nodes) })
    }

    fn regex(&self, siblings: DocumentRef<'_>) -> Result<Pattern> {
        let (pattern, own_options) = match siblings.get("$regex") {
            Some(ValueRef::String(pattern)) => (pattern, ""),
            Some(ValueRef::Regex(regex)) => (regex.pattern, regex.options),
            _ => return Err(Error::bad_value("$regex has to be a string")),
        };
        let options = match siblings.get("$options") {
            None => own_options,
            Some(ValueRef::String(_)) if !own_options.is_empty() => {
                return Err(Error::location(51074, "options set in both $regex and $options"));
            }
            Some(ValueRef::String(options)) => options,
            Some(_) => return Err(Error::bad_value("$options has to be a string")),
        };
        self.pattern(pattern, options)
    }

    fn pattern(&self, pattern: &str, options: &str) -> Result<Pattern> {
        Pattern::parse(pattern, options, &self.settings.patterns)
    }

    pub(super) fn element(&self, operand: ValueRef<'_>) -> Result<Test> {
        let Some(conditions) = operand.as_document() else {
            return Err(Error::bad_value("$elemMatch needs an Object"));
        };
        let first = conditions.iter().next().map_or("", |(name, _)| name);
        let fields =
            matches!(first, "$and" | "$or" | "$nor" | "$where" | "$expr" | "$jsonSchema" | "$comment")
                || conditions.iter().any(|(name, _)| is_reference_field(name));
        if is_operators(conditions) && !fields {
            let mut nodes = Vec::new();
            self.operators("", &FieldPath::default(), conditions, &mut nodes)?;
            return Ok(Test::ElementValue(Box::new(Node::all(nodes))));
        }
        Ok(Test::ElementFields(Box::new(self.document(conditions, Level::Element)?)))
    }
}

/// Checks that there is at most one order by distance and one text search, and that neither is negated.
fn check_specials(root: &Node) -> Result<()> {
    let is_near = |node: &Node| matches!(node, Node::Field { test: Test::Near(_), .. });
    let is_text = |node: &Node| matches!(node, Node::Text(_));
    let at_top = root.conjuncts().iter().filter(|node| is_near(node)).count();
    if at_top < root.count(&is_near) {
        return Err(Error::bad_value("geo $near must be top-level expr"));
    }
    if at_top > 1 {
        return Err(Error::bad_value("Too many geoNear expressions"));
    }
    let texts = root.count(&is_text);
    if texts > 1 {
        return Err(Error::bad_value("Too many text expressions"));
    }
    if texts == 1 && at_top == 1 {
        return Err(Error::bad_value("text and geoNear not allowed in same query"));
    }
    let turned = |node: &Node| matches!(node, Node::Nor(_) | Node::Not(_)) && node.count(&is_text) > 0;
    if root.count(&turned) > 0 {
        return Err(Error::bad_value("text expression not allowed in nor"));
    }
    Ok(())
}

fn only_at_top(name: &str, level: Level) -> Result<()> {
    match level {
        Level::Top => Ok(()),
        Level::Element => {
            Err(Error::bad_value(format!("{name} can only be applied to the top-level document")))
        }
    }
}

fn on(path: &FieldPath, test: Test) -> Node {
    Node::Field { path: path.clone(), test }
}

/// Returns `true` if a document holds operators rather than being a value. A reference to another document is a value.
pub(crate) fn is_operators(document: DocumentRef<'_>) -> bool {
    let is_operator = document.iter().next().is_some_and(|(name, _)| name.starts_with('$'));
    is_operator && !(document.get("$ref").is_some() && document.get("$id").is_some())
}

/// Returns the operand of an item of `$all` that is an `$elemMatch`.
fn element_operand(item: ValueRef<'_>) -> Option<ValueRef<'_>> {
    let (name, operand) = item.as_document()?.iter().next()?;
    (name == "$elemMatch").then_some(operand)
}

fn comparable(value: ValueRef<'_>) -> Result<Value> {
    match value {
        ValueRef::Undefined => Err(Error::bad_value("cannot compare to undefined")),
        value => Ok(value.to_value()),
    }
}

fn ordering(name: &str, comparison: Comparison, operand: ValueRef<'_>) -> Result<Test> {
    if matches!(operand, ValueRef::Regex(_)) {
        let message = format!("Can't have RegEx as arg to predicate over field '{name}'.");
        return Err(Error::bad_value(message));
    }
    Ok(Test::Compare(comparison, comparable(operand)?))
}

/// Returns `true` if a value counts as true for an option.
pub(crate) fn is_truthy(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Bool(value) => value,
        ValueRef::Null | ValueRef::Undefined => false,
        number if number.is_number() => is_nan(number) || !bson::equal(number, ValueRef::Int32(0)),
        _ => true,
    }
}

fn always(name: &str, value: ValueRef<'_>, node: Node) -> Result<Node> {
    match integer(value) {
        Some(1) => Ok(node),
        _ => Err(Error::failed_to_parse(format!("{name} must be an integer value of 1"))),
    }
}

fn sample_rate(value: ValueRef<'_>) -> Result<f64> {
    let rate = match value {
        ValueRef::Double(rate) => rate,
        value => match integer(value) {
            Some(rate) => rate as f64,
            None => return Err(Error::bad_value("argument to $sampleRate must be a numeric type")),
        },
    };
    if (0.0..=1.0).contains(&rate) {
        return Ok(rate);
    }
    Err(Error::bad_value(format!("numeric argument to $sampleRate must be in [0, 1], got {rate}")))
}

fn modulo(operand: ValueRef<'_>) -> Result<Test> {
    let malformed = |what: &str| Error::bad_value(format!("malformed mod, {what}"));
    let items = operand.as_array().ok_or_else(|| malformed("needs to be an array"))?;
    let (divisor, remainder) = match (items.get(0), items.get(1), items.get(2)) {
        (Some(divisor), _, _) if !divisor.is_number() => return Err(malformed("divisor not a number")),
        (Some(divisor), Some(remainder), None) => (divisor, remainder),
        (_, _, Some(_)) => return Err(malformed("too many elements")),
        _ => return Err(malformed("not enough elements")),
    };
    if !remainder.is_number() {
        return Err(malformed("remainder not a number"));
    }
    let number = |value: ValueRef<'_>, what: &str| {
        whole(value).ok_or_else(|| {
            let reason = if is_nan(value) {
                "Unable to coerce NaN/Inf to integral type"
            } else {
                "Out of bounds coercing to integral value"
            };
            malformed(&format!("{what} value is invalid :: caused by :: {reason}"))
        })
    };
    let (divisor, remainder) = (number(divisor, "divisor")?, number(remainder, "remainder")?);
    if divisor == 0 {
        return Err(Error::bad_value("divisor cannot be 0"));
    }
    Ok(Test::Mod(divisor, remainder))
}

fn size(operand: ValueRef<'_>) -> Result<Test> {
    let refuse = |what: &str| {
        Error::bad_value(format!("Failed to parse $size. {what}: $size: {}", bson::shell_text(operand)))
    };
    if !operand.is_number() {
        return Err(refuse("Expected a number in"));
    }
    match integer(operand) {
        Some(size) if size >= 0 => Ok(Test::Size(size)),
        Some(_) => Err(refuse("Expected a non-negative number in")),
        None if is_nan(operand) => Err(refuse("Expected an integer, but found NaN in")),
        None if whole(operand).is_none() => Err(refuse("Cannot represent as a 64-bit integer")),
        None => Err(refuse("Expected an integer")),
    }
}
