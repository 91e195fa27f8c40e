//! Licence expressions as crates write them: `MIT OR Apache-2.0`, `(A OR B) AND C`, `A WITH exception`, the old `A/B`.

/// Whether the expression can be satisfied with the allowed licences. Anything unreadable is not.
pub(crate) fn allowed(expression: &str, licences: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, position: 0, licences };
    reader.any() == Some(true) && reader.position == words.len()
}

struct Reader<'a> {
    words: &'a [&'a str],
    position: usize,
    licences: &'a [String],
}

impl Reader<'_> {
    fn take(&mut self, word: &str) -> bool {
        let found = self.words.get(self.position) == Some(&word);
        self.position += usize::from(found);
        found
    }

    /// `all {OR all}`
    fn any(&mut self) -> Option<bool> {
        let mut satisfied = self.all()?;
        while self.take("OR") {
            satisfied |= self.all()?;
        }
        Some(satisfied)
    }

    /// `one {AND one}`
    fn all(&mut self) -> Option<bool> {
        let mut satisfied = self.one()?;
        while self.take("AND") {
            satisfied &= self.one()?;
        }
        Some(satisfied)
    }

    /// `( any )` or a name, perhaps `WITH` an exception, which only ever permits more.
    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let inner = self.any()?;
            return self.take(")").then_some(inner);
        }
        let name = *self.words.get(self.position)?;
        self.position += 1;
        if self.take("WITH") {
            self.position += 1;
        }
        Some(self.licences.iter().any(|licence| licence == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_weighed_as_their_words_say() {
        let licences = ["MIT", "Unicode-3.0"].map(str::to_owned);
        for (expression, expected) in [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("Apache-2.0/MIT", true),
            ("GPL-3.0", false),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true),
            ("", false),
            ("MIT MIT", false),
            ("(MIT", false),
        ] {
            assert_eq!(allowed(expression, &licences), expected, "{expression}");
        }
    }
}
