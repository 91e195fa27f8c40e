//! `$geoNear`: the documents nearest to a point, with their distance.
//!
//! The search is a condition on the collection, `$near`. The source may come nearest first and say so; if it does not, the rows
//! are sorted here.

use std::sync::Arc;

use bson::{Document, Value, ValueRef};

use crate::error::{Error, Result};
use crate::filter::Near;
use crate::pipeline::chain::{Blocking, BlockingStep, Each, EachRow, Step, World};
use crate::pipeline::memory::Memory;
use crate::pipeline::path::Path;
use crate::pipeline::row::Row;
use crate::pipeline::settings::Surroundings;
use crate::pipeline::source::Order;
use crate::pipeline::text::{as_double, type_name};

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
    distance: Option<Path>,
    location: Option<Path>,
}

impl GeoNear {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &Surroundings) -> Result<GeoNear> {
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

    fn option(&mut self, name: &str, value: ValueRef<'_>, around: &Surroundings) -> Result<()> {
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
            "near" => match value {
                ValueRef::Document(_) | ValueRef::Array(_) => self.near = value.to_value(),
                other => {
                    let kind = type_name(other);
                    let message = format!("$geoNear requires near to be a point or array, but found {kind}");
                    return Err(Error::location(5_860_401, message));
                }
            },
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
            "distanceField" => self.distance = Some(Path::parse(string()?)?),
            "includeLocs" => self.location = Some(Path::parse(string()?)?),
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

    /// The field that is searched, if the request names it.
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The conditions on the collection.
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

    /// What is done to the rows of the search. If they do not come nearest first, they are put in that order.
    pub(crate) fn steps(self: &Arc<Self>, near: &Near, order: Order) -> Vec<Box<dyn Step>> {
        let measuring = EachRow::step(Measuring { stage: Arc::clone(self), near: near.clone() });
        match order {
            Order::Sorted => vec![measuring],
            Order::Any => {
                let memory = Memory::of("$geoNear");
                vec![measuring, BlockingStep::step(NearestFirst { rows: Vec::new(), memory, given: None })]
            }
        }
    }
}

/// Tells the distance of each row, in its document and as meta.
struct Measuring {
    stage: Arc<GeoNear>,
    near: Near,
}

impl Each for Measuring {
    fn apply(&mut self, row: Row, world: &mut World<'_>) -> Result<Option<Row>> {
        let Some(distance) = self.near.distance(row.view(), world.context)? else { return Ok(None) };
        let distance = distance * self.stage.multiplier;
        let place = self.near.path().get(row.view()).map_or(Value::Null, ValueRef::to_value);
        let mut document = row.body.clone().into_tree();
        if let Some(path) = &self.stage.distance {
            path.set(&mut document, Value::Double(distance));
        }
        if let Some(path) = &self.stage.location {
            path.set(&mut document, place.clone());
        }
        let meta = Document::new().with("geoNearDistance", distance).with("geoNearPoint", place);
        Ok(Some(Row { meta: Some(Box::new(meta)), ..row.with_body(document) }))
    }
}

/// Rows by the distance in their meta.
struct NearestFirst {
    rows: Vec<(f64, Row)>,
    given: Option<std::vec::IntoIter<(f64, Row)>>,
    memory: Memory,
}

impl Blocking for NearestFirst {
    fn take(&mut self, row: Row, _world: &mut World<'_>) -> Result<()> {
        self.memory.take(row.bytes())?;
        let told = row.meta.as_ref().and_then(|meta| meta.get("geoNearDistance"));
        let distance = told.and_then(|value| as_double(value.view())).unwrap_or(f64::INFINITY);
        self.rows.push((distance, row));
        Ok(())
    }

    fn give(&mut self, world: &mut World<'_>) -> Result<Option<Row>> {
        if self.given.is_none() {
            let mut rows = std::mem::take(&mut self.rows);
            world.context.spend(rows.len() as u64 * 8)?;
            rows.sort_by(|(left, _), (right, _)| left.total_cmp(right));
            self.given = Some(rows.into_iter());
        }
        Ok(self.given.as_mut().and_then(Iterator::next).map(|(_, row)| row))
    }
}
