//! Parsing of expressions: names, arity and variables are checked here, once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bson::{Document, DocumentRef, Value, ValueRef};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::expression::node::{self, Node, Special, Variable};
use crate::expression::operand::{Operand, is_nullish, measure, type_name};
use crate::expression::path::check_name;
use crate::expression::scope::{self, Scope, Variables};
use crate::expression::table::{self, Arity, Call, Form, Function, Names};
use crate::path::FieldPath;
use crate::regex::PatternBudget;

/// A parser with the names in scope.
#[derive(Debug)]
pub(crate) struct Parser<'a> {
    known: &'a Variables,
    /// How many times the enclosing operators bind each name.
    bound: HashMap<String, usize>,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(known: &'a Variables) -> Parser<'a> {
        Parser { known, bound: HashMap::new() }
    }

    /// Returns the budget of constant patterns.
    pub(crate) fn patterns(&self) -> &'a PatternBudget {
        self.known.patterns()
    }

    /// Reads any value.
    pub(crate) fn operand(&mut self, value: ValueRef<'_>) -> Result<Node> {
        match value {
            ValueRef::String(text) if text.starts_with('$') => self.path(text),
            ValueRef::Document(document) => self.document(document),
            ValueRef::Array(items) => {
                let nodes: Vec<Node> = items.iter().map(|item| self.operand(item)).collect::<Result<_>>()?;
                Ok(fold_array(nodes))
            }
            other => Ok(Node::Constant(Some(other.to_value()))),
        }
    }

    /// Reads a part with more names bound.
    pub(crate) fn with_names<T>(
        &mut self,
        names: &[&str],
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        for name in names {
            *self.bound.entry((*name).to_owned()).or_insert(0) += 1;
        }
        let result = read(self);
        for name in names {
            if let Some(times) = self.bound.get_mut(*name) {
                *times -= 1;
            }
        }
        result
    }

    /// Reads arguments by position: a list, or the one argument itself.
    pub(crate) fn list(&mut self, argument: ValueRef<'_>) -> Result<Vec<Node>> {
        match argument {
            ValueRef::Array(items) => items.iter().map(|item| self.operand(item)).collect(),
            single => Ok(vec![self.operand(single)?]),
        }
    }

    /// Reads exactly so many arguments.
    pub(crate) fn exactly<const N: usize>(
        &mut self,
        name: &str,
        argument: ValueRef<'_>,
    ) -> Result<[Node; N]> {
        let nodes = self.list(argument)?;
        check_arity(name, Arity::Exactly(N), nodes.len())?;
        nodes.try_into().map_err(|_| wrong_count(name, N, 0))
    }

    /// Reads arguments by name, each at its place in the table.
    pub(crate) fn named(&mut self, names: &Names, argument: ValueRef<'_>) -> Result<Vec<Option<Node>>> {
        let fields = named_fields(names, argument)?;
        fields.into_iter().map(|field| field.map(|value| self.operand(value)).transpose()).collect()
    }

    fn document(&mut self, document: DocumentRef<'_>) -> Result<Node> {
        match document.iter().next() {
            None => Ok(Node::Constant(Some(Value::Document(Document::new())))),
            Some((name, argument)) if name.starts_with('$') => {
                if document.iter().nth(1).is_some() {
                    let found = bson::shell_text(ValueRef::Document(document));
                    return Err(Error::location(
                        15983,
                        format!("An object representing an expression must have exactly one field: {found}"),
                    ));
                }
                self.operator(name, argument)
            }
            Some(_) => self.literal_document(document),
        }
    }

    fn literal_document(&mut self, document: DocumentRef<'_>) -> Result<Node> {
        let mut seen = HashSet::new();
        let mut fields = Vec::new();
        for (name, value) in document.iter() {
            check_name(name)?;
            if !seen.insert(name) {
                let found = bson::shell_text(ValueRef::Document(document));
                let message = format!("duplicate field name specified in object literal: {found}");
                return Err(Error::location(16406, message));
            }
            fields.push((name.to_owned(), self.operand(value)?));
        }
        Ok(fold_document(fields))
    }

    fn operator(&mut self, name: &str, argument: ValueRef<'_>) -> Result<Node> {
        let Some((operator, foldable)) = table::find(name) else {
            let message = format!("Unrecognized expression '{name}'");
            return Err(Error::new(Code(168), message));
        };
        let (function, arguments): (Function, Vec<Option<Node>>) = match operator.form {
            Form::Own(parse) => return parse(self, operator.name, argument),
            Form::Positional(arity, function) => {
                let nodes = self.list(argument)?;
                check_arity(name, arity, nodes.len())?;
                (function, nodes.into_iter().map(Some).collect())
            }
            Form::Named(names, function) => (function, self.named(names, argument)?),
        };
        let foldable = foldable && arguments.iter().flatten().all(Node::is_constant);
        let node = Node::Call { name: operator.name, function, arguments };
        Ok(if foldable { fold(node) } else { node })
    }

    /// Parses an operator whose last arguments replace null or an error: they are only evaluated if they are needed.
    pub(crate) fn guarded(
        &mut self,
        name: &'static str,
        names: &Names,
        function: Function,
        argument: ValueRef<'_>,
    ) -> Result<Node> {
        let mut arguments = self.named(names, argument)?;
        let mut take = |wanted: &str| {
            let position = names.parameters.iter().position(|parameter| parameter.name == wanted)?;
            arguments[position].take()
        };
        let (on_null, on_error) = (take("onNull"), take("onError"));
        let foldable = arguments.iter().chain([&on_null, &on_error]).flatten().all(Node::is_constant);
        let node = match (&on_null, &on_error) {
            (None, None) => Node::Call { name, function, arguments },
            _ => Node::Special(Arc::new(Guarded { name, function, arguments, on_null, on_error })),
        };
        Ok(if foldable { fold(node) } else { node })
    }

    fn path(&mut self, text: &str) -> Result<Node> {
        let Some(rest) = text.strip_prefix("$$") else {
            if text.len() < 2 {
                return Err(Error::location(16872, "'$' by itself is not a valid FieldPath"));
            }
            return Ok(Node::Field(FieldPath::parse_aggregation(&text[1..])?));
        };
        let (name, path) = match rest.split_once('.') {
            Some((name, path)) => (name, Some(path)),
            None => (rest, None),
        };
        scope::check_readable(name)?;
        let path = match path {
            Some("") => return Err(Error::location(40353, "FieldPath must not end with a '.'.")),
            Some(path) => Some(FieldPath::parse_aggregation(path)?),
            None => None,
        };
        let constant = |value: Option<Value>| match &path {
            Some(_) => Node::Constant(None),
            None => Node::Constant(value),
        };
        let variable = match name {
            "ROOT" => Variable::Root,
            "CURRENT" => Variable::Current,
            "NOW" => Variable::Now,
            "CLUSTER_TIME" => Variable::ClusterTime,
            "REMOVE" | "SEARCH_META" => return Ok(constant(None)),
            "DESCEND" => return Ok(constant(Some("descend".into()))),
            "PRUNE" => return Ok(constant(Some("prune".into()))),
            "KEEP" => return Ok(constant(Some("keep".into()))),
            "USER_ROLES" => Variable::User(name.to_owned()),
            _ if self.is_known(name) => Variable::User(name.to_owned()),
            _ => return Err(Error::location(17276, format!("Use of undefined variable: {name}"))),
        };
        Ok(match (variable, path) {
            (Variable::Current, Some(path)) => Node::Field(path),
            (variable, path) => Node::Variable(variable, path),
        })
    }

    /// Returns `true` if a part depends on nothing but the values of the request's `let`.
    pub(crate) fn is_given(&self, node: &Node) -> bool {
        node.is_given(&|name| !self.is_bound(name) && self.known.contains(name))
    }

    fn is_bound(&self, name: &str) -> bool {
        self.bound.get(name).is_some_and(|times| *times > 0)
    }

    fn is_known(&self, name: &str) -> bool {
        self.is_bound(name) || self.known.contains(name)
    }
}

