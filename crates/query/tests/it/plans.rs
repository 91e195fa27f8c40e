//! Golden scripts of plans: what each query leaves to a client that talks to every partition on its own.
//!
//! A script is a transcript, as `golden` describes it. Lines that start with `key`, `embedding`, `rows`, `#`, `>` or `@` are
//! input; what follows a query up to the next empty line is its plan. Only what differs from a plan without any work is
//! written. `UPDATE_GOLDEN=1 cargo test` writes what was found into the files.
//!
//! ```text
//! key /tenant /user                       the partition key from here on; `key none` for a container without one
//! embedding /v euclidean                  a vector path and its distance function
//! rows plain                              how rows of a fused rank look, `plain` or `ordered`
//! > SELECT TOP @n c.a FROM c ORDER BY c.a a query
//! @n 5                                    its parameters
//! top: 5                                  its plan
//! order: c.a Ascending
//! range: everything                       by keys, then in hex unless it is everything
//! needs: OrderBy Top                      the features that a client must have
//! | SELECT TOP @n c._rid, ...             the rewritten query
//! ```

use document::{HashVersion, PartitionKeyDefinition, PartitionKeyKind, Path, Value, parse_json};
use golden::Transcript;
use query::{Dialect, HybridInfo, HybridRows, Plan, QueryInfo, QueryRange, Work};

#[test]
fn plans_hold() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans");
    golden::check(folder, |script, transcript| State::new().run(&script.text, transcript));
}

#[test]
fn a_plan_in_json_has_every_member_that_clients_read() {
    let key = key("/pk");
    let text = "SELECT c.a, COUNT(1) AS n FROM c WHERE c.pk = 'x' GROUP BY c.a";
    let plan = query::plan(text, &[], &key, &Dialect::default(), HybridRows::Ordered).unwrap();
    let expected = r#"{"partitionedQueryExecutionInfoVersion":2,"queryInfo":{"distinctType":"None","top":null,"offset":null,"limit":null,"orderBy":[],"orderByExpressions":[],"groupByExpressions":["c.a"],"groupByAliases":["a","n"],"aggregates":[],"groupByAliasToAggregateType":{"a":null,"n":"Count"},"rewrittenQuery":"SELECT [{\"item\": c.a}] AS groupByItems, {\"a\": c.a, \"n\": {\"item\": COUNT(1)}} AS payload\nFROM c\nWHERE (c.pk = \"x\")\nGROUP BY c.a","hasSelectValue":false,"dCountInfo":null,"hasNonStreamingOrderBy":false},"queryRanges":[{"min":"11E3F358618BE9AA5BAFF4C7C74F0716","max":"11E3F358618BE9AA5BAFF4C7C74F0716","isMinInclusive":true,"isMaxInclusive":true}],"hybridSearchQueryInfo":null}"#;
    assert_eq!(plan.to_value().to_json(), expected);
}

#[test]
fn a_plan_that_is_passed_through_still_says_whether_rows_are_bare_values() {
    for (text, bare) in [
        ("SELECT COUNTIF(c.a) AS n FROM c", false),
        ("SELECT VALUE COUNTIF(c.a) FROM c", true),
        ("SELECT TOP 3 VALUE c.a FROM c ORDER BY RANK FullTextScore(c.text, 'x')", true),
    ] {
        let plan = query::plan(text, &[], &key("/pk"), &Dialect::default(), HybridRows::Ordered).unwrap();
        let Work::Merge(info) = plan.pass_through().work else { panic!("{text}") };
        assert_eq!(*info, QueryInfo { has_select_value: bare, ..QueryInfo::default() }, "{text}");
    }
}

