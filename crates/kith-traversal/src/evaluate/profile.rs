//! `profile`.

use super::{chain::Upstream, context::Context, reduce::single, traverser::Batch};
use crate::{
    error::Result,
    value::{PERCENT_OF_TIME, TraversalMetrics, Value},
};
use std::sync::Arc;

/// `profile`: lets the steps before it run to their end, and returns what was counted.
pub(super) async fn profile(upstream: &mut Upstream<'_>, context: &Context<'_>) -> Result<Batch> {
    while upstream.next(context).await?.is_some() {}
    Ok(vec![single(taken(upstream, context), 0, context)])
}

/// What has been counted of the steps before, as a value.
pub(super) fn taken(upstream: &Upstream<'_>, context: &Context<'_>) -> Value {
    let Some(profile) = &context.profile else { return Value::Null };
    let mut steps = profile.metrics(&upstream.steps(), "0.0()");
    let nanos = steps.iter().map(|metrics| metrics.nanos).sum::<i64>();
    for metrics in &mut steps {
        #[allow(clippy::cast_precision_loss, reason = "a share in percent is approximate")]
        let percent = if nanos == 0 { 0.0 } else { 100.0 * metrics.nanos as f64 / nanos as f64 };
        metrics.annotations.insert(0, (PERCENT_OF_TIME.to_owned(), Value::Double(percent)));
    }
    Value::TraversalMetrics(Arc::new(TraversalMetrics { nanos, steps }))
}
