//! The twin: a traversal is a function of a list of traversers, and a nested one is called for each traverser by itself.

use crate::shape::Shape;
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// More traversers than this are not taken one by one.
const TRAVERSERS_MAX: usize = 3_000;

/// A graph: vertices, whose ids are their places, with a label and perhaps an age; edges from place to place.
#[derive(Clone, Debug)]
pub struct Town {
    pub vertices: Vec<(&'static str, Option<i32>)>,
    pub edges: Vec<(i64, &'static str, i64)>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Vertex(i64),
    Number(i64),
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vertex(id) => write!(f, "v[{id}]"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

#[derive(Clone)]
struct Traverser {
    value: Value,
    labels: Vec<(char, Value)>,
    /// The labels that the present value already has.
    here: Vec<char>,
    /// All values until now.
    path: Vec<Value>,
}

impl Traverser {
    fn new(value: Value) -> Self {
        Self { path: vec![value.clone()], value, labels: Vec::new(), here: Vec::new() }
    }

    fn to(&self, value: Value) -> Self {
        let path = self.path.iter().chain([&value]).cloned().collect();
        Self { value, labels: self.labels.clone(), here: Vec::new(), path }
    }

    fn label(&mut self, label: char) {
        if !self.here.contains(&label) {
            self.here.push(label);
            self.labels.push((label, self.value.clone()));
        }
    }

    /// All values with a label, as a text.
    fn all(&self, label: char) -> Option<Self> {
        let all = self.labels.iter().filter(|(known, _)| *known == label);
        let all: Vec<String> = all.map(|(_, value)| value.to_string()).collect();
        (!all.is_empty()).then(|| self.to(Value::Text(format!("[{}]", all.join(", ")))))
    }

    fn labelled(&self, label: char) -> Option<&Value> {
        self.labels.iter().rfind(|(known, _)| *known == label).map(|(_, value)| value)
    }
}

struct Twin<'a> {
    town: &'a Town,
    aside: RefCell<Vec<Value>>,
    known: RefCell<BTreeSet<Value>>,
}

/// The results as texts, sorted. `None` if there are too many traversers.
pub fn evaluate(body: &[Shape], town: &Town) -> Option<Vec<String>> {
    let twin = Twin { town, aside: RefCell::default(), known: RefCell::default() };
    let start = (0..town.vertices.len() as i64).map(|id| Traverser::new(Value::Vertex(id))).collect();
    let mut results: Vec<String> = twin.run(body, start)?.iter().map(|it| it.value.to_string()).collect();
    results.sort();
    Some(results)
}

impl Twin<'_> {
    fn run(&self, body: &[Shape], mut all: Vec<Traverser>) -> Option<Vec<Traverser>> {
        for shape in body {
            all = self.step(shape, all)?;
            if all.len() > TRAVERSERS_MAX {
                return None;
            }
        }
        Some(all)
    }

    /// The results for one traverser by itself.
    fn alone(&self, body: &[Shape], one: &Traverser) -> Option<Vec<Traverser>> {
        self.run(body, vec![one.clone()])
    }

    /// The result of a function for each traverser.
    fn each(all: &[Traverser], of: impl Fn(&Traverser) -> Option<Vec<Traverser>>) -> Option<Vec<Traverser>> {
        Some(all.iter().map(of).collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
    }

    fn step(&self, shape: &Shape, all: Vec<Traverser>) -> Option<Vec<Traverser>> {
        let exists = |body: &[Shape], it: &Traverser| self.exists(body, it);
        let keep = |it: &Traverser, keeps: bool| if keeps { vec![it.clone()] } else { Vec::new() };
        match shape {
            Shape::Filter(name, body) => {
                Self::each(&all, |it| Some(keep(it, exists(body, it)? == (*name == "filter"))))
            }
            Shape::Connective(name, one, two) => Self::each(&all, |it| {
                let (one, two) = (exists(one, it)?, exists(two, it)?);
                Some(keep(it, if *name == "and" { one && two } else { one || two }))
            }),
            Shape::Local(body) => Self::each(&all, |it| self.alone(body, it)),
            Shape::FlatMap(body) => Self::each(&all, |it| {
                Some(self.alone(body, it)?.into_iter().map(|result| it.to(result.value)).collect())
            }),
            Shape::Coalesce(one, two) => Self::each(&all, |it| {
                let first = self.alone(one, it)?;
                let found = if first.is_empty() { self.alone(two, it)? } else { first };
                Some(found.into_iter().map(|result| it.to(result.value)).collect())
            }),
            Shape::Optional(body) => Self::each(&all, |it| {
                let results = self.alone(body, it)?;
                Some(if results.is_empty() { vec![it.clone()] } else { results })
            }),
            Shape::Project(body) => Self::each(&all, |it| {
                let value = self.alone(body, it)?.first().map(|first| format!("n={}", first.value));
                Some(vec![it.to(Value::Text(format!("{{{}}}", value.unwrap_or_default())))])
            }),
            shape => self.together(shape, all),
        }
    }

    /// The steps whose nested traversals all traversers enter together.
    fn together(&self, shape: &Shape, mut all: Vec<Traverser>) -> Option<Vec<Traverser>> {
        match shape {
            Shape::Union(one, two) => Some([self.way(one, &all)?, self.way(two, &all)?].concat()),
            Shape::Choose(test, one, two) => {
                let (mut yes, mut no) = (Vec::new(), Vec::new());
                for it in all {
                    if self.exists(test, &it)? { yes.push(it) } else { no.push(it) }
                }
                Some([self.way(one, &yes)?, self.way(two, &no)?].concat())
            }
            Shape::Repeat { body, times, emits } => {
                let mut emitted = Vec::new();
                for _ in 0..*times {
                    all = self.run(body, all)?;
                    emitted.extend(all.iter().filter(|_| *emits).cloned());
                }
                Some(if *emits { emitted } else { all })
            }
            Shape::Group(body) => {
                let mut groups: BTreeMap<&str, Vec<Traverser>> = BTreeMap::new();
                for it in all {
                    groups.entry(self.vertex(&it.value).0).or_default().push(it);
                }
                let mut entries = Vec::new();
                for (key, members) in groups {
                    let results = self.run(body, members)?;
                    entries
                        .extend(results.first().map(|first| Value::Text(format!("{key}={}", first.value))));
                }
                Some(entries.into_iter().map(Traverser::new).collect())
            }
            shape => Some(self.simple(shape, all)),
        }
    }

    fn exists(&self, body: &[Shape], it: &Traverser) -> Option<bool> {
        self.alone(body, it).map(|results| !results.is_empty())
    }

    /// A way on, which has no result if nobody takes it.
    fn way(&self, body: &[Shape], all: &[Traverser]) -> Option<Vec<Traverser>> {
        if all.is_empty() { Some(Vec::new()) } else { self.run(body, all.to_vec()) }
    }

    fn vertex(&self, value: &Value) -> (&'static str, Option<i32>) {
        match value {
            Value::Vertex(id) => self.town.vertices[*id as usize],
            _ => ("", None),
        }
    }

    fn neighbours(&self, value: &Value, direction: &str, label: Option<&str>) -> Vec<Value> {
        let edges = self.town.edges.iter().filter(|(_, known, _)| label.is_none_or(|label| label == *known));
        let outgoing = edges.clone().filter(|(from, _, _)| Value::Vertex(*from) == *value).map(|edge| edge.2);
        let incoming = edges.filter(|(_, _, to)| Value::Vertex(*to) == *value).map(|edge| edge.0);
        let outgoing = outgoing.filter(|_| direction != "in");
        outgoing.chain(incoming.filter(|_| direction != "out")).map(Value::Vertex).collect()
    }

    /// The steps without nested traversals.
    fn simple(&self, shape: &Shape, mut all: Vec<Traverser>) -> Vec<Traverser> {
        match shape {
            Shape::Hop(name, label) | Shape::Via(name, label) => {
                let to = |it: &Traverser| {
                    let reached = self.neighbours(&it.value, name, *label);
                    reached.into_iter().map(|value| it.to(value)).collect::<Vec<_>>()
                };
                all = all.iter().flat_map(to).collect();
            }
            Shape::HasLabel(label) => all.retain(|it| self.vertex(&it.value).0 == *label),
            Shape::HasId(id) => all.retain(|it| it.value == Value::Vertex(*id)),
            Shape::Older(age) => all.retain(|it| self.vertex(&it.value).1.is_some_and(|known| known > *age)),
            Shape::Differs(label) => all.retain(|it| it.labelled(*label) != Some(&it.value)),
            Shape::IsSame(label) => all.retain(|it| it.labelled(*label) == Some(&it.value)),
            Shape::SimplePath => {
                all.retain(|it| it.path.iter().collect::<BTreeSet<_>>().len() == it.path.len());
            }
            Shape::Dedup => {
                let mut seen = BTreeSet::new();
                all.retain(|it| seen.insert(it.value.clone()));
            }
            Shape::Ordered(name, count) => {
                all.sort_by(|a, b| a.value.cmp(&b.value));
                let from = if *name == "tail" { all.len().saturating_sub(*count) } else { 0 };
                all = all.into_iter().skip(from).take(*count).collect();
            }
            Shape::As(label) => all.iter_mut().for_each(|it| it.label(*label)),
            Shape::Select(label) => {
                all = all.iter().filter_map(|it| Some(it.to(it.labelled(*label)?.clone()))).collect();
            }
            Shape::All(label) => all = all.iter().filter_map(|it| it.all(*label)).collect(),
            Shape::Aggregate => self.aside.borrow_mut().extend(all.iter().map(|it| it.value.clone())),
            Shape::New => all.retain(|it| self.known.borrow_mut().insert(it.value.clone())),
            Shape::Cap => all = self.aside.take().into_iter().map(Traverser::new).collect(),
            Shape::Ages => {
                let age = |it: Traverser| Some(it.to(Value::Number(self.vertex(&it.value).1?.into())));
                all = all.into_iter().filter_map(age).collect();
            }
            Shape::Reduce(name) => all = reduced(name, &all).into_iter().collect(),
            nested => unreachable!("{nested:?} has a nested traversal"),
        }
        all
    }
}

fn reduced(name: &str, all: &[Traverser]) -> Option<Traverser> {
    let numbers = all.iter().filter_map(|it| match it.value {
        Value::Number(number) => Some(number),
        _ => None,
    });
    let number = match name {
        "count" => Some(all.len() as i64),
        "max" => numbers.max(),
        _ => numbers.reduce(|a, b| a + b),
    };
    number.map(|number| Traverser::new(Value::Number(number)))
}