/// Returns a pure operator over arguments that it has read itself.
pub(crate) fn pure_call(name: &'static str, function: Function, arguments: Vec<Option<Node>>) -> Node {
    let foldable = arguments.iter().flatten().all(Node::is_constant);
    let node = Node::Call { name, function, arguments };
    if foldable { fold(node) } else { node }
}

/// A call with defaults for null and for a failed conversion.
#[derive(Debug)]
struct Guarded {
    name: &'static str,
    function: Function,
    arguments: Vec<Option<Node>>,
    on_null: Option<Node>,
    on_error: Option<Node>,
}

impl Special for Guarded {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        let values = node::evaluate_all(&self.arguments, scope, context)?;
        let call = Call { name: self.name, arguments: &values, scope, context };
        let value = match ((self.function)(&call), &self.on_error) {
            (Err(error), Some(instead)) if error.code == Code::CONVERSION_FAILURE => {
                return instead.evaluate(scope, context);
            }
            (value, _) => value?,
        };
        match &self.on_null {
            Some(instead) if is_nullish(call.get(0)) => instead.evaluate(scope, context),
            _ => Ok(value.into()),
        }
    }
}

/// Returns the fields of a document of named arguments, in the order of the table.
pub(crate) fn named_fields<'v>(names: &Names, argument: ValueRef<'v>) -> Result<Vec<Option<ValueRef<'v>>>> {
    let ValueRef::Document(document) = argument else {
        return Err(names.not_a_document.about(type_name(Some(argument))));
    };
    let mut fields = vec![None; names.parameters.len()];
    for (name, value) in document.iter() {
        let position = names.parameters.iter().position(|parameter| parameter.name == name);
        let position = position.ok_or_else(|| names.unknown.about(name))?;
        fields[position] = Some(value);
    }
    for (parameter, field) in names.parameters.iter().zip(&fields) {
        if let (Some(refusal), None) = (parameter.required, field) {
            return Err(refusal.about(parameter.name));
        }
    }
    Ok(fields)
}

