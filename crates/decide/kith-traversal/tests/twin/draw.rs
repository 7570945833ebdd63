//! Draws graphs and traversals. Only what has one right result is drawn: nothing depends on the order of equal traversers.

use crate::{
    naive::Town,
    shape::{Body, Shape},
};
use rand::{Rng, RngExt, seq::IndexedRandom};

const LABELS: [&str; 2] = ["person", "club"];
const EDGES: [&str; 2] = ["knows", "likes"];

fn one_of<T: Copy>(random: &mut impl Rng, all: &[T]) -> T {
    *all.choose(random).expect("not empty")
}

pub fn town(random: &mut impl Rng) -> Town {
    let count = random.random_range(1..7);
    let vertex =
        |random: &mut _| (one_of(random, &LABELS), one_of(random, &[None, Some(7), Some(8), Some(9)]));
    let vertices = (0..count).map(|_| vertex(random)).collect();
    let end = 0..count;
    let mut edges: Vec<_> = (0..random.random_range(0..9))
        .map(|_| (random.random_range(end.clone()), one_of(random, &EDGES), random.random_range(end.clone())))
        .collect();
    edges.sort_unstable();
    edges.dedup();
    Town { vertices, edges }
}

/// The steps that may be drawn at a place.
#[derive(Clone)]
struct Place {
    depth: usize,
    /// The labels that every traverser has, and those that some may have. None after a step that keeps one of several equal
    /// traversers: they may differ in what their labels mean.
    labels: Vec<char>,
    perhaps: Vec<char>,
    /// Whether there was such a step.
    is_cut: bool,
    /// Whether there was such a step anywhere before. Labels may then mean different things for equal traversers, so nothing may
    /// depend on them any more.
    is_blurred: bool,
    /// Whether `dedup` may be drawn: within `repeat`, it remembers all passes.
    dedups: bool,
    /// Whether steps that read what they put aside may be drawn: it makes a difference who enters a nested traversal first.
    reads_aside: bool,
    /// Whether side effects may be drawn: filters and the like are evaluated once for equal traversers.
    has_effects: bool,
}

impl Place {
    fn cut(&mut self) {
        self.labels.clear();
        self.perhaps.clear();
        self.is_cut = true;
        self.is_blurred = true;
    }

    /// The inside of a step that evaluates a traversal for each traverser.
    fn inside(&self) -> Self {
        Self { depth: self.depth + 1, dedups: true, reads_aside: false, ..self.clone() }
    }

    fn without_effects(&self) -> Self {
        Self { has_effects: false, ..self.inside() }
    }
}

pub fn traversal(random: &mut impl Rng) -> Body {
    let mut scope = Place {
        depth: 0,
        labels: Vec::new(),
        perhaps: Vec::new(),
        is_cut: false,
        is_blurred: false,
        dedups: true,
        reads_aside: true,
        has_effects: true,
    };
    let mut body = walk(random, &mut scope);
    let quiet = scope.without_effects();
    match random.random_range(0..11) {
        0 | 1 => {}
        2 => body.extend(function(random)),
        3 => body.push(Shape::Ages),
        4 => body.push(Shape::Project(with_function(random, &quiet))),
        5 => body.push(Shape::Group(with_function(random, &quiet))),
        6 => body.push(counting(random, &quiet)),
        7 => body.push(Shape::Local(vec![counting(random, &quiet)])),
        8 if !scope.perhaps.is_empty() => body.push(Shape::All(one_of(random, &scope.perhaps))),
        _ => body.extend([Shape::Aggregate, Shape::Cap]),
    }
    body
}

/// Steps from vertices to vertices.
fn walk(random: &mut impl Rng, scope: &mut Place) -> Body {
    let count = random.random_range(1..4);
    (0..count).map(|_| shape(random, scope)).collect()
}

/// Steps from vertices to one number, or none.
fn with_function(random: &mut impl Rng, scope: &Place) -> Body {
    let mut body = walk(random, &mut scope.clone());
    body.extend(function(random));
    body
}

/// A step whose ways each end at one number, or none.
fn counting(random: &mut impl Rng, scope: &Place) -> Shape {
    let (one, two) = (with_function(random, scope), with_function(random, scope));
    if random.random_bool(0.5) {
        Shape::Union(one, two)
    } else {
        Shape::Choose(walk(random, &mut scope.clone()), one, two)
    }
}

