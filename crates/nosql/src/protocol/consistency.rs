//! Consistency levels. This server is one replica, so that every read is consistent; the levels matter to clients, which
//! follow the account's, and to programs that shall fail here as they would fail in the service.

use std::fmt;

use crate::protocol::gateway::Gateway;

/// A consistency level. The first is the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consistency {
    /// Every read sees the last acknowledged write.
    Strong,
    /// Reads lag by a bounded number of versions or time.
    BoundedStaleness,
    /// A client sees its own writes.
    Session,
    /// Reads see writes in their order.
    ConsistentPrefix,
    /// Reads see each write at some time.
    Eventual,
}

impl Consistency {
    /// All levels, from the strongest to the weakest.
    pub const ALL: [Consistency; 5] = [
        Consistency::Strong,
        Consistency::BoundedStaleness,
        Consistency::Session,
        Consistency::ConsistentPrefix,
        Consistency::Eventual,
    ];

    /// Returns the level with this name, in any case, with or without hyphens.
    pub fn parse(text: &str) -> Option<Consistency> {
        let bare = text.trim().replace('-', "");
        Consistency::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(&bare))
    }

    /// Returns the name in the account document and in headers.
    pub fn name(self) -> &'static str {
        match self {
            Consistency::Strong => "Strong",
            Consistency::BoundedStaleness => "BoundedStaleness",
            Consistency::Session => "Session",
            Consistency::ConsistentPrefix => "ConsistentPrefix",
            Consistency::Eventual => "Eventual",
        }
    }

    pub(crate) fn is_stronger_than(self, other: Consistency) -> bool {
        self < other
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What the operator sets of the account: what the account document says of this server, and what requests it refuses.
#[derive(Debug, Clone, Default)]
pub struct AccountSettings {
    /// Host and port under which clients reach the server; otherwise those of their own request.
    pub public_address: Option<String>,
    /// The level of the account. Requests for a stronger one are refused, as in the service. Without a level the document
    /// shows [`Consistency::Session`], and none is refused.
    pub default_consistency: Option<Consistency>,
    /// Whether queries are answered that the service's gateway refuses.
    pub gateway: Gateway,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_has_its_name_in_every_spelling() {
        for text in ["BoundedStaleness", "boundedstaleness", "bounded-staleness"] {
            assert_eq!(Consistency::parse(text), Some(Consistency::BoundedStaleness), "{text}");
        }
        assert_eq!(Consistency::parse("linearizable"), None);
        assert!(Consistency::Strong.is_stronger_than(Consistency::Session));
        assert!(!Consistency::Eventual.is_stronger_than(Consistency::ConsistentPrefix));
        assert!(!Consistency::Session.is_stronger_than(Consistency::Session));
    }
}
