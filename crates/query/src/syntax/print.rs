//! The tree as text again, in the service's normal form.
//!
//! Every operator stands in its own parentheses, strings are in double quotes, keywords in capitals, aliases behind an
//! `AS`; names of functions stay as written. Reading the text gives the same tree, so a rewritten query may be sent by
//! a client and means what the original meant.
//!
//! Two layouts. Rewritten queries have a line per clause and indent subqueries; a statement's normal form is one line
//! and has `ASC` where the text has no direction:
//!
//! ```text
//! SELECT c.a                             SELECT c.a FROM c WHERE (c.b = "x") ORDER BY c.a ASC
//! FROM c
//! WHERE (c.b = "x")
//! ORDER BY c.a
//! ```

use std::fmt::Write as _;

use document::Value;

use super::ast::{
    Binary, Collection, Direction, Node, NodeKind, OrderBy, PathStep, Query, Select, SelectItem, Source,
    Step, SubqueryKind, Unary,
};

/// How clauses are set apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One line, every direction spelled out.
    OneLine,
    /// A line per clause, directions as written.
    Lines,
}

/// Returns a whole query as text.
pub(crate) fn print_query(query: &Query, layout: Layout) -> String {
    Printer::print(layout, None, |printer| printer.query(query))
}

/// Returns one expression as text.
pub(crate) fn print_node(node: &Node, layout: Layout) -> String {
    Printer::print(layout, None, |printer| printer.node(node))
}

/// Returns a whole query in its normal form, parameters replaced by their values.
pub(crate) fn print_normal(query: &Query, parameters: &[(String, Value)]) -> String {
    Printer::print(Layout::OneLine, Some(parameters), |printer| printer.query(query))
}

/// Returns the clauses of a query that determine the position of a row, in the same form.
pub(crate) fn print_order(query: &Query, parameters: &[(String, Value)]) -> String {
    Printer::print(Layout::OneLine, Some(parameters), |printer| {
        printer.from(query);
        if let Some(order_by) = &query.order_by {
            printer.order_by(order_by);
        }
    })
}

struct Printer<'a> {
    text: String,
    layout: Layout,
    /// Subqueries around this place.
    depth: usize,
    /// Values to print in place of parameters. With them, equivalent texts are printed alike: built-in functions, whose names
    /// have no letter case, are in capitals.
    parameters: Option<&'a [(String, Value)]>,
}

