//! Steps that read a side effect to which a later step adds, such as `where(without("a")).local(aggregate("a"))`. Each traverser
//! must see what those before it have put aside, so these steps become a nested traversal, which traversers enter one by one.

use super::{
    Kind, Step,
    flow::{added_by, is_stateless},
    reads::Reads,
};
use crate::{
    bytecode::{Bytecode, Instruction},
    value::Value,
};
use std::sync::Arc;

/// The steps, with those from a reader to the step that adds to what it reads as a nested traversal. This is left undone if one
/// of them has to see many traversers.
pub(super) fn nested(steps: Vec<Arc<Step>>) -> Vec<Arc<Step>> {
    let mut all = Vec::with_capacity(steps.len());
    let mut rest = &steps[..];
    while let Some((step, after)) = rest.split_first() {
        match length(rest).map(|length| rest.split_at(length)) {
            Some((stretch, after)) if is_stateless(stretch) => {
                all.push(local(stretch));
                rest = after;
            }
            _ => {
                all.push(Arc::clone(step));
                rest = after;
            }
        }
    }
    all
}

/// The number of steps up to the first one that adds to what the first of them reads; more, if others among them read what is
/// added to behind them.
fn length(steps: &[Arc<Step>]) -> Option<usize> {
    let end = |from: usize| {
        let reads = Reads::of([&steps[from]]);
        let adds = |step: &Arc<Step>| added_by(step).into_iter().any(|name| reads.has(name));
        steps[from + 1..].iter().position(adds).map(|at| from + at + 2)
    };
    let mut length = end(0)?;
    let mut at = 1;
    while at < length {
        length = length.max(end(at).unwrap_or(0));
        at += 1;
    }
    Some(length)
}

fn local(stretch: &[Arc<Step>]) -> Arc<Step> {
    let steps = stretch.iter().map(|step| step.instruction.clone()).collect();
    let body = Value::Traversal(Arc::new(Bytecode { sources: Vec::new(), steps }));
    let instruction = Instruction::new("local", vec![body]);
    Arc::new(Step { kind: Kind::Local(stretch.into()), labels: Vec::new(), instruction })
}
