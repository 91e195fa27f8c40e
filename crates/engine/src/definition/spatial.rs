//! `spatialIndexes`: paths whose shapes are indexed, and what the container's `geospatialConfig` requires of them.
//!
//! On a plane each index says how far the plane extends; on the earth the extent is known, and giving one is refused.
//! Containers that were created before this was checked keep what they have until one of the two is changed.

use document::{Object, Value};
use query::Surface;

use super::ContainerDefinition;
use super::index_path::IndexPath;
use crate::types::definition_error::{
    Result, invalid, malformed, members, optional, optional_list, required, word,
};

const TYPES: [&str; 4] = ["Point", "LineString", "Polygon", "MultiPolygon"];
const CORNERS: [&str; 4] = ["xmin", "ymin", "xmax", "ymax"];

/// One spatial index.
#[derive(Debug, Clone, PartialEq)]
pub struct SpatialIndex {
    /// The path of the shapes.
    pub path: IndexPath,
    /// Which shapes, in the spelling of the definition.
    pub types: Vec<&'static str>,
    /// The plane's extent, for flat geometry.
    pub bounding_box: Option<Value>,
}

impl SpatialIndex {
    pub(super) fn from_value(value: &Value) -> Result<Self> {
        let entry = members(value, "spatialIndexes", &["path", "types", "boundingBox"])?;
        let path = IndexPath::from_value(required(entry, "path")?)?;
        let mut types = Vec::new();
        for value in optional_list(entry, "types", TYPES.len())? {
            types.push(word(value, "types", &TYPES)?);
        }
        if types.is_empty() {
            return Err(invalid(format!(
                "The spatial index of '{}' must name in 'types' at least one of {}.",
                path.as_str(),
                TYPES.join(", ")
            )));
        }
        let bounding_box = optional(entry, "boundingBox").cloned();
        if let Some(extent) = &bounding_box {
            let extent = members(extent, "boundingBox", &CORNERS)?;
            for corner in CORNERS {
                let value = required(extent, corner)?;
                value.as_f64().ok_or_else(|| malformed(corner, "a number", value))?;
            }
        }
        Ok(Self { path, types, bounding_box })
    }

    pub(super) fn to_value(&self) -> Value {
        let mut entry = Object::new();
        entry.insert("path", self.path.as_str());
        entry.insert("types", self.types.iter().map(|name| Value::from(*name)).collect::<Vec<_>>());
        if let Some(extent) = &self.bounding_box {
            entry.insert("boundingBox", extent.clone());
        }
        entry.into()
    }

    /// Refuses an index that does not fit the surface.
    fn check(&self, surface: Surface) -> Result<()> {
        let path = self.path.as_str();
        match (surface, &self.bounding_box) {
            (Surface::Globe, None) => Ok(()),
            (Surface::Globe, Some(_)) => Err(invalid(format!(
                "The spatial index of '{path}' must not have a boundingBox: the container's geospatialConfig is Geography, \
                 which reaches around the earth."
            ))),
            (Surface::Plane, None) => Err(invalid(format!(
                "The spatial index of '{path}' must have a boundingBox with xmin, ymin, xmax and ymax: the container's \
                 geospatialConfig is Geometry."
            ))),
            (Surface::Plane, Some(extent)) => {
                let corner = |name: &str| extent.get(name).and_then(Value::as_f64).unwrap_or_default();
                for (least, greatest) in [("xmin", "xmax"), ("ymin", "ymax")] {
                    if corner(least) >= corner(greatest) {
                        return Err(invalid(format!(
                            "The boundingBox of the spatial index of '{path}' must have {least} below {greatest}, but has \
                             {} and {}.",
                            corner(least),
                            corner(greatest)
                        )));
                    }
                }
                Ok(())
            }
        }
    }
}

/// Refuses spatial indexes that do not fit the surface of their container.
pub(super) fn check(definition: &ContainerDefinition) -> Result<()> {
    let surface = definition.surface();
    definition.indexing.spatial.iter().try_for_each(|index| index.check(surface))
}

/// Does the same for a definition that replaces another, if it changes the spatial indexes or the surface.
pub(super) fn check_change(old: &ContainerDefinition, new: &ContainerDefinition) -> Result<()> {
    if old.surface() == new.surface() && old.indexing.spatial == new.indexing.spatial {
        return Ok(());
    }
    check(new)
}