impl<'a> Printer<'a> {
    fn print(
        layout: Layout,
        parameters: Option<&'a [(String, Value)]>,
        print: impl FnOnce(&mut Printer<'a>),
    ) -> String {
        let mut printer = Printer { text: String::new(), layout, depth: 0, parameters };
        print(&mut printer);
        printer.text
    }

    fn query(&mut self, query: &Query) {
        self.put("SELECT ");
        if query.distinct {
            self.put("DISTINCT ");
        }
        if let Some(top) = &query.top {
            self.put("TOP ");
            self.node(top);
            self.put(" ");
        }
        match &query.select {
            Select::Star(_) => self.put("*"),
            Select::Value(node) => {
                self.put("VALUE ");
                self.node(node);
            }
            Select::List(items) => self.list(items, Self::select_item),
        }
        self.from(query);
        if let Some(filter) = &query.filter {
            self.clause("WHERE ");
            self.operand(filter);
        }
        if !query.group_by.is_empty() {
            self.clause("GROUP BY ");
            self.list(&query.group_by, Self::node);
        }
        if let Some(order_by) = &query.order_by {
            self.order_by(order_by);
        }
        if let Some((offset, limit)) = &query.window {
            self.clause("OFFSET ");
            self.node(offset);
            self.put(" LIMIT ");
            self.node(limit);
        }
    }

    fn from(&mut self, query: &Query) {
        for (index, source) in query.from.iter().enumerate() {
            self.clause(if index == 0 { "FROM " } else { "JOIN " });
            self.source(source);
        }
    }

    fn select_item(&mut self, item: &SelectItem) {
        self.node(&item.node);
        if let Some(alias) = &item.alias {
            self.put(" AS ");
            self.put(&alias.text);
        }
    }

    fn source(&mut self, source: &Source) {
        if let (true, Some(alias)) = (source.iterates, &source.alias) {
            self.put(&alias.text);
            self.put(" IN ");
        }
        match &source.collection {
            Collection::Path { root, steps } => {
                self.put(&root.text);
                for step in steps {
                    self.path_step(step);
                }
            }
            Collection::Subquery(query) => self.subquery(query),
        }
        if let (false, Some(alias)) = (source.iterates, &source.alias) {
            self.put(" AS ");
            self.put(&alias.text);
        }
    }

    fn path_step(&mut self, step: &PathStep) {
        match step {
            PathStep::Dot(name) => {
                self.put(".");
                self.put(name);
            }
            PathStep::Bracket(name) => {
                self.put("[");
                self.string(name);
                self.put("]");
            }
            PathStep::Index(index) => self.format(format_args!("[{index}]")),
        }
    }

    fn order_by(&mut self, order_by: &OrderBy) {
        self.clause(if order_by.rank { "ORDER BY RANK " } else { "ORDER BY " });
        let spelled_out = self.layout == Layout::OneLine && !order_by.rank;
        self.list(&order_by.keys, |printer, key| {
            printer.node(&key.node);
            match key.direction {
                Some(Direction::Descending) => printer.put(" DESC"),
                Some(Direction::Ascending) => printer.put(" ASC"),
                None if spelled_out => printer.put(" ASC"),
                None => {}
            }
        });
    }

    /// Prints `(SELECT ...)`, on lines of its own where clauses are.
    fn subquery(&mut self, query: &Query) {
        self.put("(");
        self.depth += 1;
        if self.layout == Layout::Lines {
            self.break_line();
        }
        self.query(query);
        self.depth -= 1;
        if self.layout == Layout::Lines {
            self.break_line();
        }
        self.put(")");
    }

    /// Prints an expression whose parts a neighbouring operator could take. A placeholder stands for any text, so it gets
    /// parentheses there, as every composite expression has them.
    fn operand(&mut self, node: &Node) {
        if matches!(node.kind, NodeKind::Placeholder(_)) {
            self.put("(");
            self.node(node);
            self.put(")");
        } else {
            self.node(node);
        }
    }

    /// Prints the base of a path. A number gets parentheses, or the dot after it would be read as a part of it.
    fn base(&mut self, node: &Node) {
        if matches!(node.kind, NodeKind::Literal(Value::Int(_) | Value::Double(_))) {
            self.put("(");
            self.node(node);
            self.put(")");
        } else {
            self.operand(node);
        }
    }

    fn node(&mut self, node: &Node) {
        match &node.kind {
            NodeKind::Literal(value) => self.value(value),
            NodeKind::Undefined => self.put("undefined"),
            NodeKind::Parameter(name) => self.parameter(name),
            NodeKind::Name(name) => self.put(name),
            NodeKind::Path { base, steps } => {
                self.base(base);
                for step in steps {
                    self.step(step);
                }
            }
            NodeKind::Array(items) => {
                self.put("[");
                self.list(items, Self::node);
                self.put("]");
            }
            NodeKind::Object(members) => {
                self.put("{");
                self.list(members, |printer, (name, member)| {
                    printer.string(&name.text);
                    printer.put(": ");
                    printer.node(member);
                });
                self.put("}");
            }
            NodeKind::Call { name, udf, arguments } => {
                self.put(if *udf { "udf." } else { "" });
                match self.parameters {
                    Some(_) if !udf => self.put(&name.text.to_ascii_uppercase()),
                    _ => self.put(&name.text),
                }
                self.put("(");
                self.list(arguments, Self::node);
                self.put(")");
            }
            NodeKind::Subquery { kind, query } => {
                self.put(match kind {
                    SubqueryKind::Scalar => "",
                    SubqueryKind::Exists => "EXISTS",
                    SubqueryKind::Array => "ARRAY",
                    SubqueryKind::All => "ALL",
                    SubqueryKind::First => "FIRST",
                    SubqueryKind::Last => "LAST",
                });
                self.subquery(query);
            }
            NodeKind::Placeholder(name) => self.format(format_args!("{{{name}}}")),
            operation => self.operation(operation),
        }
    }

    fn parameter(&mut self, name: &str) {
        match self.parameters.and_then(|values| values.iter().find(|(known, _)| known == name)) {
            Some((_, value)) => self.value(value),
            None => self.put(name),
        }
    }

    /// Prints an operation in its own parentheses.
    fn operation(&mut self, kind: &NodeKind) {
        // The innermost operation of a chain is its first, so all its parentheses open before the first operand.
        let open = if let NodeKind::Chain { rest, .. } = kind { rest.len() } else { 1 };
        self.text.extend(std::iter::repeat_n('(', open));
        match kind {
            NodeKind::Unary { operator, operand } => {
                self.put(match operator {
                    Unary::Not => "NOT ",
                    Unary::Minus => "- ",
                    Unary::Plus => "+ ",
                    Unary::BitNot => "~ ",
                });
                self.operand(operand);
            }
            NodeKind::Chain { first, rest } => {
                self.operand(first);
                for (index, (operator, operand)) in rest.iter().enumerate() {
                    self.put(if index == 0 { " " } else { ") " });
                    self.put(symbol(*operator));
                    self.put(" ");
                    self.operand(operand);
                }
            }
            NodeKind::Conditional { condition, then, otherwise } => {
                self.operand(condition);
                self.put(" ? ");
                self.operand(then);
                self.put(" : ");
                self.operand(otherwise);
            }
            NodeKind::In { negated, value, list } => {
                self.operand(value);
                self.put(if *negated { " NOT IN (" } else { " IN (" });
                self.list(list, Self::node);
                self.put(")");
            }
            NodeKind::Between { negated, value, low, high } => {
                self.operand(value);
                self.put(if *negated { " NOT BETWEEN " } else { " BETWEEN " });
                self.operand(low);
                self.put(" AND ");
                self.operand(high);
            }
            NodeKind::Like { negated, value, pattern, escape } => {
                self.operand(value);
                self.put(if *negated { " NOT LIKE " } else { " LIKE " });
                self.operand(pattern);
                if let Some(escape) = escape {
                    self.put(" ESCAPE ");
                    self.string(&escape.text);
                }
            }
            _ => unreachable!("every other kind is printed without parentheses"),
        }
        self.put(")");
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Dot(name) => {
                self.put(".");
                self.put(&name.text);
            }
            Step::Index(node) => {
                self.put("[");
                self.node(node);
                self.put("]");
            }
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Double(number) => {
                let text = number_text(*number);
                self.put(&text);
            }
            Value::String(text) => self.string(text),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Array(_) | Value::Object(_) => {
                self.put(&value.to_json());
            }
        }
    }

