//! What traversals read of live graphs, on the wire.

use crate::convert::{ConvertError, live};
use kith_schema::live::{
    AssociationsPlan, CountedElements, ElementPart, ElementTest, FieldOrder, ObjectFields,
};
use kith_wire::v1;

pub(super) fn fields_to_wire(fields: &ObjectFields) -> v1::ObjectsOperator {
    match fields {
        ObjectFields::None => v1::ObjectsOperator { without_data: true, fields: Vec::new() },
        ObjectFields::All => v1::ObjectsOperator::default(),
        // Without a name, all fields would be meant.
        ObjectFields::Named(names) if names.is_empty() => fields_to_wire(&ObjectFields::None),
        ObjectFields::Named(names) => v1::ObjectsOperator { without_data: false, fields: names.clone() },
    }
}

pub(super) fn fields_from_wire(wire: &v1::ObjectsOperator) -> ObjectFields {
    match (wire.without_data, &wire.fields[..]) {
        (true, _) => ObjectFields::None,
        (false, []) => ObjectFields::All,
        (false, names) => ObjectFields::Named(names.to_vec()),
    }
}

pub(super) fn tests_to_wire(tests: &[ElementTest]) -> Vec<v1::ElementTest> {
    let test = |ElementTest { part, predicate }: &ElementTest| {
        let field = match part {
            ElementPart::Type => None,
            ElementPart::Field(name) => Some(name.clone()),
        };
        v1::ElementTest { field, predicate: predicate.clone().into() }
    };
    tests.iter().map(test).collect()
}

pub(super) fn tests_from_wire(wire: &[v1::ElementTest]) -> Vec<ElementTest> {
    let test = |v1::ElementTest { field, predicate }: &v1::ElementTest| ElementTest {
        part: field.clone().map_or(ElementPart::Type, ElementPart::Field),
        predicate: predicate.to_vec(),
    };
    wire.iter().map(test).collect()
}

pub(super) fn counted_to_wire(counted: &CountedElements) -> v1::CountElementsOperator {
    let (of_associations, kinds) = match counted {
        CountedElements::Objects(kinds) => (false, kinds.clone()),
        CountedElements::Associations(kinds) => (true, kinds.clone()),
    };
    v1::CountElementsOperator { of_associations, kinds }
}

pub(super) fn counted_from_wire(wire: &v1::CountElementsOperator) -> CountedElements {
    match wire.of_associations {
        false => CountedElements::Objects(wire.kinds.clone()),
        true => CountedElements::Associations(wire.kinds.clone()),
    }
}

pub(super) fn plan_to_wire(plan: &AssociationsPlan) -> v1::AssociationReads {
    let top = plan.top.as_ref().map(|FieldOrder { field, descending }| v1::FieldOrder {
        field: field.clone(),
        descending: *descending,
    });
    v1::AssociationReads {
        reads: plan.reads.iter().map(live::read_to_wire).collect(),
        tests: tests_to_wire(&plan.tests),
        top,
        without_times: plan.without_times,
    }
}

pub(super) fn plan_from_wire(wire: &v1::AssociationReads) -> Result<AssociationsPlan, ConvertError> {
    let order =
        |order: &v1::FieldOrder| FieldOrder { field: order.field.clone(), descending: order.descending };
    Ok(AssociationsPlan {
        reads: wire.reads.iter().map(live::read_from_wire).collect::<Result<_, _>>()?,
        tests: tests_from_wire(&wire.tests),
        top: wire.top.as_ref().map(order),
        without_times: wire.without_times,
    })
}
