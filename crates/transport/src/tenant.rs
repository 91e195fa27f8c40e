//! The tenant that work and bytes are charged to: a key of the account, a resource token's permission, a MongoDB user.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A front end with its own tenants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Api {
    /// The NoSQL API, with the admin API and the explorer on the same port.
    Nosql,
    /// The MongoDB API.
    Mongo,
}

/// An authenticated user of one front end. The same key on both ports is two tenants, so that neither port starves the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tenant {
    api: Api,
    digest: u64,
}

impl Tenant {
    /// Returns the tenant with this identity on this front end.
    pub fn new(api: Api, identity: impl Hash) -> Tenant {
        let mut hasher = DefaultHasher::new();
        identity.hash(&mut hasher);
        Tenant { api, digest: hasher.finish() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_identity_is_another_tenant_on_another_port() {
        assert_eq!(Tenant::new(Api::Nosql, "primary"), Tenant::new(Api::Nosql, "primary"));
        assert_ne!(Tenant::new(Api::Nosql, "primary"), Tenant::new(Api::Mongo, "primary"));
        assert_ne!(Tenant::new(Api::Nosql, "primary"), Tenant::new(Api::Nosql, "secondary"));
    }
}
