//! The shapes of Moolle's figures, at reduced size. `docs/figures.md` lists the differences from the paper.

use kith_routing::fan_out::equations::expected_requests_in_groups;
use kith_sim::figures::{self, Drawing, Panel, Size, by_name};

fn draw(name: &str) -> Drawing {
    by_name(name).expect("a figure").run_at(Size::Reduced, 5)
}

fn rises(panel: &Panel, series: &str) {
    let points = &panel.series(series).points;
    assert!(points.windows(2).all(|pair| pair[0].1 < pair[1].1 * 1.02), "{series}: {points:?}");
}

fn about(got: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((got / expected - 1.0).abs() <= tolerance, "{what}: {got}, expected about {expected}");
}

#[test]
fn figure_5_has_the_papers_quantiles() {
    let drawing = draw("5");
    let value = |row: usize| drawing.tables[0].rows[row][1].parse::<f64>().unwrap();
    assert!(value(0) < 2.0, "median {}", value(0));
    assert!((19.0..23.0).contains(&value(2)), "p99 {}", value(2));
    assert!((80.0..325.0).contains(&value(4)), "maximum {}", value(4));
}

#[test]
fn figure_6_more_groups_are_slower_on_both_sides() {
    let panel = &draw("6").panels[0];
    for series in &panel.series {
        about(series.points[0].0, 1.0, 0.0, "first");
        assert!(series.at(1.0) * 1.3 < series.at(10.0), "{}: {:?}", series.name, series.points);
    }
    rises(panel, "client (left term)");
}

#[test]
fn figure_7a_groups_cap_requests() {
    let panel = &draw("7a").panels[0];
    for groups in [1, 3, 5, 7, 10] {
        let series = panel.series(&format!("Moolle ({groups})"));
        for (keys, requests) in &series.points {
            assert!(*requests <= f64::from(groups * 20), "{groups} groups made {requests} requests");
            let expected = expected_requests_in_groups(*keys as u32, groups, 20);
            about(*requests, expected, 0.05, &format!("equation 3, {groups} groups, {keys} keys"));
        }
        about(series.at(5_000.0), f64::from(groups * 20), 0.001, "saturation");
    }
    for (keys, requests) in &panel.series("naive").points {
        about(*requests, panel.series("Moolle (10)").at(*keys), 0.03, "naive is Moolle (10)");
    }
    for cover in ["set cover (Norbert)", "set cover (greedy)"] {
        assert!(panel.series(cover).at(20.0) < 0.75 * panel.series("Moolle (1)").at(20.0), "few keys");
        for (keys, requests) in panel.series(cover).points.iter().filter(|(keys, _)| 200.0 <= *keys) {
            assert!(
                19.9 < *requests && *requests < panel.series("Moolle (3)").at(*keys),
                "{cover} at {keys}"
            );
        }
    }
}

#[test]
fn figure_7b_only_naive_grows_with_the_nodes() {
    let panel = &draw("7b").panels[0];
    rises(panel, "naive");
    assert!(6.0 * panel.series("naive").at(20.0) < panel.series("naive").at(200.0));
    for (nodes, requests) in &panel.series("Moolle (1)").points {
        about(*requests, 20.0, 0.01, &format!("Moolle (1) at {nodes} nodes"));
    }
    for cover in ["set cover (Norbert)", "set cover (greedy)"] {
        let series = panel.series(cover);
        assert!(series.points.iter().all(|(_, requests)| *requests < 31.0), "flat: {:?}", series.points);
        for (nodes, requests) in series.points.iter().filter(|(nodes, _)| 100.0 < *nodes) {
            assert!(20.0 * 1.2 < *requests, "{cover} at {nodes} nodes: Moolle (1) is stricter");
        }
    }
}

#[test]
fn figure_8_naive_is_slowest_then_set_cover_then_moolle() {
    for name in ["8a", "8b"] {
        let panel = &draw(name).panels[0];
        for qps in [24.0, 42.0] {
            let at = |series: &str| panel.series(series).at(qps);
            let (naive, cover, moolle) = (at("naive"), at("set cover (Norbert)"), at("Moolle"));
            assert!(moolle < cover && cover < naive, "{name} at {qps}: {moolle} < {cover} < {naive}");
            assert!(moolle <= 0.65 * naive, "{name} at {qps}: at least 35 % less, {moolle} of {naive}");
        }
    }
}

