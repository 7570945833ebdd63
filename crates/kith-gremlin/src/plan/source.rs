//! What configures the source of a traversal, and the plan as a whole.

use super::{
    Kind, Label, Traversal,
    arguments::{Arguments, whole},
};
use crate::{
    bytecode::Instruction,
    error::{GremlinError, Result},
    value::{Operator, Symbol, Value},
};

/// A traversal that can be evaluated any number of times.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) source: Source,
    pub(crate) traversal: Traversal,
}

/// What the instructions of a source ask for.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct Source {
    /// Side effects with their first value, and how further values are added.
    pub side_effects: Vec<(Label, Value, Option<Operator>)>,
    /// The first value of sacks, and how sacks are merged.
    pub sack: Option<(Value, Option<Operator>)>,
    /// Options, such as `evaluationTimeout` and those of Kith, which begin with `kith.`.
    pub options: Vec<(Label, Value)>,
    /// Whether changes are refused.
    pub is_read_only: bool,
    /// Whether each traverser remembers its path, wherever it is needed or not.
    pub with_paths: bool,
}

impl Plan {
    pub(super) fn new(source: Source, traversal: Traversal) -> Result<Self> {
        if source.is_read_only
            && let Some(step) = super::labels::find(&traversal, &|step| step.kind.is_change())
        {
            return Err(GremlinError::bad(format!(
                "{}() changes the graph, but the traversal has the ReadOnlyStrategy",
                step.instruction.name
            )));
        }
        Ok(Self { source, traversal })
    }

    /// The options of the source: names and values.
    pub fn options(&self) -> &[(Label, Value)] {
        &self.source.options
    }

    /// Whether the traversal may change the graph.
    pub fn changes_graph(&self) -> bool {
        super::labels::find(&self.traversal, &|step| step.kind.is_change()).is_some()
    }
}

impl Kind {
    /// Whether the step changes the graph.
    pub fn is_change(&self) -> bool {
        use Kind::{AddEdge, AddVertex, Drop, MergeEdge, MergeVertex, SetProperty};
        matches!(
            self,
            AddEdge { .. } | AddVertex { .. } | Drop | MergeEdge(_) | MergeVertex(_) | SetProperty(_)
        )
    }
}

pub(super) fn compile(instructions: &[Instruction]) -> Result<Source> {
    let mut source = Source::default();
    for instruction in instructions {
        let mut arguments = Arguments::of(instruction)?;
        match &*instruction.name {
            "withSideEffect" => {
                let key = arguments.text("the name of a side effect")?;
                let value = arguments.required("a value")?.clone();
                source.side_effects.push((key, value, operator(&mut arguments)?));
            }
            "withSack" => {
                let value = arguments.required("a value")?.clone();
                source.sack = Some((value, operator(&mut arguments)?));
            }
            "withStrategies" => arguments.rest().iter().try_for_each(|strategy| source.add(strategy))?,
            "with" => {
                let key = arguments.text("the name of an option")?;
                source.options.push((key, arguments.next().cloned().unwrap_or(Value::Bool(true))));
            }
            "withPath" => source.with_paths = true,
            "withBulk" | "withoutStrategies" => {
                arguments.rest();
            }
            "withComputer" => return Err(GremlinError::unsupported("withComputer()")),
            "tx" => return Err(GremlinError::unsupported("a transaction of several traversals (tx())")),
            name => return Err(GremlinError::bad(format!("{name}() is no method of a traversal source"))),
        }
        arguments.end()?;
    }
    Ok(source)
}

fn operator(arguments: &mut Arguments<'_>) -> Result<Option<Operator>> {
    match arguments.next() {
        None => Ok(None),
        Some(Value::Symbol(Symbol::Operator(operator))) => Ok(Some(*operator)),
        Some(other) => Err(GremlinError::bad(format!(
            "an operator is needed, not a value of type {}",
            other.type_name()
        ))),
    }
}

impl Source {
    fn add(&mut self, strategy: &Value) -> Result<()> {
        let Value::Strategy { name, configuration } = strategy else {
            let found = strategy.type_name();
            return Err(GremlinError::bad(format!(
                "withStrategies() takes strategies, not a value of type {found}"
            )));
        };
        let name = name.rsplit('.').next().unwrap_or(name);
        match name {
            "ReadOnlyStrategy" => self.is_read_only = true,
            "OptionsStrategy" => {
                let text = |key: &Value| key.as_text().map(Label::from);
                let options =
                    configuration.iter().filter_map(|(key, value)| Some((text(key)?, value.clone())));
                self.options.extend(options);
            }
            // These change how TinkerPop evaluates a traversal, but not its results.
            name if HARMLESS.contains(&name) => {}
            name => return Err(GremlinError::unsupported(format!("the strategy {name}"))),
        }
        Ok(())
    }

    /// The time limit that the traversal asks for, in milliseconds.
    pub fn evaluation_timeout_ms(&self) -> Option<i64> {
        let names = ["evaluationTimeout", "scriptEvaluationTimeout"];
        self.options.iter().find(|(key, _)| names.contains(&&**key)).and_then(|(_, value)| whole(value))
    }
}

/// Strategies of TinkerPop that have no effect on results.
const HARMLESS: &[&str] = &[
    "AdjacentToIncidentStrategy",
    "ByModulatorOptimizationStrategy",
    "ConnectiveStrategy",
    "CountStrategy",
    "EarlyLimitStrategy",
    "FilterRankingStrategy",
    "IdentityRemovalStrategy",
    "IncidentToAdjacentStrategy",
    "InlineFilterStrategy",
    "LazyBarrierStrategy",
    "MatchPredicateStrategy",
    "OrderLimitStrategy",
    "PathProcessorStrategy",
    "PathRetractionStrategy",
    "ProfileStrategy",
    "ReferenceElementStrategy",
    "RepeatUnrollStrategy",
    "StandardVerificationStrategy",
];
