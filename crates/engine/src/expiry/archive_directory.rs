//! The name of the archive directory that a container's lifecycle settings may give (T32).

/// The name of a directory below the archive's root. It cannot lead outside of that root: only letters, digits, `-`,
/// `_` and dots are accepted, and the first character is not a dot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArchiveDirectory(String);

impl ArchiveDirectory {
    /// The longest name, in bytes.
    pub const BYTES_MAX: usize = 100;

    /// Parses a name. Returns `None` if it is not acceptable.
    pub fn parse(name: &str) -> Option<ArchiveDirectory> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_acceptable = (1..=Self::BYTES_MAX).contains(&name.len())
            && name.bytes().all(is_plain)
            && !name.starts_with('.');
        is_acceptable.then(|| ArchiveDirectory(name.to_owned()))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t32_a_name_leads_nowhere_else() {
        for good in ["a", "cold-2026_v1.2", "A..b", &"x".repeat(100)] {
            assert_eq!(ArchiveDirectory::parse(good).map(|name| name.0), Some(good.to_owned()));
        }
        for bad in [
            "",
            ".",
            "..",
            ".hidden",
            "a/b",
            "../a",
            "/a",
            "a\\b",
            "a b",
            "ä",
            "a\0",
            "a\n",
            &"x".repeat(101),
        ] {
            assert_eq!(ArchiveDirectory::parse(bad), None, "{bad:?}");
        }
    }
}
