//! A query as the line that `kith run` reads: for the record and the slow log.

use kith_client::{CacheMode, FanOutLimits, QueryOptions};
use kith_ops::{CommonPlan, GraphQuery, Operand, Want};
use kith_types::{Direction, Workflow};
use serde_json::{Map, Value, json};

/// The line's object. Options that are the default are left out.
pub fn query_json(graph: &str, query: &GraphQuery, options: &QueryOptions) -> Value {
    let mut object = operand(&query.operand);
    object.insert("graph".into(), json!(graph));
    if query.workflow == Workflow::Background {
        object.insert("workflow".into(), json!("background"));
    }
    if let Some(edge_type) = &query.edge_type {
        object.insert("edge_type".into(), json!(edge_type));
    }
    if let Some(direction) = query.direction {
        let name = match direction {
            Direction::Out => "out",
            Direction::In => "in",
            Direction::Both => "both",
        };
        object.insert("direction".into(), json!(name));
    }
    object.extend(options_json(options));
    match options.cache {
        CacheMode::Use => {}
        CacheMode::Bypass => drop(object.insert("cache".into(), json!("bypass"))),
        CacheMode::Refresh => drop(object.insert("cache".into(), json!("refresh"))),
    }
    for (name, value) in [("after", options.page.after), ("limit", options.page.limit)] {
        if let Some(value) = value {
            object.insert(name.into(), json!(value));
        }
    }
    Value::Object(object)
}

/// The options of graphs and stores alike that are not the default.
pub(super) fn options_json(options: &QueryOptions) -> Map<String, Value> {
    let mut object = Map::new();
    if options.workflow == Workflow::Background {
        object.insert("workflow".into(), json!("background"));
    }
    if options.fan_out != FanOutLimits::default() {
        object.insert("fan_out".into(), json!(options.fan_out.to_string()));
    }
    if let Some(policy) = &options.policy {
        object.insert("policy".into(), json!(policy));
    }
    if let Some(hedging) = options.hedging {
        object.insert("hedge".into(), json!(hedging.name()));
    }
    if let Some(deadline) = options.deadline {
        object.insert("deadline_ms".into(), json!(deadline.as_millis() as u64));
    }
    if options.partial {
        object.insert("partial".into(), json!(true));
    }
    object
}

fn operand(operand: &Operand) -> Map<String, Value> {
    let object = match operand {
        Operand::Connections { id } => json!({"op": "connections", "id": id}),
        Operand::Entities { id, kind } => json!({"op": "entities", "id": id, "kind": kind}),
        Operand::Members { kind, entity } => json!({"op": "members", "kind": kind, "entity": entity}),
        Operand::Network { id, want } => json!({"op": "network", "id": id, "return": want_name(*want)}),
        Operand::Distance { from, to } => json!({"op": "distance", "id": from, "to": to}),
        Operand::Path { from, to, max } => json!({"op": "path", "id": from, "to": to, "max": max}),
        Operand::Common { id, to, kind, want, plan } => {
            let mut object = json!({"op": "common", "id": id, "to": to, "return": want_name(*want)});
            if let Some(kind) = kind {
                object["kind"] = json!(kind);
            }
            match plan {
                CommonPlan::Auto => {}
                CommonPlan::Fetch => object["plan"] = json!("fetch"),
                CommonPlan::Push => object["plan"] = json!("push"),
            }
            object
        }
        Operand::Suggest { id, k } => json!({"op": "suggest", "id": id, "k": k}),
    };
    match object {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn want_name(want: Want) -> &'static str {
    match want {
        Want::Ids => "ids",
        Want::Size => "size",
        Want::Exists => "exists",
    }
}