fn check_arity(name: &str, arity: Arity, count: usize) -> Result<()> {
    match arity {
        Arity::Exactly(wanted) if count != wanted => Err(wrong_count(name, wanted, count)),
        Arity::Single if count != 1 => {
            Err(Error::location(50723, format!("{name} requires a single argument, got {count}")))
        }
        Arity::Between(least, most) if count < least || count > most => Err(Error::location(
            28667,
            format!(
                "Expression {name} takes at least {least} arguments, and at most {most}, but {count} were passed in."
            ),
        )),
        _ => Ok(()),
    }
}

fn wrong_count(name: &str, wanted: usize, count: usize) -> Error {
    let message = format!("Expression {name} takes exactly {wanted} arguments. {count} were passed in.");
    Error::location(16020, message)
}

/// Evaluates a call over constants. A call that fails is kept, and fails if it is ever evaluated.
fn fold(node: Node) -> Node {
    /// Larger values are computed on evaluation: folding must not multiply the memory of a request.
    const ARGUMENTS_BYTES_MAX: usize = 1024;
    const RESULT_BYTES_MAX: usize = 4096;
    let small = |value: Option<ValueRef<'_>>, left: &mut usize| {
        value.is_none_or(|value| measure(value, bson::limits::DEPTH_MAX, left).is_ok())
    };
    if let Node::Call { arguments, .. } = &node {
        let mut left = ARGUMENTS_BYTES_MAX;
        let constant = |argument: &Node| match argument {
            Node::Constant(value) => small(value.as_ref().map(Value::view), &mut left),
            _ => false,
        };
        if !arguments.iter().flatten().all(constant) {
            return node;
        }
    }
    let nothing = Document::new();
    let folded = node.evaluate(&Scope::root(nothing.view()), &Context::at(0)).map(Operand::into_value);
    match folded {
        Ok(value) if small(value.as_ref().map(Value::view), &mut RESULT_BYTES_MAX.clone()) => {
            Node::Constant(value)
        }
        _ => node,
    }
}

fn fold_array(nodes: Vec<Node>) -> Node {
    if !nodes.iter().all(Node::is_constant) {
        return Node::Array(nodes);
    }
    let value = |node| if let Node::Constant(value) = node { value } else { None };
    Node::Constant(Some(Value::Array(
        nodes.into_iter().map(|node| value(node).unwrap_or(Value::Null)).collect(),
    )))
}

fn fold_document(fields: Vec<(String, Node)>) -> Node {
    if !fields.iter().all(|(_, node)| node.is_constant()) {
        return Node::Document(fields);
    }
    let mut document = Document::new();
    for (name, node) in fields {
        if let Node::Constant(Some(value)) = node {
            document.push(name, value);
        }
    }
    Node::Constant(Some(Value::Document(document)))
}
