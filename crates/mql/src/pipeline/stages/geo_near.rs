//! `$geoNear`: the documents nearest to a point, with their distance.
//!
//! The search is a condition on the collection, `$near`, whose distances are measured as for every other search
//! (`search_meta`). This stage only puts them into the fields that the request names.

use std::sync::Arc;

use bson::{Document, Value, ValueRef};

use crate::error::{Error, Result};
use crate::path::FieldPath;
use crate::pipeline::chain::{Each, EachRow, ExecutionContext, Step};
use crate::pipeline::row::Row;
use crate::pipeline::settings::{Given, PipelineContext};
use crate::pipeline::values::{as_double, type_name};

/// A `$geoNear` as parsed.
#[derive(Debug)]
pub(crate) struct GeoNear {
    near: Value,
    key: Option<String>,
    query: Option<Document>,
    spherical: bool,
    minimum: Option<f64>,
    maximum: Option<f64>,
    multiplier: f64,
    distance: Option<FieldPath>,
    location: Option<FieldPath>,
}

impl GeoNear {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<GeoNear> {
        let ValueRef::Document(document) = argument else {
            let kind = type_name(argument);
            let message = format!("$geoNear requires an object, but found {kind}");
            return Err(Error::location(10942, message));
        };
        let mut stage = GeoNear {
            near: Value::Null,
            key: None,
            query: None,
            spherical: false,
            minimum: None,
            maximum: None,
            multiplier: 1.0,
            distance: None,
            location: None,
        };
        for (name, value) in document.iter() {
            stage.option(name, value, around)?;
        }
        if matches!(stage.near, Value::Null) {
            return Err(Error::location(5_860_400, "$geoNear requires a 'near' argument"));
        }
        Ok(stage)
    }

    fn option(&mut self, name: &str, value: ValueRef<'_>, around: &PipelineContext) -> Result<()> {
        let string = || {
            value.as_str().ok_or_else(|| {
                let kind = type_name(value);
                Error::type_mismatch(format!(
                    "$geoNear parameter '{name}' must be of type string but found type: {kind}"
                ))
            })
        };
        let number = || {
            as_double(value).filter(|number| *number >= 0.0).ok_or_else(|| {
                let kind = type_name(value);
                Error::type_mismatch(format!(
                    "$geoNear parameter '{name}' must be a nonnegative number but found: {kind}"
                ))
            })
        };
        match name {
            "near" => self.near = near(value, around)?,
            "key" => {
                let key = string()?;
                if key.is_empty() {
                    return Err(Error::bad_value("$geoNear parameter 'key' cannot be the empty string"));
                }
                self.key = Some(key.to_owned());
            }
            "query" => {
                let query = value.as_document().ok_or_else(|| {
                    let kind = type_name(value);
                    Error::type_mismatch(format!(
                        "$geoNear parameter 'query' must be an object but found: {kind}"
                    ))
                })?;
                around.filter(query)?;
                self.query = Some(query.to_document());
            }
            "spherical" => self.spherical = value.as_bool().unwrap_or_else(|| as_double(value) != Some(0.0)),
            "minDistance" => self.minimum = Some(number()?),
            "maxDistance" => self.maximum = Some(number()?),
            "distanceMultiplier" => self.multiplier = number()?,
            "distanceField" => self.distance = Some(FieldPath::parse_aggregation(string()?)?),
            "includeLocs" => self.location = Some(FieldPath::parse_aggregation(string()?)?),
            "limit" | "num" => {
                return Err(Error::location(
                    50857,
                    format!("$geoNear no longer supports the '{name}' parameter. Use a $limit stage"),
                ));
            }
            "uniqueDocs" => {}
            _ => {
                return Err(Error::location(
                    40415,
                    format!("BSON field '$geoNear.{name}' is an unknown field."),
                ));
            }
        }
        Ok(())
    }

    /// Returns the field that is searched, if the request names it.
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Returns the conditions on the collection.
    pub(crate) fn filter(&self, key: &str) -> Document {
        let is_point = matches!(&self.near, Value::Document(point) if point.contains("type"));
        let mut near = Document::new();
        if is_point {
            let mut inner = Document::new().with("$geometry", self.near.clone());
            for (name, distance) in [("$minDistance", self.minimum), ("$maxDistance", self.maximum)] {
                if let Some(distance) = distance {
                    inner.push(name, distance);
                }
            }
            near.push("$nearSphere", inner);
        } else {
            near.push(if self.spherical { "$nearSphere" } else { "$near" }, self.near.clone());
            for (name, distance) in [("$minDistance", self.minimum), ("$maxDistance", self.maximum)] {
                if let Some(distance) = distance {
                    near.push(name, distance);
                }
            }
        }
        let mut filter = Document::new().with(key, near);
        match &self.query {
            Some(query) if query.contains(key) => {
                let both = vec![Value::Document(filter), Value::Document(query.clone())];
                filter = Document::new().with("$and", both);
            }
            Some(query) => query.iter().for_each(|(name, value)| filter.push(name, value.clone())),
            None => {}
        }
        filter
    }

    /// Starts the step that puts the metadata of rows into the fields that the request names.
    pub(crate) fn start(self: &Arc<Self>) -> Box<dyn Step> {
        EachRow::step(GeoNearStep(Arc::clone(self)))
    }
}

/// Returns the point, which the values of `let` may be part of.
fn near(written: ValueRef<'_>, around: &PipelineContext) -> Result<Value> {
    match around.given(written)? {
        Given::Value(place @ (Value::Document(_) | Value::Array(_))) => Ok(place),
        // A pipeline without the values is checked and not run: any point is good enough.
        Given::Awaited => Ok(Value::Array(vec![Value::Int32(0), Value::Int32(0)])),
        Given::Value(other) => {
            let kind = type_name(other.view());
            let message = format!("$geoNear requires near to be a point or array, but found {kind}");
            Err(Error::location(5_860_401, message))
        }
        Given::No => Err(Error::location(5_860_402, "$geoNear requires a constant near argument")),
    }
}

struct GeoNearStep(Arc<GeoNear>);

impl Each for GeoNearStep {
    fn apply(&mut self, row: Row, _world: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        let told = |name: &str| row.meta.as_ref().and_then(|meta| meta.get(name));
        let mut document = row.body.clone().into_tree();
        if let (Some(path), Some(distance)) = (&self.0.distance, told("geoNearDistance")) {
            let distance = as_double(distance.view()).unwrap_or_default();
            path.set(&mut document, Value::Double(distance * self.0.multiplier));
        }
        if let (Some(path), Some(point)) = (&self.0.location, told("geoNearPoint")) {
            path.set(&mut document, point.clone());
        }
        row.with_made(document).map(Some)
    }
}
