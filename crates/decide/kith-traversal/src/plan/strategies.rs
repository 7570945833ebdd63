//! The strategies that a source is given by `withStrategies`.

use super::{
    Label, Source, Verification,
    arguments::{flat, whole},
};
use crate::{
    error::{GremlinError, Result},
    value::{Map, Value},
};

/// Strategies of TinkerPop that have no effect on results: they change how it evaluates a traversal, or refuse what Kith
/// refuses anyway.
const HARMLESS: &[&str] = &[
    "AdjacentToIncidentStrategy",
    "ByModulatorOptimizationStrategy",
    "ComputerFinalizationStrategy",
    "ComputerVerificationStrategy",
    "ConnectiveStrategy",
    "CountStrategy",
    "EarlyLimitStrategy",
    "FilterRankingStrategy",
    "GValueReductionStrategy",
    "GraphFilterStrategy",
    "HaltedTraverserStrategy",
    "IdentityRemovalStrategy",
    "IncidentToAdjacentStrategy",
    "InlineFilterStrategy",
    "LambdaRestrictionStrategy",
    "LazyBarrierStrategy",
    "MatchAlgorithmStrategy",
    "MatchPredicateStrategy",
    "MessagePassingReductionStrategy",
    "OrderLimitStrategy",
    "PathProcessorStrategy",
    "PathRetractionStrategy",
    "ProfileStrategy",
    "ReferenceElementStrategy",
    "RepeatUnrollStrategy",
    "RequirementsStrategy",
    "SingleIterationStrategy",
    "StandardVerificationStrategy",
    "VertexProgramRestrictionStrategy",
];

/// Adds strategies to a source. They are distinguished by the last part of the names of their classes.
pub(super) fn add(source: &mut Source, strategies: &[Value]) -> Result<()> {
    let named: Vec<(&str, &Map)> = strategies.iter().map(named).collect::<Result<_>>()?;
    let has = |wanted: &str| named.iter().any(|(name, _)| *name == wanted);
    if has("VertexProgramRestrictionStrategy") && has("VertexProgramStrategy") {
        return Err(GremlinError::bad("The TraversalSource does not allow the use of a GraphComputer"));
    }
    named.into_iter().try_for_each(|(name, configuration)| add_one(source, name, configuration))
}

fn named(strategy: &Value) -> Result<(&str, &Map)> {
    match strategy {
        Value::Strategy { name, configuration } => {
            Ok((name.rsplit(['.', '$']).next().unwrap_or(name), configuration))
        }
        other => {
            let found = other.type_name();
            Err(GremlinError::bad(format!("withStrategies() takes strategies, not a value of type {found}")))
        }
    }
}

fn add_one(source: &mut Source, name: &str, configuration: &Map) -> Result<()> {
    let option = |key: &str| configuration.get(&Value::text(key));
    let is_strict = matches!(option("throwException"), Some(Value::Bool(true)));
    match name {
        "ReadOnlyStrategy" => source.verifications.push(Verification::ReadOnly),
        "EdgeLabelVerificationStrategy" if is_strict => source.verifications.push(Verification::EdgeLabels),
        "ReservedKeysVerificationStrategy" if is_strict => {
            source.verifications.push(Verification::ReservedKeys(reserved_keys(option("keys"))?));
        }
        // Without an exception, these only write warnings to the log of the server.
        "EdgeLabelVerificationStrategy" | "ReservedKeysVerificationStrategy" => {}
        "OptionsStrategy" => {
            let text = |key: &Value| key.as_text().map(Label::from);
            let options = configuration.iter().filter_map(|(key, value)| Some((text(key)?, value.clone())));
            source.options.extend(options);
        }
        "SeedStrategy" => {
            let seed = option("seed").and_then(whole);
            let seed =
                seed.ok_or_else(|| GremlinError::bad("the SeedStrategy needs a seed, a whole number"))?;
            source.seed = Some(seed.cast_unsigned());
        }
        "VertexProgramStrategy" => {
            return Err(GremlinError::unsupported("withComputer() (VertexProgramStrategy)"));
        }
        name if HARMLESS.contains(&name) => {}
        name => return Err(GremlinError::unsupported(format!("the strategy {name}"))),
    }
    Ok(())
}

fn reserved_keys(keys: Option<&Value>) -> Result<Vec<Label>> {
    let Some(keys) = keys else { return Ok(vec!["id".into(), "label".into()]) };
    let key = |key: Value| match key {
        Value::String(key) => Ok(key),
        other => {
            let found = other.type_name();
            Err(GremlinError::bad(format!("a reserved key is a string, not a value of type {found}")))
        }
    };
    flat(std::slice::from_ref(keys)).into_iter().map(key).collect()
}
