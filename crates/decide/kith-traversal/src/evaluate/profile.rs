//! `profile`.

use super::{chain::Upstream, context::Context, reduce::single, traverser::Batch};
use crate::{
    error::Result,
    plan::Step,
    value::{PERCENT_OF_TIME, TraversalMetrics, Value},
};
use std::sync::Arc;

/// `profile`: lets the steps before it run to their end, and returns what was counted.
pub(super) async fn profile(upstream: &mut Upstream<'_>, context: &Context<'_>) -> Result<Batch> {
    while upstream.next(context).await?.is_some() {}
    Ok(vec![single(taken(upstream, context), 0, context)])
}

/// The counts of the steps before, as a value.
pub(super) fn taken(upstream: &Upstream<'_>, context: &Context<'_>) -> Value {
    match metrics(&upstream.steps(), context) {
        Some(metrics) => Value::TraversalMetrics(Arc::new(metrics)),
        None => Value::Null,
    }
}

/// The counts of these steps. `None` if nothing is counted.
pub(super) fn metrics(steps: &[Arc<Step>], context: &Context<'_>) -> Option<TraversalMetrics> {
    let mut steps = context.profile.as_ref()?.metrics(steps, "0.0()");
    let nanos = steps.iter().map(|metrics| metrics.nanos).sum::<i64>();
    for metrics in &mut steps {
        #[allow(clippy::cast_precision_loss, reason = "a share in percent is approximate")]
        let percent = if nanos == 0 { 0.0 } else { 100.0 * metrics.nanos as f64 / nanos as f64 };
        metrics.annotations.insert(0, (PERCENT_OF_TIME.to_owned(), Value::Double(percent)));
    }
    Some(TraversalMetrics { nanos, steps })
}
