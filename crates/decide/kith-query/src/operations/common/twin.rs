//! The operation by its definition.

use crate::{
    CommonAnswer, CommonPlan, CommonQuery, GraphAnswer, GraphQuery, Operation, PathQuery, Want,
    operations::path::twin::is_path,
    operations::twin::{CASES, Ids, Twin, cases, ends, not_found, sorted},
};
use proptest::prelude::*;

/// The common connections, without the two members themselves.
pub(crate) fn common(twin: &Twin, a: u64, b: u64) -> Option<Ids> {
    twin.known(&[a, b])?;
    let both = twin.near(a).intersection(&twin.near(b)).copied().collect::<Ids>();
    Some(both.into_iter().filter(|&id| id != a && id != b).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn every_plan_finds_the_same_in_common(case in cases(), (a, b) in ends(), entities in any::<bool>()) {
        let cluster = case.cluster();
        let twin = if entities { case.entity_twin() } else { case.twin() };
        let kind = entities.then(|| "school".to_owned());
        let common = match entities {
            true => twin.connections(a).zip(twin.connections(b)).map(|(x, y)| x.intersection(&y).copied().collect()),
            false => common(&twin, a, b),
        };
        for plan in [CommonPlan::Auto, CommonPlan::Fetch, CommonPlan::Push] {
            for want in [Want::Ids, Want::Size, Want::Exists] {
                // Without a kind, `exists` is about every kind.
                let one = (want == Want::Exists).then(|| "connection".to_owned());
                let operation = Operation::Common(CommonQuery { id: a, to: b, kind: kind.clone().or(one), returns: want, plan });
                let got = cluster.query(&case.query(operation));
                let Some(common) = common.clone() else {
                    prop_assert!(not_found(&got, &twin, &[a, b]), "{:?}", got);
                    continue;
                };
                let expected = match want {
                    Want::Ids => CommonAnswer::Ids(sorted(common)),
                    Want::Size => CommonAnswer::Size(common.len() as u64),
                    Want::Exists => CommonAnswer::Exists(!common.is_empty()),
                };
                prop_assert_eq!(got, Ok(GraphAnswer::Common(expected)), "{:?} {:?}", plan, want);
            }
        }
    }

    #[test]
    fn whether_anything_is_in_common_is_asked_of_every_kind(case in cases(), (a, b) in ends()) {
        let (twin, entities) = (case.twin(), case.entity_twin());
        let query = |operation| GraphQuery { edge_type: None, direction: None, ..case.query(operation) };
        for plan in [CommonPlan::Auto, CommonPlan::Fetch, CommonPlan::Push] {
            let exists = |kind: Option<&str>| {
                let kind = kind.map(str::to_owned);
                case.cluster().query(&query(Operation::Common(CommonQuery { id: a, to: b, kind, returns: Want::Exists, plan })))
            };
            let schools = entities.connections(a).zip(entities.connections(b));
            let Some((schools, others)) = schools.map(|(x, y)| !x.is_disjoint(&y)).zip(common(&twin, a, b)) else {
                prop_assert!(exists(None).is_err());
                continue;
            };
            let found = |exists| Ok(GraphAnswer::Common(CommonAnswer::Exists(exists)));
            let named = exists(Some("connection"));
            let expected = found(schools || named == found(true));
            prop_assert_eq!(exists(None), expected, "{:?} {:?}", plan, others);
            prop_assert_eq!(exists(Some("school")), found(schools), "{:?}", plan);
        }
    }

    #[test]
    fn what_a_partial_answer_shows_is_true(case in cases(), (from, to) in ends(), lost in 0..4u32) {
        let (mut cluster, twin) = (case.cluster(), case.twin());
        cluster.lose(lost);
        if let Ok(GraphAnswer::Path(path)) = cluster.query(&case.query(PathQuery { from, to, max: 6 })) {
            prop_assert!(is_path(&twin, &path.members), "{:?}", path);
        }
        let query = CommonQuery { id: from, to, kind: None, returns: Want::Ids, plan: CommonPlan::Push };
        if let (Ok(GraphAnswer::Common(CommonAnswer::Ids(ids))), Some(all)) =
            (cluster.query(&case.query(query)), common(&twin, from, to))
        {
            prop_assert!(ids.iter().all(|id| all.contains(id)), "{:?}", ids);
        }
    }
}