#[test]
fn a_passed_through_plan_in_json_leaves_the_client_nothing_to_do() {
    let text = "SELECT COUNTIF(c.a) AS n FROM c";
    let plan = query::plan(text, &[], &key("/pk"), &Dialect::default(), HybridRows::Ordered).unwrap();
    let plan = plan.pass_through();
    let expected = r#"{"partitionedQueryExecutionInfoVersion":2,"queryInfo":{"distinctType":"None","top":null,"offset":null,"limit":null,"orderBy":[],"orderByExpressions":[],"groupByExpressions":[],"groupByAliases":[],"aggregates":[],"groupByAliasToAggregateType":{},"rewrittenQuery":"","hasSelectValue":false,"dCountInfo":null,"hasNonStreamingOrderBy":false},"queryRanges":[{"min":"","max":"FF","isMinInclusive":true,"isMaxInclusive":false}],"hybridSearchQueryInfo":null}"#;
    assert_eq!(plan.to_value().to_json(), expected);
}

#[test]
fn a_rank_in_json_has_every_member_that_clients_read() {
    let text =
        "SELECT TOP 1 * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'x'), VectorDistance(c.v, [1]), [2, 1])";
    let plan =
        query::plan(text, &[], &key("/pk"), &Dialect::default(), HybridRows::Plain).unwrap().to_value();
    assert!(plan.get("queryInfo").is_none(), "clients take its presence for an ordinary query");
    let info = plan.get("hybridSearchQueryInfo").and_then(Value::as_object).unwrap();
    let names = info.iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(
        names,
        [
            "globalStatisticsQuery",
            "componentQueryInfos",
            "componentWithoutPayloadQueryInfos",
            "projectionQueryInfo",
            "componentWeights",
            "skip",
            "take",
            "requiresGlobalStatistics"
        ]
    );
    assert_eq!(info.get("componentWeights").map(Value::to_json).as_deref(), Some("[2.0,1.0]"));
    assert_eq!(info.get("componentQueryInfos").and_then(Value::as_array).map(<[Value]>::len), Some(2));
}

/// What a script has set up so far, and the plan that is being written.
struct State {
    key: PartitionKeyDefinition,
    dialect: Dialect,
    rows: HybridRows,
    answer: Vec<String>,
}

impl State {
    fn new() -> Self {
        Self { key: key("/pk"), dialect: Dialect::default(), rows: HybridRows::Ordered, answer: Vec::new() }
    }

    fn run(mut self, script: &str, transcript: &mut Transcript) {
        let mut lines = script.lines().peekable();
        while let Some(line) = lines.next() {
            transcript.input(line);
            let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
            match command {
                "key" => self.key = key(rest),
                "embedding" => {
                    let (path, function) = rest.split_once(' ').expect("a path and a distance function");
                    let path = Path::parse(path).expect("a script has valid paths");
                    self.dialect.embeddings.push((path, function.to_owned()));
                }
                "rows" => self.rows = if rest == "plain" { HybridRows::Plain } else { HybridRows::Ordered },
                ">" => {
                    let mut parameters = Vec::new();
                    while let Some(parameter) = lines.next_if(|line| line.starts_with('@')) {
                        transcript.input(parameter);
                        let (name, json) = parameter.split_once(' ').expect("a name and a value");
                        parameters.push((name.to_owned(), value(json)));
                    }
                    while lines.next_if(|line| !line.is_empty()).is_some() {}
                    match query::plan(rest, &parameters, &self.key, &self.dialect, self.rows) {
                        Ok(plan) => {
                            self.plan(&plan);
                            self.can_be_sent(&plan, &parameters);
                        }
                        Err(error) => self.error(&error),
                    }
                    transcript.answer(self.answer.drain(..));
                }
                "" | "#" => {}
                _ => panic!("no part of a script: {line:?}"),
            }
        }
    }

    fn plan(&mut self, plan: &Plan) {
        match &plan.work {
            Work::Merge(info) => self.merge(info),
            Work::Fuse(info) => self.fuse(info),
        }
        for range in &plan.ranges {
            if *range == QueryRange::all() {
                self.write("range: everything");
            } else if range.is_point {
                self.write(format!("range: {range} {}", range.min).trim_end());
            } else {
                self.write(&format!("range: {range} {} {}", range.min, range.max));
            }
        }
        if !plan.features.is_empty() {
            self.write(&format!("needs: {}", plan.features.join(" ")));
        }
    }

