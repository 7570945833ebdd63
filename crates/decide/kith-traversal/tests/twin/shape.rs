//! The steps that random traversals are made of, and how they are written.

pub type Body = Vec<Shape>;

#[derive(Clone, Debug)]
pub enum Shape {
    /// `out`, `in` or `both`, with or without a label.
    Hop(&'static str, Option<&'static str>),
    /// As a hop to edges and on to their other ends.
    Via(&'static str, Option<&'static str>),
    HasLabel(&'static str),
    HasId(i64),
    Older(i32),
    Filter(&'static str, Body),
    Connective(&'static str, Body, Body),
    Dedup,
    /// The first by their ids (`limit`), or the last (`tail`).
    Ordered(&'static str, usize),
    Local(Body),
    FlatMap(Body),
    Union(Body, Body),
    Choose(Body, Body, Body),
    Coalesce(Body, Body),
    Optional(Body),
    Repeat {
        body: Body,
        times: usize,
        emits: bool,
    },
    As(char),
    Select(char),
    Differs(char),
    IsSame(char),
    SimplePath,
    Aggregate,
    /// A value passes once, as one after the other is put aside.
    New,
    /// All values with a label.
    All(char),
    // Those that end at numbers or maps.
    Ages,
    Reduce(&'static str),
    Project(Body),
    Group(Body),
    Cap,
}

/// The traversal as a text.
pub fn gremlin(body: &[Shape]) -> String {
    format!("g.V(){}", body.iter().map(|shape| format!(".{}", text(shape))).collect::<String>())
}

fn anonymous(body: &[Shape]) -> String {
    let steps: String = body.iter().map(|shape| format!(".{}", text(shape))).collect();
    format!("__{}", if steps.is_empty() { ".identity()" } else { &steps })
}

fn text(shape: &Shape) -> String {
    let a = anonymous;
    match shape {
        Shape::Hop(name, None) => format!("{name}()"),
        Shape::Hop(name, Some(label)) => format!("{name}(\"{label}\")"),
        Shape::Via(name, label) => {
            let label = label.map(|label| format!("\"{label}\"")).unwrap_or_default();
            let end = match *name {
                "out" => "inV",
                "in" => "outV",
                _ => "otherV",
            };
            format!("{name}E({label}).{end}()")
        }
        Shape::HasLabel(label) => format!("hasLabel(\"{label}\")"),
        Shape::HasId(id) => format!("hasId({id})"),
        Shape::Older(age) => format!("has(\"age\", gt({age}))"),
        Shape::Filter(name, body) => format!("{name}({})", a(body)),
        Shape::Connective(name, one, two) => format!("{name}({}, {})", a(one), a(two)),
        Shape::Dedup => "dedup()".to_owned(),
        Shape::Ordered(name, count) => format!("order().by(id).{name}({count})"),
        Shape::Local(body) => format!("local({})", a(body)),
        Shape::FlatMap(body) => format!("flatMap({})", a(body)),
        Shape::Union(one, two) => format!("union({}, {})", a(one), a(two)),
        Shape::Choose(test, one, two) => format!("choose({}, {}, {})", a(test), a(one), a(two)),
        Shape::Coalesce(one, two) => format!("coalesce({}, {})", a(one), a(two)),
        Shape::Optional(body) => format!("optional({})", a(body)),
        Shape::Repeat { body, times, emits } => {
            format!("repeat({}){}.times({times})", a(body), if *emits { ".emit()" } else { "" })
        }
        Shape::As(label) => format!("as(\"{label}\")"),
        Shape::Select(label) => format!("select(\"{label}\")"),
        Shape::All(label) => format!("select(all, \"{label}\")"),
        Shape::Differs(label) => format!("where(neq(\"{label}\"))"),
        Shape::Aggregate => "aggregate(\"x\")".to_owned(),
        Shape::IsSame(label) => format!("where(eq(\"{label}\"))"),
        Shape::SimplePath => "simplePath()".to_owned(),
        Shape::New => "where(without(\"y\")).local(aggregate(\"y\"))".to_owned(),
        Shape::Ages => "values(\"age\")".to_owned(),
        Shape::Reduce(name) => format!("{name}()"),
        Shape::Project(body) => format!("project(\"n\").by({})", a(body)),
        Shape::Group(body) => format!("group().by(label).by({}).unfold()", a(body)),
        Shape::Cap => "cap(\"x\").unfold()".to_owned(),
    }
}
