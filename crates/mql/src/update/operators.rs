//! A document of update operators: `{$set: {a: 1}, $inc: {"b.c": 2}}`.

use std::collections::BTreeMap;

use bson::{DocumentRef, RawDocument, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::filter::{self, Filter};
use crate::update::array_filters::ArrayFilters;
use crate::update::change::{ApplyContext, Change};
use crate::update::operator::{self, Operator, field_text};
use crate::update::path::UpdatePath;
use crate::update::rename::Rename;
use crate::update::tree::Fields;

/// All operators of an update.
#[derive(Debug)]
pub(super) struct Operators {
    tree: Fields,
    renames: Vec<Rename>,
    array_filters: BTreeMap<String, Filter>,
    settings: filter::Settings,
}

impl Operators {
    pub(super) fn parse(
        update: DocumentRef<'_>,
        filters: &mut ArrayFilters,
        settings: &filter::Settings,
    ) -> Result<Operators> {
        let mut tree = Fields::default();
        let mut renames = Vec::new();
        for (name, operand) in update.iter() {
            if !NAMES.contains(&name) {
                return Err(operator::unknown(name));
            }
            for (path, operand) in fields_of(name, operand)?.iter() {
                let path = filters.resolve(UpdatePath::parse(path)?)?;
                if name == "$rename" {
                    let rename = Rename::parse(path, operand)?;
                    tree.insert(rename.source(), Operator::RenameSource(renames.len()))?;
                    tree.insert(rename.target(), Operator::RenameTarget(renames.len()))?;
                    renames.push(rename);
                } else {
                    let operator = Operator::parse(name, path.as_str(), operand, settings)?;
                    tree.insert(&path, operator)?;
                }
            }
        }
        Ok(Operators { tree, renames, array_filters: filters.parsed(), settings: settings.clone() })
    }

    /// Returns the document after all operators; `None` if none of them wrote.
    pub(super) fn apply(
        &self,
        document: &RawDocument,
        filter: Option<&Filter>,
        inserting: bool,
        context: &Context,
    ) -> Result<Option<RawDocument>> {
        let setting = ApplyContext {
            context,
            settings: &self.settings,
            array_filters: &self.array_filters,
            filter,
            inserting,
        };
        let renamed = self.renames.iter().map(|rename| rename.take_from(document)).collect::<Result<_>>()?;
        Change::new(setting, document, renamed).run(&self.tree.named)
    }
}

/// All operators there are.
const NAMES: &[&str] = &[
    "$addToSet",
    "$bit",
    "$currentDate",
    "$inc",
    "$max",
    "$min",
    "$mul",
    "$pop",
    "$pull",
    "$pullAll",
    "$push",
    "$rename",
    "$set",
    "$setOnInsert",
    "$unset",
];

/// Returns the paths of an operator and the operand for each.
fn fields_of<'u>(name: &str, operand: ValueRef<'u>) -> Result<DocumentRef<'u>> {
    operand.as_document().ok_or_else(|| {
        Error::failed_to_parse(format!(
            "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not {{{}}}",
            operand.kind().alias(),
            field_text(name, operand)
        ))
    })
}
