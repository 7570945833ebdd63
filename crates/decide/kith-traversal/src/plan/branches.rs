//! Steps with several ways on.

use super::{
    Choice, ChooseParts, Kind, OptionKey, Repeat, RepeatEnd, Traversal, anonymous,
    arguments::{Arguments, by, test},
    calls::{Call, Modulator},
    labels::any_step,
    step::traversal,
};
use crate::{
    error::{GremlinError, Result},
    value::{Pick, Symbol, Value},
};

pub(super) fn compile(call: &Call<'_>) -> Result<Option<Vec<Kind>>> {
    let mut arguments = Arguments::of(call.instruction)?;
    let (kind, modulators): (Kind, &[&str]) = match call.name() {
        "local" => (Kind::Local(arguments.traversal("a traversal")?), &[]),
        "union" => (Kind::Union(arguments.traversals()?), &[]),
        "coalesce" => (Kind::Coalesce(arguments.traversals()?), &[]),
        "optional" => (Kind::Optional(arguments.traversal("a traversal")?), &[]),
        "choose" => (Kind::Choose(choose(call, &mut arguments)?), &["option"]),
        "branch" => {
            let choice = Choice::By(by("branch", arguments.next())?);
            (Kind::Choose(ChooseParts { choice, options: options(call)?, takes_all: true }), &["option"])
        }
        "repeat" => (Kind::Repeat(repeat(call, &mut arguments)?), &["until", "emit", "times"]),
        _ => return Ok(None),
    };
    arguments.finish(call, modulators, kind)
}

fn choose(call: &Call<'_>, arguments: &mut Arguments<'_>) -> Result<ChooseParts> {
    let first = arguments.required("a traversal, a predicate or a token")?;
    let is_conditional = !arguments.is_empty();
    let choice = match first {
        Value::Predicate(_) => Choice::Test(test(first)?),
        Value::Traversal(bytecode) if is_conditional => Choice::Exists(anonymous(bytecode)?),
        other => Choice::By(by("choose", Some(other))?),
    };
    if !is_conditional {
        return Ok(ChooseParts { choice, options: exclusive(call)?, takes_all: false });
    }
    let then = arguments.traversal("a traversal")?;
    let otherwise = match arguments.is_empty() {
        true => traversal(vec![Kind::Identity]),
        false => arguments.traversal("a traversal")?,
    };
    let key = |value: bool| Ok::<_, GremlinError>(OptionKey::Test(test(&Value::Bool(value))?));
    let mut options = vec![(key(true)?, then), (key(false)?, otherwise)];
    options.extend(exclusive(call)?);
    Ok(ChooseParts { choice, options, takes_all: false })
}

/// The options of `choose`, of which one is taken.
fn exclusive(call: &Call<'_>) -> Result<Vec<(OptionKey, Traversal)>> {
    let options = options(call)?;
    for pick in [Pick::None, Pick::Unproductive] {
        let is_pick = |it: &Modulator<'_>| it.instruction.arguments.first() == Some(&Value::from(pick));
        if 1 < call.modulators("option").filter(is_pick).count() {
            return Err(GremlinError::bad(format!(
                "Choose step can only have one traversal per pick token: {}",
                Value::from(pick)
            )));
        }
    }
    match options.iter().find(|(key, _)| matches!(key, OptionKey::Any | OptionKey::Traversal(_))) {
        None => Ok(options),
        Some((OptionKey::Any, _)) => Err(GremlinError::bad(
            "choose step can not have an any-option as only one option per traverser is allowed; use branch()",
        )),
        Some(_) => Err(GremlinError::bad(
            "a traversal is not allowed as a Pick token for choose().option(); use a value or a predicate",
        )),
    }
}

fn options(call: &Call<'_>) -> Result<Vec<(OptionKey, Traversal)>> {
    call.modulators("option").map(|it| option(&it.instruction.arguments)).collect()
}

