//! Limits how much of a bounded resource one tenant may hold: a multiple of what stays free.
//!
//! A fixed quota per tenant would waste what others do not use, or, with many tenants, promise more than exists. Here
//! the quota follows the free part, as in the dynamic thresholds of shared-memory switches: a single tenant gets most
//! of the resource, two greedy ones get less each, and however many there are, some of it is free for a tenant that
//! holds nothing.
//!
//! ```text
//!   greedy tenants   held by each (factor 3)   free
//!         1                  3/4                1/4
//!         2                  3/7                1/7
//!         n               3/(3n + 1)         1/(3n + 1)
//! ```

/// The multiple of the free part that a tenant may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// Three times as much: three quarters for a single tenant.
    Most,
    /// As much: half for a single tenant, so that other work of the same tenant is not refused.
    Half,
}

impl Share {
    fn factor(self) -> usize {
        match self {
            Share::Most => 3,
            Share::Half => 1,
        }
    }

    /// Returns whether a tenant that holds `held` units may take `wanted` more while `free` are free.
    pub(super) fn allows(self, held: usize, wanted: usize, free: usize) -> bool {
        wanted <= self.largest(held, free)
    }

    /// Returns how many units a tenant that holds `held` may take at once while `free` are free, as many as if they were
    /// taken one by one. A tenant that holds none may take all that is free, so that no request is too large forever.
    pub(super) fn largest(self, held: usize, free: usize) -> usize {
        if held == 0 {
            return free;
        }
        // The last unit is allowed if what is held before it is less than the share of what is free before it.
        (self.factor() * (free + 1)).saturating_sub(held) / (self.factor() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets tenants take single units in turn until none may; returns how many each has.
    fn fill(capacity: usize, tenants: usize, share: Share) -> Vec<usize> {
        let mut held = vec![0; tenants];
        loop {
            let before = held.clone();
            for tenant in 0..tenants {
                let free = capacity - held.iter().sum::<usize>();
                held[tenant] += usize::from(share.allows(held[tenant], 1, free));
            }
            if before == held {
                return held;
            }
        }
    }

    #[test]
    fn a_tenant_alone_leaves_a_quarter_and_several_leave_some() {
        assert_eq!(fill(8, 1, Share::Most), [6]);
        assert_eq!(fill(1000, 1, Share::Most), [750]);
        assert_eq!(fill(1000, 1, Share::Half), [500]);
        assert_eq!(fill(70, 2, Share::Most), [30, 30]);
        for tenants in 1..20 {
            let held: usize = fill(1000, tenants, Share::Most).iter().sum();
            assert!(held < 1000, "{tenants}");
        }
    }

    #[test]
    fn few_units_are_not_kept_from_a_tenant_alone() {
        assert_eq!([1, 2, 3, 4].map(|capacity| fill(capacity, 1, Share::Most)[0]), [1, 2, 3, 3]);
    }

    #[test]
    fn a_tenant_that_holds_nothing_may_take_all_that_is_free() {
        assert!(Share::Half.allows(0, 10, 10) && !Share::Half.allows(0, 11, 10));
        assert!(!Share::Most.allows(1, 10, 10));
        assert!(Share::Half.allows(10, 0, 0), "nothing is always allowed");
    }

    #[test]
    fn units_are_judged_as_if_they_were_taken_one_by_one() {
        for (share, held, free) in
            [Share::Most, Share::Half].into_iter().flat_map(|share| cases().map(move |(h, f)| (share, h, f)))
        {
            let (mut one_by_one, factor) = (0, share.factor());
            while one_by_one < free && (held == 0 || held + one_by_one < factor * (free - one_by_one)) {
                one_by_one += 1;
            }
            assert_eq!(share.largest(held, free), one_by_one, "{share:?} {held} {free}");
        }
    }

    fn cases() -> impl Iterator<Item = (usize, usize)> {
        (0..40).flat_map(|held| (0..40).map(move |free| (held, free)))
    }
}
