//! How closely the server follows the gateway of the service, which does less than a single server can.

use engine::FullPage;

/// What the server does with requests that the service's gateway does not answer, or answers in more pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gateway {
    /// It answers every query completely, and a full page may be the last one.
    #[default]
    Lenient,
    /// It does as the service's gateway: it refuses queries over several partition keys whose rows clients have to join,
    /// unless they name a range as a plan tells them to, and where rows come in the order of items, a full page always
    /// has a continuation: the service does not look further than it must.
    Strict,
}

impl Gateway {
    /// Returns what follows a full page.
    pub(crate) fn full_page(self) -> FullPage {
        match self {
            Gateway::Lenient => FullPage::MayBeLast,
            Gateway::Strict => FullPage::HasSuccessor,
        }
    }
}
