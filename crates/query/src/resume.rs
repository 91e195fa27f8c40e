//! What a continuation token is bound to: the queries with which its position may be used.
//!
//! The position of a row of a plain `ORDER BY` query is its sort key, its item and its index among the rows of that item.
//! Each of these is decided by `FROM` and `ORDER BY` alone, so the filter may change between two pages: clients that merge
//! several ranges do that when they resume. They do it with `TOP` and `LIMIT` in the query as well, which there only bound
//! what one range can contribute: the client counts the rows itself. The position of any other query only has a meaning in
//! the query as a whole: it names a part of the filter, counts rows, or is among groups or distinct rows.
//!
//! In both cases the layout of the text does not count: the fingerprint is over the tree as text, with parameters
//! replaced by their values. It includes the container's dialect, because a changed dialect gives names another meaning.

use document::{Value, encode_key, fingerprint as hash};

use crate::logical::{Dialect, Order, Query};
use crate::surface::Surface;
use crate::syntax::ast::{self, NodeKind};
use crate::syntax::print::{print_normal, print_order};

/// Returns a number that distinguishes queries whose positions differ in meaning, the same in every process.
pub(crate) fn fingerprint(
    tree: &ast::Query,
    query: &Query,
    parameters: &[(String, Value)],
    dialect: &Dialect,
) -> u64 {
    let text = if stands_in_order(query) && (is_unbounded(query) || is_merged_by_client(tree)) {
        format!("{} {} {:?}", print_order(tree, parameters), query.skip, query.take)
    } else {
        print_normal(tree, parameters)
    };
    let mut bytes = text.into_bytes();
    if dialect.surface != Surface::default() {
        bytes.extend(format!("{:?}", dialect.surface).into_bytes());
    }
    let embeddings = dialect.embeddings.iter().map(|(path, function)| (path.to_string(), function.clone()));
    for (name, meaning) in dialect.computed.iter().cloned().chain(embeddings) {
        for text in [name, meaning] {
            encode_key(Some(Value::String(text).view()), &mut bytes);
        }
    }
    hash(&bytes)
}

/// Returns `true` if `ORDER BY` and the item alone determine the position of a row.
fn stands_in_order(query: &Query) -> bool {
    matches!(query.order, Order::Keys(_))
        && query.reads_items
        && query.nested.is_none()
        && !query.is_grouped()
        && !query.distinct
}

/// Returns `true` if the query returns every row.
fn is_unbounded(query: &Query) -> bool {
    query.skip == 0 && query.take.is_none()
}

/// Returns `true` if its rows are the envelopes of a plan's rewritten query, in the form of a select list or of an object.
fn is_merged_by_client(tree: &ast::Query) -> bool {
    let names: Vec<&str> = match &tree.select {
        ast::Select::List(items) => items.iter().filter_map(name_of).collect(),
        ast::Select::Value(ast::Node { kind: NodeKind::Object(members), .. }) => {
            members.iter().map(|(name, _)| name.text.as_str()).collect()
        }
        ast::Select::Value(_) | ast::Select::Star(_) => return false,
    };
    names == ["_rid", "orderByItems", "payload"]
}

