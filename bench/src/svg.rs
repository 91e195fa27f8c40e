//! Bars and lines as SVG, just enough for a report.

use std::fmt::Write as _;

const COLOURS: [&str; 8] =
    ["#1b6ca8", "#5fa8d3", "#0b3954", "#d1495b", "#edae49", "#66a182", "#999999", "#bbbbbb"];
const WIDTH: f64 = 1100.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 72.0;
const HEIGHT: f64 = 300.0;
const BOTTOM: f64 = 32.0;

/// Groups of bars on a logarithmic scale: `values[group][series]`, none where there is nothing to show.
pub fn bars(
    title: &str,
    unit: &str,
    groups: &[&str],
    series: &[&str],
    values: &[Vec<Option<f64>>],
) -> String {
    let scale = Scale::over(values.iter().flatten().flatten().copied());
    let mut svg = frame(title, unit, series, &scale);
    let slot = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
    let bar = slot * 0.84 / series.len().max(1) as f64;
    for (at, (group, row)) in groups.iter().zip(values).enumerate() {
        let begin = LEFT + slot * at as f64 + slot * 0.08;
        for (series, value) in row.iter().enumerate() {
            let Some(value) = value else { continue };
            let (x, y) = (begin + bar * series as f64, scale.y(*value));
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"><title>{group}: {value:.1} \
                 {unit}</title></rect>",
                (bar - 1.0).max(1.0),
                TOP + HEIGHT - y,
                COLOURS[series % COLOURS.len()]
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{group}</text>",
            begin + slot * 0.42,
            TOP + HEIGHT + 18.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Lines on two logarithmic scales: `values[series]` are points of (x, y).
pub fn lines(title: &str, unit: &str, series: &[&str], values: &[Vec<(f64, f64)>]) -> String {
    let scale = Scale::over(values.iter().flatten().map(|point| point.1));
    let mut svg = frame(title, unit, series, &scale);
    let all: Vec<f64> = values.iter().flatten().map(|point| point.0).collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min).max(1.0).log10();
    let most = all.iter().copied().fold(0.0, f64::max).max(10.0).log10();
    let place =
        |x: f64| LEFT + 20.0 + (x.log10() - least) / (most - least).max(0.1) * (WIDTH - LEFT - RIGHT - 60.0);
    for (at, points) in values.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let path: Vec<String> =
            points.iter().map(|(x, y)| format!("{:.1},{:.1}", place(*x), scale.y(*y))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
    }
    for (x, _) in values.first().into_iter().flatten() {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{x:.0}</text>",
            place(*x),
            TOP + HEIGHT + 18.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// A logarithmic scale between whole powers of ten.
struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    fn over(values: impl Iterator<Item = f64> + Clone) -> Scale {
        let least = values.clone().fold(f64::INFINITY, f64::min).max(0.1);
        let most = values.fold(1.0, f64::max);
        let least = if least.is_finite() { least.log10().floor() } else { 0.0 };
        Scale { least, most: most.log10().ceil().max(least + 1.0) }
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value.max(0.1).log10() - self.least) / (self.most - self.least);
        TOP + HEIGHT * (1.0 - share.clamp(0.0, 1.0))
    }
}

fn frame(title: &str, unit: &str, series: &[&str], scale: &Scale) -> String {
    let height = TOP + HEIGHT + BOTTOM;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"16\">{title}</text>\n"
    );
    let mut power = scale.least as i32;
    while f64::from(power) <= scale.most {
        let value = 10_f64.powi(power);
        let y = scale.y(value);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" \
             text-anchor=\"end\">{value} {unit}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0
        );
        power += 1;
    }
    let mut x = LEFT;
    for (at, name) in series.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.0}\" y=\"38\" width=\"12\" height=\"12\" fill=\"{colour}\"/><text x=\"{:.0}\" y=\"48\">{name}</text>",
            x + 16.0
        );
        x += 28.0 + 6.5 * name.len() as f64;
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_ten_times_as_high_stands_one_step_higher() {
        let scale = Scale::over([5.0, 700.0].into_iter());
        assert_eq!((scale.least, scale.most), (0.0, 3.0));
        let step = scale.y(10.0) - scale.y(100.0);
        assert!((step - HEIGHT / 3.0).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_value_has_no_bar() {
        let svg = bars("t", "us", &["a", "b"], &["x"], &[vec![Some(1.0)], vec![None]]);
        assert_eq!(svg.matches("<title>").count(), 1);
    }
}
