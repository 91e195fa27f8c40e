//! The surface of geometries.

/// The surface that coordinates refer to, on which the spatial functions compute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Surface {
    /// Longitude and latitude in degrees on the earth; distances are metres.
    #[default]
    Globe,
    /// Any two numbers; distances are in their unit.
    Plane,
}