    fn string(&mut self, text: &str) {
        self.put("\"");
        for c in text.chars() {
            match c {
                '"' => self.put("\\\""),
                '\\' => self.put("\\\\"),
                '\u{8}' => self.put("\\b"),
                '\u{c}' => self.put("\\f"),
                '\n' => self.put("\\n"),
                '\r' => self.put("\\r"),
                '\t' => self.put("\\t"),
                c if c < ' ' => self.format(format_args!("\\u{:04x}", u32::from(c))),
                c => self.text.push(c),
            }
        }
        self.put("\"");
    }

    fn list<T>(&mut self, items: &[T], mut print: impl FnMut(&mut Self, &T)) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            print(self, item);
        }
    }

    fn clause(&mut self, keyword: &str) {
        match self.layout {
            Layout::OneLine => self.put(" "),
            Layout::Lines => self.break_line(),
        }
        self.put(keyword);
    }

    fn break_line(&mut self) {
        self.put("\n");
        self.text.extend(std::iter::repeat_n("    ", self.depth));
    }

    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn format(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.text.write_fmt(arguments).expect("text grows without error");
    }
}

/// Returns the shortest digits that read back as the same number; whole numbers without a fraction, far ones with an exponent.
fn number_text(number: f64) -> String {
    let text = format!("{number}");
    if number == 0.0 || (1e-7..1e21).contains(&number.abs()) {
        return text;
    }
    let text = format!("{number:e}");
    // Rust leaves out the sign of a positive exponent.
    if number.abs() >= 1.0 { text.replace('e', "e+") } else { text }
}