/// Returns the name of a member of a select list.
fn name_of(item: &ast::SelectItem) -> Option<&str> {
    match (&item.alias, &item.node.kind) {
        (Some(alias), _) => Some(&alias.text),
        (None, NodeKind::Path { steps, .. }) => match steps.last()? {
            ast::Step::Dot(name) => Some(&name.text),
            ast::Step::Index(_) => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> u64 {
        with(text, &[])
    }

    fn with(text: &str, parameters: &[(&str, Value)]) -> u64 {
        let parameters: Vec<_> =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let parsed = crate::parse(text, &parameters, &Dialect::default());
        parsed.unwrap_or_else(|error| panic!("{text}: {error}")).resume_fingerprint()
    }

    /// Each row is one query in several forms.
    #[test]
    fn the_layout_of_the_text_means_nothing() {
        for forms in [
            &["SELECT * FROM c", "select  *\nfrom c", "SELECT * -- all of them\nFROM c", "SELECT * FROM c  "]
                [..],
            &["SELECT * FROM c WHERE c.a = 'x'", "SELECT * FROM c WHERE ((c.a) = (\"x\"))"],
            &["SELECT TOP 2 * FROM c ORDER BY c.a", "SELECT top 2 * FROM c ORDER BY c.a ASC"],
            &[
                "SELECT c.a x FROM c WHERE abs(c.a) > 1 and c.b",
                "SELECT c.a AS x FROM c WHERE ABS(c.a)>1 AND c.b",
            ],
            &[
                "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a",
                "SELECT DISTINCT value c.a FROM c ORDER BY c.a ASC",
            ],
        ] {
            for form in forms {
                assert_eq!(of(form), of(forms[0]), "{form}");
            }
        }
        let literal = of("SELECT * FROM c WHERE c.a = 7");
        assert_eq!(with("SELECT * FROM c WHERE c.a = @a", &[("@a", Value::Int(7))]), literal);
        let one_more = [("@a", Value::Int(7)), ("@unused", Value::Null)];
        assert_eq!(with("SELECT * FROM c WHERE c.a = @a", &one_more), literal);
        assert_ne!(with("SELECT * FROM c WHERE c.a = @a", &[("@a", Value::Int(8))]), literal);
    }

    #[test]
    fn rows_in_order_stand_where_from_and_order_by_put_them() {
        let plain = of("SELECT * FROM c ORDER BY c.a");
        for same in [
            "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c AS payload FROM c WHERE (true) ORDER BY c.a",
            "SELECT VALUE c.b FROM c WHERE ((c.a >= 3)) ORDER BY c.a asc",
        ] {
            assert_eq!(of(same), plain, "{same}");
        }
        assert_eq!(with("SELECT * FROM c WHERE c.a > @x ORDER BY c.a", &[("@x", Value::Int(7))]), plain);
        for other in [
            "SELECT * FROM c",
            "SELECT * FROM c ORDER BY c.a DESC",
            "SELECT * FROM c ORDER BY c.b",
            "SELECT * FROM c ORDER BY c.a, c.b",
            "SELECT c.a FROM c JOIN t IN c.tags ORDER BY c.a",
            "SELECT TOP 9 * FROM c ORDER BY c.a",
            "SELECT * FROM c ORDER BY c.a OFFSET 0 LIMIT 9",
            "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a",
            "SELECT c.a FROM c GROUP BY c.a ORDER BY c.a",
        ] {
            assert_ne!(of(other), plain, "{other}");
        }
    }

    /// Clients send this to each range: they count rows themselves, and resume with a filter.
    #[test]
    fn the_window_of_a_rewritten_query_does_not_bind_its_filter() {
        let list = "c._rid, [{\"item\": c.a}] AS orderByItems, c AS payload";
        let object = "VALUE {\"_rid\": c._rid, \"orderByItems\": [{\"item\": c.a}], \"payload\": c}";
        for row in [list, object] {
            let top = |filter: &str| of(&format!("SELECT TOP 9 {row} FROM c WHERE {filter} ORDER BY c.a"));
            assert_eq!(top("(true)"), top("((c.a >= 3))"), "{row}");
            let window = |filter: &str, most: u8| {
                of(&format!("SELECT {row} FROM c WHERE {filter} ORDER BY c.a OFFSET 0 LIMIT {most}"))
            };
            assert_eq!(window("(true)", 9), window("((c.a >= 3))", 9), "{row}");
            assert_ne!(window("(true)", 9), window("(true)", 8), "{row}");
        }
        let other = |filter: &str| {
            of(&format!("SELECT TOP 9 c._rid, c AS payload FROM c WHERE {filter} ORDER BY c.a"))
        };
        assert_ne!(other("(true)"), other("((c.a >= 3))"));
    }

    #[test]
    fn other_positions_depend_on_the_whole_query() {
        for (one, other) in [
            ("SELECT * FROM c WHERE c.a > 1", "SELECT * FROM c WHERE c.a > 2"),
            ("SELECT * FROM c", "SELECT * FROM c WHERE true"),
            ("SELECT TOP 9 * FROM c ORDER BY c.a", "SELECT TOP 9 * FROM c WHERE c.b ORDER BY c.a"),
            (
                "SELECT * FROM c ORDER BY c.a OFFSET 0 LIMIT 9",
                "SELECT * FROM c WHERE c.b ORDER BY c.a OFFSET 0 LIMIT 9",
            ),
            ("SELECT DISTINCT VALUE c.a FROM c", "SELECT DISTINCT VALUE c.a FROM c WHERE c.b"),
            (
                "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a",
                "SELECT DISTINCT VALUE c.a FROM c WHERE c.b ORDER BY c.a",
            ),
            ("SELECT c.a FROM c GROUP BY c.a", "SELECT c.a FROM c WHERE c.b GROUP BY c.a"),
            (
                "SELECT c.a FROM c GROUP BY c.a ORDER BY c.a",
                "SELECT c.a FROM c WHERE c.b GROUP BY c.a ORDER BY c.a",
            ),
            ("SELECT COUNT(1) FROM c", "SELECT COUNT(1) FROM c WHERE c.b"),
        ] {
            assert_ne!(of(one), of(other), "{one}");
        }
    }

    #[test]
    fn a_name_that_the_container_redefines_means_something_else() {
        let parsed = |computed: &[(&str, &str)]| {
            let computed =
                computed.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
            let dialect = Dialect { computed, ..Dialect::default() };
            crate::parse("SELECT * FROM c ORDER BY c.low", &[], &dialect).unwrap().resume_fingerprint()
        };
        let first = parsed(&[("low", "SELECT VALUE LOWER(c.name) FROM c")]);
        assert_eq!(parsed(&[("low", "SELECT VALUE LOWER(c.name) FROM c")]), first);
        assert_ne!(parsed(&[("low", "SELECT VALUE UPPER(c.name) FROM c")]), first);
        assert_ne!(parsed(&[]), first);
    }

    #[test]
    fn a_token_of_the_globe_does_not_go_on_on_the_plane() {
        let [globe, plane] = [Surface::Globe, Surface::Plane].map(|surface| {
            let dialect = Dialect { surface, ..Dialect::default() };
            crate::parse("SELECT * FROM c ORDER BY c.distance", &[], &dialect).unwrap().resume_fingerprint()
        });
        assert_ne!(globe, plane);
    }
}
