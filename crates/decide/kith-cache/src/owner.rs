//! Chooses which of several routers caches a member, by rendezvous hashing. Each router has a score for each member,
//! and the highest score owns the member. If a router leaves, only its own members move; if one joins, it takes an
//! equal share from each of the others.

use kith_types::fmix64;

/// Returns the index of the router that owns `member`; `None` if there are no routers. `routers` are stable, distinct
/// ids, whose order does not change the result. `O(routers)`.
pub fn owner_of(member: u64, routers: &[u64]) -> Option<usize> {
    let score = |router: u64| fmix64(fmix64(router).wrapping_add(member));
    let best = routers.iter().enumerate().max_by_key(|&(_, &router)| (score(router), router));
    best.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTERS: [u64; 5] = [11, 22, 33, 44, 55];

    fn owner(member: u64, routers: &[u64]) -> u64 {
        routers[owner_of(member, routers).expect("there are routers")]
    }

    #[test]
    fn without_routers_nobody_owns_anything() {
        assert_eq!(owner_of(1, &[]), None);
    }

    #[test]
    fn members_spread_evenly() {
        let mut owned = [0u32; 5];
        for member in 0..50_000 {
            owned[owner_of(member, &ROUTERS).expect("there are routers")] += 1;
        }
        assert!(owned.iter().all(|count| (9_500..10_500).contains(count)), "{owned:?}");
    }

    #[test]
    fn the_order_of_the_routers_does_not_matter() {
        let reversed: Vec<u64> = ROUTERS.into_iter().rev().collect();
        assert!((0..1_000).all(|member| owner(member, &ROUTERS) == owner(member, &reversed)));
    }

    #[test]
    fn a_router_that_goes_moves_only_its_own_members() {
        let rest: Vec<u64> = ROUTERS.into_iter().filter(|&router| router != 33).collect();
        for member in 0..10_000 {
            let before = owner(member, &ROUTERS);
            assert!(before == 33 || owner(member, &rest) == before, "member {member} moved");
        }
    }
}