fn symbol(operator: Binary) -> &'static str {
    match operator {
        Binary::Coalesce => "??",
        Binary::Or => "OR",
        Binary::And => "AND",
        Binary::Concat => "||",
        Binary::BitOr => "|",
        Binary::BitXor => "^",
        Binary::BitAnd => "&",
        Binary::Equal => "=",
        Binary::NotEqual => "!=",
        Binary::Less => "<",
        Binary::LessOrEqual => "<=",
        Binary::Greater => ">",
        Binary::GreaterOrEqual => ">=",
        Binary::ShiftLeft => "<<",
        Binary::ShiftRight => ">>",
        Binary::ShiftRightZero => ">>>",
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Modulo => "%",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::parse;

    fn one_line(text: &str) -> String {
        print_query(&parse(text).unwrap(), Layout::OneLine)
    }

    #[test]
    fn every_form_has_one_text() {
        for (given, expected) in [
            ("select distinct top 3 value c from c", "SELECT DISTINCT TOP 3 VALUE c FROM c"),
            ("select top @n c.a x, c['b'], 1 from c", "SELECT TOP @n c.a AS x, c[\"b\"], 1 FROM c"),
            ("select * from root r join x in r.xs", "SELECT * FROM root AS r JOIN x IN r.xs"),
            ("select * from c.a['b'][3] d", "SELECT * FROM c.a[\"b\"][3] AS d"),
            ("select 1 from (select 2) s", "SELECT 1 FROM (SELECT 2) AS s"),
            ("select 1 from s in (select 2)", "SELECT 1 FROM s IN (SELECT 2)"),
            ("select 1 where a and b and c", "SELECT 1 WHERE ((a AND b) AND c)"),
            ("select 1 - 2 - 3", "SELECT ((1 - 2) - 3)"),
            ("select 1 - (2 - 3)", "SELECT (1 - (2 - 3))"),
            ("select a <> b", "SELECT (a != b)"),
            ("select not a, - a, + a, ~ a", "SELECT (NOT a), (- a), (+ a), (~ a)"),
            ("select a ? b : c ? d : e", "SELECT (a ? b : (c ? d : e))"),
            ("select a in (1,2), a not in (1)", "SELECT (a IN (1, 2)), (a NOT IN (1))"),
            ("select a between 1 and 2", "SELECT (a BETWEEN 1 AND 2)"),
            ("select a not between 1 and 2", "SELECT (a NOT BETWEEN 1 AND 2)"),
            ("select a not like 'x!%' escape '!'", "SELECT (a NOT LIKE \"x!%\" ESCAPE \"!\")"),
            ("select [], [1,2], {}, {a:1,'b c':2}", "SELECT [], [1, 2], {}, {\"a\": 1, \"b c\": 2}"),
            ("select Abs(1), udf.f(), (a + b).c", "SELECT Abs(1), udf.f(), (a + b).c"),
            ("select exists(select 1), array (select 2)", "SELECT EXISTS(SELECT 1), ARRAY(SELECT 2)"),
            ("select 1 group by a, b", "SELECT 1 GROUP BY a, b"),
            ("select 1 order by a, b desc", "SELECT 1 ORDER BY a ASC, b DESC"),
            ("select 1 order by rank f(a), g(b) asc", "SELECT 1 ORDER BY RANK f(a), g(b) ASC"),
            ("select 1 offset 1 limit @l", "SELECT 1 OFFSET 1 LIMIT @l"),
            ("select true, null, undefined", "SELECT true, null, undefined"),
        ] {
            assert_eq!(one_line(given), expected);
            assert_eq!(one_line(expected), expected, "the normal form is its own normal form");
        }
    }

    #[test]
    fn numbers_are_short_and_exact() {
        for (given, expected) in [
            ("1.0", "1"),
            ("1E2", "100"),
            (".5", "0.5"),
            ("-1.79769e308", "-1.79769e+308"),
            ("1e21", "1e+21"),
            ("1e-7", "0.0000001"),
            ("2.5e-8", "2.5e-8"),
            ("9223372036854775807", "9223372036854775807"),
        ] {
            assert_eq!(one_line(&format!("SELECT {given}")), format!("SELECT {expected}"));
            assert_eq!(one_line(&format!("SELECT {expected}")), format!("SELECT {expected}"));
        }
    }

    #[test]
    fn strings_read_back_as_they_were() {
        let text = "quote \" slash / back \\ \u{8}\u{c}\n\r\t\u{1}é😀";
        let query = parse(&format!("SELECT VALUE {}", Value::from(text).to_json())).unwrap();
        let printed = print_query(&query, Layout::OneLine);
        assert_eq!(printed, "SELECT VALUE \"quote \\\" slash / back \\\\ \\b\\f\\n\\r\\t\\u0001é😀\"");
        let Select::Value(Node { kind: NodeKind::Literal(value), .. }) = parse(&printed).unwrap().select
        else {
            panic!("{printed}");
        };
        assert_eq!(value.as_str(), Some(text));
    }

    #[test]
    fn clauses_stand_on_lines_and_subqueries_are_indented() {
        let query = parse(
            "SELECT c.a, EXISTS(SELECT 1 FROM t IN c.tags WHERE t = 'x') FROM c \
             JOIN (SELECT VALUE s FROM s IN c.list GROUP BY s) s WHERE true ORDER BY c.a, c.b DESC OFFSET 1 LIMIT 2",
        );
        let lines = [
            "SELECT c.a, EXISTS(",
            "    SELECT 1",
            "    FROM t IN c.tags",
            "    WHERE (t = \"x\")",
            ")",
            "FROM c",
            "JOIN (",
            "    SELECT VALUE s",
            "    FROM s IN c.list",
            "    GROUP BY s",
            ") AS s",
            "WHERE true",
            "ORDER BY c.a, c.b DESC",
            "OFFSET 1 LIMIT 2",
        ];
        assert_eq!(print_query(&query.unwrap(), Layout::Lines), lines.join("\n"));
    }

    #[test]
    fn placeholders_are_in_parentheses_among_operators_only() {
        let name = "documentdb-formattableorderbyquery-filter";
        let text = format!("SELECT f({{{name}}}) WHERE ((c.a = 1) AND ({{{name}}}))");
        assert_eq!(one_line(&text), text);
    }
}