    /// Checks that the rewritten query of a plan is valid once clients have filled in the placeholders.
    fn can_be_sent(&self, plan: &Plan, parameters: &[(String, Value)]) {
        let texts = match &plan.work {
            Work::Merge(info) => vec![&info.rewritten_query],
            Work::Fuse(info) => {
                let components = info.components.iter().map(|component| &component.rewritten_query);
                components.chain([&info.statistics_query]).collect()
            }
        };
        for text in texts.into_iter().filter(|text| !text.is_empty()) {
            let mut filled = text.replace("{documentdb-formattableorderbyquery-filter}", "true");
            for (name, value) in
                [("totaldocumentcount", "9"), ("totalwordcount", "99"), ("hitcountsarray", "[3]")]
            {
                for suffix in ["", "-0", "-1"] {
                    let name = format!("{{documentdb-formattablehybridsearchquery-{name}{suffix}}}");
                    filled = filled.replace(&name, value);
                }
            }
            if let Err(error) = query::parse(&filled, parameters, &self.dialect) {
                panic!("{filled}\n{error}");
            }
        }
    }

    fn merge(&mut self, info: &QueryInfo) {
        if info.distinct != query::Distinct::None {
            self.write(&format!("distinct: {:?}", info.distinct));
        }
        self.count("top", info.top);
        self.count("offset", info.offset);
        self.count("limit", info.limit);
        for (order, text) in &info.order_by {
            self.write(&format!("order: {text} {order:?}"));
        }
        for text in &info.group_by {
            self.write(&format!("group: {text}"));
        }
        if let Some(kind) = info.aggregate {
            self.write(&format!("aggregate: {kind:?}"));
        }
        for (alias, kind) in &info.aliases {
            self.write(
                &kind.map_or_else(|| format!("member: {alias}"), |kind| format!("member: {alias} {kind:?}")),
            );
        }
        if let Some(alias) = &info.distinct_count_alias {
            self.write(&format!("distinct count: {alias:?}"));
        }
        for (name, set) in
            [("bare values", info.has_select_value), ("not streaming", info.has_non_streaming_order_by)]
        {
            if set {
                self.write(name);
            }
        }
        self.query(&info.rewritten_query);
    }

    fn fuse(&mut self, info: &HybridInfo) {
        self.count("skip", info.skip);
        self.count("take", info.take);
        if !info.weights.is_empty() {
            self.write(&format!("weights: {:?}", info.weights));
        }
        self.write(if info.requires_statistics { "statistics, required" } else { "statistics" });
        self.query(&info.statistics_query);
        for component in &info.components {
            self.write("component");
            self.merge(component);
        }
    }

    fn count(&mut self, name: &str, count: Option<u64>) {
        if let Some(count) = count {
            self.write(&format!("{name}: {count}"));
        }
    }

    fn query(&mut self, text: &str) {
        text.lines().for_each(|line| self.write(&format!("| {line}")));
    }

    fn error(&mut self, error: &query::Error) {
        for report in error.reports() {
            let place =
                report.location.map_or_else(String::new, |(start, end)| format!(" at {start}..{end}"));
            self.write(&format!("error: {:?}{place}: {}", report.code, report.message));
        }
    }

    fn write(&mut self, line: &str) {
        self.answer.extend(line.lines().map(str::to_owned));
    }
}

fn value(json: &str) -> Value {
    parse_json(json.as_bytes()).expect("a script holds valid JSON")
}

fn key(paths: &str) -> PartitionKeyDefinition {
    let paths = paths.split(' ').filter(|path| *path != "none").collect::<Vec<_>>();
    PartitionKeyDefinition {
        kind: if paths.len() > 1 { PartitionKeyKind::MultiHash } else { PartitionKeyKind::Hash },
        paths: paths.into_iter().map(|path| Path::parse(path).expect("a script has valid paths")).collect(),
        version: Some(HashVersion::V2),
        system_key: false,
    }
}
