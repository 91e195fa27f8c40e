//! The built-in functions: which the language has, and which of them run.

/// A function that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// `IS_DEFINED(x)`: whether `x` is anything at all, null included.
    IsDefined,
    /// `IS_NULL(x)`: whether `x` is null; false for what is not defined.
    IsNull,
}

/// What a name in front of parentheses turns out to be.
pub(crate) enum Lookup {
    /// A function that runs, with its number of arguments.
    Runs(Function, usize),
    /// A function of the service that does not run here yet.
    Known,
    /// Nothing.
    Unknown,
}

/// Looks a function up; letters of either case will do.
pub(crate) fn look_up(name: &str) -> Lookup {
    let upper = name.to_ascii_uppercase();
    match upper.as_str() {
        "IS_DEFINED" => Lookup::Runs(Function::IsDefined, 1),
        "IS_NULL" => Lookup::Runs(Function::IsNull, 1),
        other if KNOWN.binary_search(&other).is_ok() => Lookup::Known,
        _ => Lookup::Unknown,
    }
}

/// The functions of the service that do not run here yet, sorted.
#[rustfmt::skip]
const KNOWN: [&str; 147] = [
    "ABS", "ACOS", "AGO", "ARRAY_AVG", "ARRAY_CONCAT", "ARRAY_CONTAINS", "ARRAY_CONTAINS_ALL",
    "ARRAY_CONTAINS_ANY", "ARRAY_LENGTH", "ARRAY_MAX", "ARRAY_MEDIAN", "ARRAY_MIN", "ARRAY_SLICE",
    "ARRAY_SUM", "ASIN", "ATAN", "ATN2", "AVG", "CEILING", "CHOOSE", "CONCAT", "CONTAINS", "CONTAINSALLCI",
    "CONTAINSALLCS", "CONTAINSANYCI", "CONTAINSANYCS", "CONTAINS_ALL_CI", "CONTAINS_ALL_CS",
    "CONTAINS_ANY_CI", "CONTAINS_ANY_CS", "COS", "COT", "COUNT", "COUNTIF", "DATETIMEADD", "DATETIMEBIN",
    "DATETIMEDIFF", "DATETIMEFORMAT", "DATETIMEFROMPARTS", "DATETIMEPART", "DATETIMETOTICKS",
    "DATETIMETOTIMESTAMP", "DAY", "DEGREES", "DOCUMENTID", "ENDSWITH", "EXP", "FLOOR", "FULLTEXTCONTAINS",
    "FULLTEXTCONTAINSALL", "FULLTEXTCONTAINSANY", "FULLTEXTSCORE", "GETCURRENTDATETIME",
    "GETCURRENTDATETIMESTATIC", "GETCURRENTTICKS", "GETCURRENTTICKSSTATIC", "GETCURRENTTIMESTAMP",
    "GETCURRENTTIMESTAMPSTATIC", "IIF", "INDEX_OF", "INTADD", "INTBITAND", "INTBITLEFTSHIFT", "INTBITNOT",
    "INTBITOR", "INTBITRIGHTSHIFT", "INTBITXOR", "INTDIV", "INTMOD", "INTMUL", "INTSUB", "IS_ARRAY",
    "IS_BOOL", "IS_DATETIME", "IS_FINITE_NUMBER", "IS_INTEGER", "IS_NUMBER", "IS_OBJECT", "IS_PRIMITIVE",
    "IS_STRING", "LASTINDEXOF", "LASTSUBSTRINGAFTER", "LASTSUBSTRINGBEFORE", "LEFT", "LENGTH", "LOG",
    "LOG10", "LOWER", "LTRIM", "MAKELIST", "MAKESET", "MAX", "MIN", "MONTH", "NOW", "NUMBERBIN",
    "OBJECTTOARRAY", "PI", "POWER", "RADIANS", "RAND", "REGEXEXTRACT", "REGEXEXTRACTALL", "REGEXMATCH",
    "REPLACE", "REPLICATE", "REVERSE", "RIGHT", "ROUND", "RRF", "RTRIM", "SETDIFFERENCE", "SETEQUAL",
    "SETINTERSECT", "SETUNION", "SIGN", "SIN", "SQRT", "SQUARE", "STARTSWITH", "STRINGEQUALS", "STRINGJOIN",
    "STRINGSPLIT", "STRINGTOARRAY", "STRINGTOBOOLEAN", "STRINGTONULL", "STRINGTONUMBER", "STRINGTOOBJECT",
    "ST_AREA", "ST_DISTANCE", "ST_INTERSECTS", "ST_ISVALID", "ST_ISVALIDDETAILED", "ST_WITHIN", "SUBSTRING",
    "SUBSTRINGAFTER", "SUBSTRINGBEFORE", "SUM", "TAN", "TICKSTODATETIME", "TIMESTAMPTODATETIME", "TOSTRING",
    "TRIM", "TRUNC", "UPPER", "VECTORDISTANCE", "YEAR",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_functions_are_sorted_for_the_search() {
        assert!(KNOWN.is_sorted());
        assert!(matches!(look_up("ST_Distance"), Lookup::Known));
        assert!(matches!(look_up("is_defined"), Lookup::Runs(Function::IsDefined, 1)));
        assert!(matches!(look_up("MAGIC"), Lookup::Unknown));
    }
}
