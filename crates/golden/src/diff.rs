//! The difference between two texts, line by line, with a few lines around it.

use std::fmt::Write as _;

/// How many equal lines are shown before and after a difference.
const CONTEXT: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    Expected,
    Found,
}

/// What distinguishes `found` from `expected`: lines that begin with `-` are only in the first, those with `+` only in the
/// second; each part is headed by the number of its first line in `expected`.
pub(crate) fn lines(expected: &str, found: &str) -> String {
    let (expected, found): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let steps = align(&expected, &found);
    if steps.iter().all(|(side, _)| *side == Side::Both) {
        return "only the ends of lines differ\n".to_owned();
    }
    let differs = |at: &usize| steps[*at].0 != Side::Both;
    let is_near = |at: usize| {
        let near = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(steps.len());
        near.into_iter().any(|at| differs(&at))
    };
    let (mut text, mut number, mut shown) = (String::new(), 1, false);
    for (at, (side, line)) in steps.iter().enumerate() {
        let near = is_near(at);
        if near && !shown {
            let _ = writeln!(text, "line {number}:");
        }
        shown = near;
        if near {
            let sign = match side {
                Side::Both => ' ',
                Side::Expected => '-',
                Side::Found => '+',
            };
            let _ = writeln!(text, "{sign} {line}");
        }
        number += usize::from(*side != Side::Found);
    }
    text
}

/// Both texts in one order, with the most lines in common.
fn align<'t>(expected: &[&'t str], found: &[&'t str]) -> Vec<(Side, &'t str)> {
    let same = |(one, other): &(&&str, &&str)| one == other;
    let head = expected.iter().zip(found).take_while(same).count();
    let (left, right) = (&expected[head..], &found[head..]);
    let tail = left.iter().rev().zip(right.iter().rev()).take_while(same).count();
    let (left, right) = (&left[..left.len() - tail], &right[..right.len() - tail]);

    // How many lines the texts after two positions have in common.
    let width = right.len() + 1;
    let mut common = vec![0_u32; (left.len() + 1) * width];
    for (row, one) in left.iter().enumerate().rev() {
        for (column, other) in right.iter().enumerate().rev() {
            let at = row * width + column;
            let skipped = common[at + 1].max(common[at + width]);
            common[at] = if one == other { common[at + width + 1] + 1 } else { skipped };
        }
    }
    let mut steps: Vec<_> = expected[..head].iter().map(|line| (Side::Both, *line)).collect();
    let (mut row, mut column) = (0, 0);
    while row < left.len() || column < right.len() {
        let at = row * width + column;
        if row < left.len() && column < right.len() && left[row] == right[column] {
            steps.push((Side::Both, left[row]));
            (row, column) = (row + 1, column + 1);
        } else if row < left.len() && (column == right.len() || common[at + width] >= common[at + 1]) {
            steps.push((Side::Expected, left[row]));
            row += 1;
        } else {
            steps.push((Side::Found, right[column]));
            column += 1;
        }
    }
    steps.extend(expected[expected.len() - tail..].iter().map(|line| (Side::Both, *line)));
    steps
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn a_difference_is_shown_with_its_surroundings_alone() {
        let expected = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n";
        let found = "1\n2\n3\n4\n5\nsix\n7\n8\n9\n10\n11\n12\n13\n14\n15\n";
        let shown = "line 3:\n  3\n  4\n  5\n- 6\n+ six\n  7\n  8\n  9\nline 12:\n  12\n  13\n  14\n+ 15\n";
        assert_eq!(lines(expected, found), shown);
    }

    #[test]
    fn lines_that_moved_or_came_are_told_from_those_that_stayed() {
        assert_eq!(lines("a\nb\nc\n", "b\nc\nd\n"), "line 1:\n- a\n  b\n  c\n+ d\n");
        assert_eq!(lines("", "a\n"), "line 1:\n+ a\n");
        assert_eq!(lines("a\n", "a"), "only the ends of lines differ\n");
    }
}
