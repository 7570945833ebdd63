//! Fits the penalty functions of equation 5 (Moolle §IV-C3) to the kernels that nodes and clients run, over lists of the
//! graph. The kernels run in this process, so that neither sockets nor other work affect the times.

use crate::bench::population::{Draw, Population};
use anyhow::Context;
use kith_operators::{MissingKeyRule, Operator, Part, Share, Value, evaluate, sets::Scratch};
use rand::{SeedableRng, rngs::StdRng};
use std::{hint::black_box, time::Instant};

/// The sizes of first degrees that are united, if the graph has members with that many connections.
const KEYS: [u64; 8] = [16, 32, 64, 128, 256, 512, 1_024, 2_048];
/// The number of members of each size.
const MEMBERS_EACH: usize = 4;
/// The numbers of shares that a client merges.
const SHARES: [usize; 6] = [2, 4, 8, 16, 32, 64];
/// The number of runs, of which the fastest counts, because slower ones were interrupted.
const RUNS: usize = 3;

/// Measures `(client, server, growth)`, the first two in microseconds.
///
/// # Errors
/// If lists cannot be read, or the graph has too few members with many connections to fit anything.
pub fn measure(population: &Population) -> anyhow::Result<(f64, f64, f64)> {
    let plan = Operator::Union(Box::new(Operator::Expand {
        input: Box::new(Operator::Keys),
        edge: population.edge().clone(),
        longest: u64::MAX,
    }));
    let mut scratch = Scratch::new();
    let mut rng = StdRng::seed_from_u64(11);
    let (mut at_node, mut at_client) = (Vec::new(), Vec::new());
    for keys in KEYS {
        for _ in 0..MEMBERS_EACH {
            let Some(id) = population.draw_with_degree(Draw::Uniform, keys, &mut rng) else { continue };
            let mut list = population.list(population.edge(), id)?.context("read a member's list")?;
            list.truncate(keys as usize * 2);
            at_node.push((list.len() as f64, node_us(population, &plan, &list, &mut scratch)?));
            for shares in SHARES.into_iter().filter(|shares| 2 * shares <= list.len()) {
                at_client.push((shares as f64, client_us(population, &plan, &list, shares, &mut scratch)?));
            }
        }
    }
    let (server, growth) = fit_growth(&at_node).context("fit the nodes' penalty: the graph is too small")?;
    let client = fit_union(&at_client).context("fit the client's penalty: the graph is too small")?;
    Ok((client, server, growth))
}

fn node_us(
    population: &Population,
    plan: &Operator,
    keys: &[u64],
    scratch: &mut Scratch,
) -> anyhow::Result<f64> {
    let share = Share { keys, partitions: &[] };
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let started = Instant::now();
        black_box(evaluate(plan, &share, population.source(), scratch, &|| false)?);
        best = best.min(started.elapsed().as_secs_f64() * 1e6);
    }
    Ok(best)
}

fn client_us(
    population: &Population,
    plan: &Operator,
    keys: &[u64],
    shares: usize,
    scratch: &mut Scratch,
) -> anyhow::Result<f64> {
    let mut parts = Vec::new();
    for share in 0..shares {
        let positions: Vec<u32> =
            (share..keys.len()).step_by(shares).map(|position| position as u32).collect();
        let own: Vec<u64> = positions.iter().map(|position| keys[*position as usize]).collect();
        let own = Share { keys: &own, partitions: &[] };
        let value = evaluate(plan, &own, population.source(), scratch, &|| false)?;
        parts.push(Part { positions, value });
    }
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let parts = parts.clone();
        let started = Instant::now();
        black_box(Value::merge(plan, keys.len(), parts, MissingKeyRule::Refuse, scratch)?);
        best = best.min(started.elapsed().as_secs_f64() * 1e6);
    }
    Ok(best)
}

fn union_work(x: f64) -> f64 {
    x * x.log2()
}

/// The `c` of `us = c · x · log₂ x`, by least squares of the relative error.
fn fit_union(points: &[(f64, f64)]) -> Option<f64> {
    let ratios: Vec<f64> = points.iter().map(|(x, us)| us / union_work(*x)).collect();
    let (sum, squares) = ratios
        .iter()
        .fold((0.0, 0.0), |(sum, squares), ratio| (sum + 1.0 / ratio, squares + 1.0 / (ratio * ratio)));
    (0.0 < squares).then(|| sum / squares)
}

/// The `(c, g)` of `us = c · (k / 1000)^g · k · log₂ k`, by a straight line through the logarithms. A graph whose cost per
/// key does not grow has `g` = 0.
fn fit_growth(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let logs: Vec<(f64, f64)> =
        points.iter().map(|(k, us)| ((k / 1_000.0).ln(), (us / union_work(*k)).ln())).collect();
    let count = logs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|log| log.0), mean(|log| log.1));
    let spread: f64 = logs.iter().map(|log| (log.0 - x).powi(2)).sum();
    if logs.len() < 2 || spread == 0.0 {
        return None;
    }
    let slope = logs.iter().map(|log| (log.0 - x) * (log.1 - y)).sum::<f64>() / spread;
    let growth = slope.max(0.0);
    Some(((y - growth * x).exp(), growth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_come_back() {
        let points: Vec<(f64, f64)> = [2.0, 8.0, 64.0].iter().map(|x| (*x, 3.5 * union_work(*x))).collect();
        assert!((fit_union(&points).unwrap() - 3.5).abs() < 1e-9);
        let with = |growth: f64| -> Vec<(f64, f64)> {
            let us = |k: f64| 0.02 * (k / 1_000.0).powf(growth) * union_work(k);
            [16.0, 100.0, 2_000.0].iter().map(|k| (*k, us(*k))).collect()
        };
        let (server, growth) = fit_growth(&with(0.7)).unwrap();
        assert!((server - 0.02).abs() < 1e-9 && (growth - 0.7).abs() < 1e-9, "{server} {growth}");
        assert_eq!(fit_growth(&with(-0.4)).unwrap().1, 0.0, "a falling cost is taken for a level one");
        assert_eq!(fit_growth(&with(0.7)[..1]), None);
    }
}
