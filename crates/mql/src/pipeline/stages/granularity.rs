//! Preferred numbers: the ends that `$bucketAuto` rounds to.

use crate::error::{Error, Result};

/// A series of preferred numbers.
#[derive(Debug, Clone)]
pub(crate) enum Granularity {
    PowersOfTwo,
    /// The numbers of one decade, from 1 to below 10.
    Decade(Vec<f64>),
}

const R5: &[f64] = &[1.0, 1.6, 2.5, 4.0, 6.3];
const R10: &[f64] = &[1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0];
const R20: &[f64] = &[
    1.0, 1.12, 1.25, 1.4, 1.6, 1.8, 2.0, 2.24, 2.5, 2.8, 3.15, 3.55, 4.0, 4.5, 5.0, 5.6, 6.3, 7.1, 8.0, 9.0,
];
const R40: &[f64] = &[
    1.0, 1.06, 1.12, 1.18, 1.25, 1.32, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.12, 2.24, 2.36, 2.5, 2.65, 2.8,
    3.0, 3.15, 3.35, 3.55, 3.75, 4.0, 4.25, 4.5, 4.75, 5.0, 5.3, 5.6, 6.0, 6.3, 6.7, 7.1, 7.5, 8.0, 8.5, 9.0,
    9.5,
];
const R80: &[f64] = &[
    1.0, 1.03, 1.06, 1.09, 1.12, 1.15, 1.18, 1.22, 1.25, 1.28, 1.32, 1.36, 1.4, 1.45, 1.5, 1.55, 1.6, 1.65,
    1.7, 1.75, 1.8, 1.85, 1.9, 1.95, 2.0, 2.06, 2.12, 2.18, 2.24, 2.3, 2.36, 2.43, 2.5, 2.58, 2.65, 2.72,
    2.8, 2.9, 3.0, 3.07, 3.15, 3.25, 3.35, 3.45, 3.55, 3.65, 3.75, 3.87, 4.0, 4.12, 4.25, 4.37, 4.5, 4.62,
    4.75, 4.87, 5.0, 5.15, 5.3, 5.45, 5.6, 5.8, 6.0, 6.15, 6.3, 6.5, 6.7, 6.9, 7.1, 7.3, 7.5, 7.75, 8.0,
    8.25, 8.5, 8.75, 9.0, 9.25, 9.5, 9.75,
];
const ONE_TWO_FIVE: &[f64] = &[1.0, 2.0, 5.0];
const E6: &[f64] = &[1.0, 1.5, 2.2, 3.3, 4.7, 6.8];
const E12: &[f64] = &[1.0, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.6, 6.8, 8.2];
const E24: &[f64] = &[
    1.0, 1.1, 1.2, 1.3, 1.5, 1.6, 1.8, 2.0, 2.2, 2.4, 2.7, 3.0, 3.3, 3.6, 3.9, 4.3, 4.7, 5.1, 5.6, 6.2, 6.8,
    7.5, 8.2, 9.1,
];

/// Returns a finer series: powers of ten, rounded to two digits, with one historical exception.
fn rounded_powers(count: i32) -> Vec<f64> {
    (0..count)
        .map(|number| {
            let value = (10_f64.powf(f64::from(number) / f64::from(count)) * 100.0).round() / 100.0;
            if (value - 9.19).abs() < 0.001 && count == 192 { 9.2 } else { value }
        })
        .collect()
}

impl Granularity {
    pub(crate) fn parse(name: &str) -> Result<Granularity> {
        let decade = match name {
            "POWERSOF2" => return Ok(Granularity::PowersOfTwo),
            "R5" => R5.to_vec(),
            "R10" => R10.to_vec(),
            "R20" => R20.to_vec(),
            "R40" => R40.to_vec(),
            "R80" => R80.to_vec(),
            "1-2-5" => ONE_TWO_FIVE.to_vec(),
            "E6" => E6.to_vec(),
            "E12" => E12.to_vec(),
            "E24" => E24.to_vec(),
            "E48" => rounded_powers(48),
            "E96" => rounded_powers(96),
            "E192" => rounded_powers(192),
            _ => {
                return Err(Error::location(40257, format!("Unknown rounding granularity '{name}'")));
            }
        };
        Ok(Granularity::Decade(decade))
    }

    /// Returns the next number of the series above.
    pub(crate) fn round_up(&self, value: f64) -> f64 {
        if value <= 0.0 || !value.is_finite() {
            return value;
        }
        match self {
            Granularity::PowersOfTwo => 2_f64.powf(value.log2().floor() + 1.0),
            Granularity::Decade(series) => {
                let scale = decade_of(value);
                let above = series.iter().map(|number| number * scale).find(|number| *number > value);
                above.unwrap_or(series[0] * scale * 10.0)
            }
        }
    }

    /// Returns the next number of the series below.
    pub(crate) fn round_down(&self, value: f64) -> f64 {
        if value <= 0.0 || !value.is_finite() {
            return value;
        }
        match self {
            Granularity::PowersOfTwo => 2_f64.powf(value.log2().ceil() - 1.0),
            Granularity::Decade(series) => {
                let scale = decade_of(value);
                let below = series.iter().rev().map(|number| number * scale).find(|number| *number < value);
                below.unwrap_or(series[series.len() - 1] * scale / 10.0)
            }
        }
    }
}

/// Returns the power of ten at or below a number.
fn decade_of(value: f64) -> f64 {
    let scale = 10_f64.powf(value.log10().floor());
    if scale > value { scale / 10.0 } else { scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_to_their_neighbours() {
        let series = |name: &str| Granularity::parse(name).unwrap();
        assert!((series("R5").round_up(4.0) - 6.3).abs() < 1e-9);
        assert!((series("R5").round_down(1.0) - 0.63).abs() < 1e-9);
        assert!((series("1-2-5").round_up(67.0) - 100.0).abs() < 1e-9);
        assert!((series("POWERSOF2").round_up(4.0) - 8.0).abs() < 1e-9);
        assert!((series("POWERSOF2").round_down(4.0) - 2.0).abs() < 1e-9);
        assert!((series("E192").round_up(9.1) - 9.2).abs() < 0.1);
        assert!(Granularity::parse("R6").is_err());
    }
}