#[test]
fn figure_9a_moolle_keeps_the_penalty_low_and_breaks_where_the_paper_does() {
    let drawing = draw("9a");
    let [penalty, requests, groups] = &drawing.panels[..] else { panic!("three panels") };
    // Below 200 keys, which do not reach every node of a group, set cover makes even fewer requests.
    for (keys, moolle) in penalty.series("Moolle").points.iter().filter(|(keys, _)| 200.0 <= *keys) {
        for other in ["naive", "set cover (Norbert)", "set cover (greedy)"] {
            let other_penalty = penalty.series(other).at(*keys);
            assert!(*moolle < other_penalty * 1.05, "{other} at {keys}: {moolle}, {other_penalty}");
        }
    }
    let at = |keys: f64| groups.series("Moolle").at(keys).round() as u32;
    assert_eq!([at(450.0), at(1_800.0), at(3_000.0)], [1, 5, 10]);
    assert_eq!(requests.series("Moolle").at(450.0).round(), 20.0);
    assert!(5.0 * penalty.series("Moolle").at(3_000.0) < penalty.series("set cover (Norbert)").at(3_000.0));
}

#[test]
fn figures_9b_and_9c_fan_out_shrinks_to_keep_the_desired_rate() {
    let per_query = &draw("9b").panels[0];
    let moolle = per_query.series("Moolle");
    assert_eq!((moolle.at(10.0), moolle.at(24.0)), (200.0, 200.0), "all groups below 25 queries a second");
    assert_eq!(
        (moolle.at(126.0), moolle.at(200.0)),
        (20.0, 20.0),
        "one group above 125 queries a second, like set cover"
    );
    about(moolle.at(50.0), 100.0, 0.21, "five groups, or four at a slightly higher rate");
    assert_eq!(per_query.series("set cover (greedy)").at(200.0), 20.0);

    let per_second = &draw("9c").panels[0];
    for (qps, rps) in &per_second.series("Moolle").points {
        assert!(*rps <= 5_000.0, "{qps} queries a second make {rps} requests");
    }
}

#[test]
fn figure_9d_the_client_caps_at_160_and_the_nodes_below_2500() {
    let panel = &draw("9d").panels[0];
    let moolle = panel.series("Moolle");
    for desired in [2_500.0, 3_500.0, 5_000.0] {
        assert_eq!(moolle.at(desired), 160.0, "D_SRPS {desired}");
    }
    assert_eq!((moolle.at(1_000.0), moolle.at(250.0)), (60.0, 20.0));
    rises(panel, "Moolle");
}

#[test]
fn a_figure_becomes_files_with_every_point_and_every_series() {
    let dir = tempfile::tempdir().unwrap();
    let figure = by_name("9a").unwrap();
    let drawing = figure.run_at(Size::Reduced, 1);
    let written = figures::write(figure, &drawing, &dir.path().join("out")).unwrap();
    let names: Vec<_> = written.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["9a.csv", "9a.svg"]);
    let csv = std::fs::read_to_string(&written[0]).unwrap();
    assert!(csv.starts_with("quantity,series,keys,value\npenalty,naive,150,"), "{}", &csv[..80]);
    let points: usize = drawing.panels.iter().flat_map(|panel| &panel.series).map(|s| s.points.len()).sum();
    assert_eq!(csv.lines().count(), 1 + points);
    let svg = std::fs::read_to_string(&written[1]).unwrap();
    for text in ["figure 9a", "set cover (Norbert)", "penalty", "requests per query", "vertices"] {
        assert!(svg.contains(text), "{text}");
    }

    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = figures::write(figure, &drawing, &file).unwrap_err();
    assert!(error.to_string().starts_with("cannot write"), "{error}");
}

#[test]
fn equal_seeds_draw_equal_figures() {
    for name in ["9d", "7b"] {
        assert_eq!(draw(name), draw(name));
    }
}
