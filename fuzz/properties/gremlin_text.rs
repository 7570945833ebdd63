//! Gremlin text, and the expressions and templates within it.

use super::Seed;
use kith_gremlin::{
    text::{Inputs, Script, TextError, parse},
    value::{Map, Value},
};
use kith_traversal::functions::{Expression, Template};

/// Input: a text.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let result = read(text);
    // A comment and a line break before the text only move the place of an error.
    match (&result, read(&format!("/* begin */\n{text}"))) {
        (Ok(script), Ok(moved)) => assert_eq!(*script, moved),
        (Err(error), Err(moved)) => {
            assert_eq!(
                (error.line + 1, error.column, &error.message),
                (moved.line, moved.column, &moved.message)
            );
        }
        (result, moved) => panic!("{result:?}, but after a comment {moved:?}"),
    }
    match result {
        Ok(script) => {
            assert!(!script.bytecode.steps.is_empty());
            assert_eq!(read(&format!("{text}\n; // end")).as_ref(), Ok(&script));
        }
        Err(error) => {
            let lines = text.matches('\n').count() + 1;
            assert!((1..=lines).contains(&error.line), "{error}");
            let line = text.split('\n').nth(error.line - 1).unwrap_or_default();
            assert!((1..=line.chars().count() + 1).contains(&error.column), "{error}");
        }
    }
    if let Ok(expression) = Expression::parse(text) {
        let values = vec![1.5; expression.variables().len()];
        let _ = expression.evaluate(&values);
    }
    let template = Template::parse(text);
    assert!(template.parts.len() <= text.len());
    assert!(template.render(std::iter::empty::<&str>()).len() <= text.len());
}

fn read(text: &str) -> Result<Script, TextError> {
    let bindings: Map = [("x".into(), Value::Int(1))].into_iter().collect();
    parse(text, &Inputs { bindings: &bindings, now: Default::default(), entropy: 1 })
}

pub fn seeds() -> Vec<Seed> {
    let texts = [
        (
            "hops",
            "g.V(1, x).as('a').out(\"knows\").where(__.in().count().is(gt(1).or(P.eq(0)))).values('name').toList()",
        ),
        (
            "sources",
            "g.with('k', 1).withStrategies(new SubgraphStrategy(vertices: hasLabel('p')), ReadOnlyStrategy).\
             withoutStrategies(CountStrategy).withSack(1.5d, sum).V().order().by('age', desc).next(3);",
        ),
        (
            "literals",
            "g.inject(1b, 2s, 3i, 4L, 5n, -0x1F, 017, 1.5f, 2e3, 2.5m, NaN, -Infinity, null, true, 'it\\'s', \"\\u00e9\\101\")",
        ),
        (
            "collections",
            "g.inject([1, [a: 'b', (T.id): {1, 2}], [:]], 1..5, 'a'..'c', datetime('2023-08-02T00:00:00Z'), \
             UUID('cb682578-9d92-4499-9ebc-5c6aa73c5397'), UUID())",
        ),
        (
            "writes",
            "g.mergeV([(T.label): 'p', name: 'x']).option(Merge.onCreate, [age: 1]).property(Cardinality.single, 'a', set('b'))\
             .addE('knows').from('a').to(new Vertex(1, 'p'))",
        ),
        ("comments", "g // source\n . /* all */ V()\n  .out()\n"),
        ("expression", "-a ^ 2 * (sin(b) + 1.5e3) / log10 _ % 7"),
        ("template", "%{name} is %{_} years old, 100%%{off}"),
        ("unknown-step", "g.V().otu('knows')"),
        ("open-string", "g.V('\\ud83d"),
        ("lambda", "g.V().map{it.get()}"),
    ];
    let nested = ("nested", format!("g.inject({}", "[".repeat(1_000)));
    texts.into_iter().map(|(name, text)| (name, text.to_owned())).chain([nested]).map(bytes).collect()
}

fn bytes((name, text): (&'static str, String)) -> Seed {
    (name, text.into_bytes())
}