fn function(random: &mut impl Rng) -> Body {
    match random.random_range(0..3) {
        0 => vec![Shape::Reduce("count")],
        1 => vec![Shape::Ages, Shape::Reduce("sum")],
        _ => vec![Shape::Ages, Shape::Reduce("max")],
    }
}

fn shape(random: &mut impl Rng, scope: &mut Place) -> Shape {
    if scope.reads_aside && random.random_bool(0.05) {
        scope.reads_aside = false;
        scope.cut();
        return Shape::New;
    }
    if !scope.is_blurred && random.random_bool(0.03) {
        return Shape::SimplePath;
    }
    let nested = if scope.depth < 3 { 24 } else { 13 };
    match random.random_range(0..nested) {
        0..5 => hop(random),
        5 => Shape::HasLabel(one_of(random, &LABELS)),
        6 => Shape::Older(random.random_range(6..9)),
        7 if scope.dedups => {
            scope.cut();
            Shape::Dedup
        }
        8 => {
            scope.cut();
            Shape::Ordered(one_of(random, &["limit", "tail"]), random.random_range(1..4))
        }
        9 if scope.has_effects => Shape::Aggregate,
        10 if !scope.labels.is_empty() => {
            let label = one_of(random, &scope.labels);
            if random.random_bool(0.7) { Shape::Differs(label) } else { Shape::IsSame(label) }
        }
        11 if !scope.perhaps.is_empty() => Shape::Select(one_of(random, &scope.perhaps)),
        7 | 9 | 10..13 => {
            let label = one_of(random, &['a', 'b']);
            if !scope.is_blurred {
                scope.labels.push(label);
                scope.perhaps.push(label);
            }
            Shape::As(label)
        }
        _ => nesting(random, scope),
    }
}

fn nesting(random: &mut impl Rng, scope: &mut Place) -> Shape {
    let quiet = scope.without_effects();
    let body = |random: &mut _, scope: &Place| walk(random, &mut scope.clone());
    match random.random_range(0..10) {
        0 | 1 => Shape::Filter(one_of(random, &["filter", "not"]), with_or_without(random, &quiet)),
        2 => Shape::Connective(one_of(random, &["and", "or"]), body(random, &quiet), body(random, &quiet)),
        3 => Shape::Local(leading_on(random, scope, scope.inside())),
        4 => Shape::FlatMap(body(random, &scope.inside())),
        5 => Shape::Coalesce(
            leading_on(random, scope, scope.inside()),
            leading_on(random, scope, scope.inside()),
        ),
        6 => Shape::Optional(leading_on(random, scope, scope.inside())),
        7 => Shape::Union(way(random, scope, true), way(random, scope, true)),
        8 => {
            let test = body(random, &quiet);
            Shape::Choose(test, way(random, scope, true), way(random, scope, true))
        }
        _ => {
            let body = way(random, scope, false);
            Shape::Repeat { body, times: random.random_range(1..4), emits: random.random_bool(0.4) }
        }
    }
}

fn hop(random: &mut impl Rng) -> Shape {
    let label = random.random_bool(0.5).then(|| one_of(random, &EDGES));
    let name = one_of(random, &["out", "in", "both"]);
    if random.random_bool(0.2) { Shape::Via(name, label) } else { Shape::Hop(name, label) }
}

fn with_or_without(random: &mut impl Rng, scope: &Place) -> Body {
    if random.random_bool(0.3) {
        return vec![hop(random), Shape::HasId(random.random_range(0..7))];
    }
    let mut body = walk(random, &mut scope.clone());
    if random.random_bool(0.3) {
        body.extend([Shape::Ages, Shape::Reduce("max")]);
    }
    body
}

/// The inside of a step that all traversers enter together.
fn way(random: &mut impl Rng, scope: &mut Place, dedups: bool) -> Body {
    let inside = Place { depth: scope.depth + 1, dedups: scope.dedups && dedups, ..scope.clone() };
    leading_on(random, scope, inside)
}

/// The inside of a step whose results go on with the labels that they got there.
fn leading_on(random: &mut impl Rng, scope: &mut Place, inside: Place) -> Body {
    let mut inside = Place { is_cut: false, ..inside };
    let body = walk(random, &mut inside);
    scope.reads_aside &= inside.reads_aside || !inside.has_effects;
    if inside.is_cut {
        scope.cut();
    } else {
        scope.perhaps = inside.perhaps;
    }
    body
}