fn option(arguments: &[Value]) -> Result<(OptionKey, Traversal)> {
    let (key, value) = match arguments {
        [value] => (OptionKey::Any, value),
        [key, value] => (option_key(key)?, value),
        _ => return Err(GremlinError::bad("option() takes a value and a traversal")),
    };
    match value {
        Value::Traversal(bytecode) => Ok((key, anonymous(bytecode)?)),
        other => Err(GremlinError::bad(format!(
            "option() needs a traversal, not a value of type {}",
            other.type_name()
        ))),
    }
}

fn option_key(key: &Value) -> Result<OptionKey> {
    Ok(match key {
        Value::Symbol(Symbol::Pick(Pick::Any)) => OptionKey::Any,
        Value::Symbol(Symbol::Pick(Pick::None)) => OptionKey::NoMatch,
        Value::Symbol(Symbol::Pick(Pick::Unproductive)) => OptionKey::Unproductive,
        Value::Traversal(bytecode) => OptionKey::Traversal(anonymous(bytecode)?),
        value => OptionKey::Test(test(value)?),
    })
}

fn repeat(call: &Call<'_>, arguments: &mut Arguments<'_>) -> Result<Repeat> {
    let name = match arguments.len() {
        2 => Some(arguments.text("a name")?),
        _ => None,
    };
    let body = arguments.traversal("a traversal")?;
    if body.is_empty() {
        return Err(GremlinError::bad("the traversal of repeat() has no steps"));
    }
    check_body(&body)?;
    let mut repeat = Repeat { body, name, until: None, until_first: false, emit: None, emit_first: false };
    for modulator in &call.modulators {
        modulate(&mut repeat, *modulator)?;
    }
    if repeat.until.is_none() && repeat.emit.is_none() {
        // It may still end, when no traverser is left.
        repeat.until_first = false;
    }
    Ok(repeat)
}

/// Refuses steps that have no meaning inside of `repeat`.
fn check_body(body: &Traversal) -> Result<()> {
    let reduces = |kind: &Kind| match kind {
        Kind::Reduce(_) | Kind::Fold(_) | Kind::Cap(_) => true,
        Kind::Group(group) => group.key.is_none(),
        Kind::GroupCount { key, .. } => key.is_none(),
        _ => false,
    };
    if let Some(step) = body.iter().find(|step| reduces(&step.kind)) {
        return Err(GremlinError::bad(format!(
            "the parent of a reducing/supplying barrier can not be repeat()-step: {}() makes one value of all \
             traversers; put it into local() or after repeat()",
            step.instruction.name
        )));
    }
    if any_step(body, &|step| matches!(step.kind, Kind::Inject(_))) {
        return Err(GremlinError::bad("the parent of inject()-step can not be repeat()-step"));
    }
    Ok(())
}

fn modulate(repeat: &mut Repeat, Modulator { instruction, is_before }: Modulator<'_>) -> Result<()> {
    let mut arguments = Arguments::of(instruction)?;
    let condition = |arguments: &mut Arguments<'_>| match arguments.required("a traversal or a predicate")? {
        value @ Value::Predicate(_) => Ok(traversal(vec![Kind::Is(test(value)?)])),
        Value::Traversal(bytecode) => anonymous(bytecode),
        other => Err(GremlinError::bad(format!(
            "{}() needs a traversal or a predicate, not a value of type {}",
            instruction.name,
            other.type_name()
        ))),
    };
    match &*instruction.name {
        "times" => {
            let times = arguments.whole("a number")?;
            let times = u32::try_from(times)
                .map_err(|_| GremlinError::bad(format!("times({times}) is no number of passes")))?;
            (repeat.until, repeat.until_first) = (Some(RepeatEnd::Times(times)), is_before);
        }
        "until" => {
            (repeat.until, repeat.until_first) =
                (Some(RepeatEnd::Traversal(condition(&mut arguments)?)), is_before)
        }
        "emit" if arguments.is_empty() => (repeat.emit, repeat.emit_first) = (Some(None), is_before),
        "emit" => (repeat.emit, repeat.emit_first) = (Some(Some(condition(&mut arguments)?)), is_before),
        name => return Err(GremlinError::bad(format!("{name}() cannot follow repeat()"))),
    }
    arguments.end()
}
