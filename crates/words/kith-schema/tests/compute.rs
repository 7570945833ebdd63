//! Compares read compute with a slow, obvious twin, and tests its rules one by one.

use kith_schema::compute::{
    Computation, ComputeError, ComputeFault, ComputeFunction, ComputeOperator, ComputePlan, LANES, NoResult,
    OPERATORS_MAX, Query,
};
use kith_schema::{
    ElementType, FieldType, RecordView, RecordWriter, ScalarType, Schema, f16_from_f32, f32_from_f16,
};
use kith_types::ErrorCode;
use proptest::prelude::*;

fn schema(text: &str) -> Schema {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn record(schema: &Schema, json: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    RecordWriter::new(schema).write_json(json, &mut bytes).unwrap_or_else(|error| panic!("{json}: {error}"));
    bytes
}

fn computed(plan: &ComputePlan, schema: &Schema, json: &str) -> Result<String, NoResult> {
    computed_over(plan, schema, schema, json)
}

/// The results for records that were written under `writer` and are read under `reader`.
fn computed_over(
    plan: &ComputePlan,
    reader: &Schema,
    writer: &Schema,
    json: &str,
) -> Result<String, NoResult> {
    let computation = Computation::new(plan, reader).unwrap_or_else(|error| panic!("{error}"));
    let compute = computation.over(writer).expect("compatible");
    let mut out = b"before".to_vec();
    match compute.write(&record(writer, json), &mut out) {
        Ok(()) => {
            let view = RecordView::new(computation.result(), &out[6..]).expect("a record of the result");
            Ok(view.to_result_json().expect("whole"))
        }
        Err(stopped) => {
            assert_eq!(out, b"before", "nothing is left of a record that stopped");
            Err(stopped)
        }
    }
}

fn dot(query: &[f32]) -> ComputePlan {
    one(ComputeFunction::Dot(query.to_vec()))
}

fn one(function: ComputeFunction) -> ComputePlan {
    ComputePlan::new().operator(function, "v", Some("x".to_owned()))
}

/// A plan with all four functions of field `v`.
fn every(query: &[f32]) -> ComputePlan {
    ComputePlan::new()
        .operator(ComputeFunction::Dot(query.to_vec()), "v", None)
        .operator(ComputeFunction::Cosine(query.to_vec()), "v", None)
        .operator(ComputeFunction::Hadamard(query.to_vec()), "v", None)
        .operator(ComputeFunction::Count, "v", None)
}

/// Sums in the defined order: lane by lane, then the tree.
fn twin_sum(x: &[f64], y: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    for (index, (x, y)) in x.iter().zip(y).enumerate() {
        lanes[index % LANES] += x * y;
    }
    let fours: Vec<f64> = (0..4).map(|lane| lanes[lane] + lanes[lane + 4]).collect();
    (fours[0] + fours[2]) + (fours[1] + fours[3])
}

/// The plain definition, summed from first to last.
fn plain(x: &[f64], y: &[f64]) -> (f64, f64, f64, f64) {
    let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let magnitudes = x.iter().zip(y).map(|(a, b)| (a * b).abs()).sum();
    (sum(x, y), sum(x, x).sqrt(), sum(y, y).sqrt(), magnitudes)
}

fn numbers(computation: &Computation, bytes: &[u8], index: usize) -> Option<f64> {
    let view = RecordView::new(computation.result(), bytes).expect("a record of the result");
    view.at(index).expect("undamaged").and_then(|field| field.as_f64())
}

fn vectors() -> impl Strategy<Value = (Vec<f32>, Vec<f32>)> {
    let number = prop_oneof![
        4 => -10.0f32..10.0,
        1 => prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO,
        1 => Just(0.0f32),
    ];
    prop::collection::vec((number.clone(), number), 1..200).prop_map(|pairs| pairs.into_iter().unzip())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sums_are_the_twins_to_the_bit_and_the_plain_ones_within_the_tolerance((stored, query) in vectors()) {
        let dims = stored.len();
        let elements = [
            (ElementType::F32, stored.clone()),
            (ElementType::F16, stored.iter().map(|x| f32_from_f16(f16_from_f32(x.clamp(-6e4, 6e4)))).collect()),
            (ElementType::I8, stored.iter().map(|x| x.clamp(-128.0, 127.0).trunc()).collect::<Vec<f32>>()),
        ];
        for (element, stored) in elements {
            let schema = schema(&format!(r#"{{"fields":[{{"name":"v","type":"vector<{},{dims}>"}}]}}"#, element.name()));
            let mut bytes = Vec::new();
            let mut writer = RecordWriter::new(&schema);
            writer.set_f32s(0, &stored).unwrap();
            writer.finish(&mut bytes).unwrap();
            let computation = Computation::new(&every(&query), &schema).unwrap();
            let mut out = Vec::new();
            computation.over(&schema).unwrap().write(&bytes, &mut out).unwrap();

            let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<f64>>();
            let (x, y) = (wide(&stored), wide(&query));
            let (sum, norm_x, norm_y, magnitudes) = plain(&x, &y);
            let got = numbers(&computation, &out, 0).unwrap();
            prop_assert_eq!(got.to_bits(), twin_sum(&x, &y).to_bits());
            prop_assert!((got - sum).abs() <= 1e-13 * magnitudes, "{got} {sum} {magnitudes}");
            match numbers(&computation, &out, 1) {
                None => prop_assert!(norm_x == 0.0 || norm_y == 0.0),
                Some(cosine) => {
                    let norms = twin_sum(&x, &x).sqrt() * twin_sum(&y, &y).sqrt();
                    prop_assert_eq!(cosine.to_bits(), (twin_sum(&x, &y) / norms).clamp(-1.0, 1.0).to_bits());
                    prop_assert!((cosine - sum / (norm_x * norm_y)).abs() <= 1e-12);
                }
            }
            let view = RecordView::new(computation.result(), &out).unwrap();
            let products: Vec<f32> = view.at(2).unwrap().unwrap().as_vector().unwrap().iter().collect();
            let expected: Vec<f32> = stored.iter().zip(&query).map(|(x, y)| x * y).collect();
            prop_assert_eq!(products, expected);
            prop_assert_eq!(view.at(3).unwrap().unwrap().as_u64(), Some(dims as u64));
        }
    }

    #[test]
    fn the_same_numbers_have_the_same_sums_as_whatever_they_are_stored(pairs in prop::collection::vec((-100i8..=100, -50i32..50), 1..100)) {
        let query: Vec<f32> = pairs.iter().map(|(_, y)| *y as f32).collect();
        let dims = pairs.len();
        let json = format!(r#"{{"v":{:?}}}"#, pairs.iter().map(|(x, _)| *x).collect::<Vec<i8>>());
        let types = ["i8", "f16", "f32"].map(|element| format!("vector<{element},{dims}>"));
        let types = types.into_iter().chain(["list<f32>".to_owned(), "list<f64>".to_owned()]);
        let sums: Vec<String> = types.map(|of| {
            let schema = schema(&format!(r#"{{"fields":[{{"name":"v","type":"{of}"}}]}}"#));
            computed(&every(&query), &schema, &json).unwrap()
        }).collect();
        prop_assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "{sums:?}");
    }
}

#[test]
fn projections_and_operators_are_fields_of_the_result_in_order() {
    let people = schema(
        r#"{"fields":[{"name":"title","type":"text"},{"name":"embed","type":"vector<f32,2>"},{"name":"tags","type":"list<text>"},
            {"name":"links","type":"map<text,i64>"},{"name":"likes","type":"i32","nullable":true},{"name":"city","type":"text","default":"Bern"}]}"#,
    );
    let plan = ComputePlan::new()
        .project("likes")
        .operator(ComputeFunction::Dot(vec![2.0, 1.0]), "embed", Some("score".to_owned()))
        .operator(ComputeFunction::Count, "tags", None)
        .operator(ComputeFunction::Count, "links", Some("n".to_owned()))
        .operator(ComputeFunction::Hadamard(vec![2.0, 1.0]), "embed", None)
        .project("title")
        .project("city");
    let json = r#"{"title":"Kith","embed":[1.5,-2],"tags":["a","b"],"links":{"x":1},"likes":7}"#;
    assert_eq!(
        computed(&plan, &people, json).unwrap(),
        r#"{"likes":7,"title":"Kith","city":"Bern","score":1.0,"count_tags":2,"n":1,"hadamard_embed":[3.0,-2.0]}"#
    );
    let result = Computation::new(&plan, &people).unwrap().result().clone();
    let types: Vec<FieldType> = result.fields().iter().map(|field| field.field_type()).collect();
    assert_eq!(types[3..5], [FieldType::Scalar(ScalarType::F64), FieldType::Scalar(ScalarType::U64)]);
    assert!(result.fields()[3].is_nullable() && !result.fields()[4].is_nullable());
}

#[test]
fn what_has_no_number_is_null() {
    let list = schema(r#"{"fields":[{"name":"v","type":"list<f32>","nullable":true}]}"#);
    let nothing = r#"{"dot_v":null,"cosine_v":null,"hadamard_v":null,"count_v":0}"#;
    assert_eq!(computed(&every(&[1.0, 2.0]), &list, r#"{"v":null}"#).unwrap(), nothing);
    assert_eq!(computed(&every(&[1.0, 2.0]), &list, r#"{"v":[]}"#).unwrap(), nothing);
    let zero = r#"{"dot_v":0.0,"cosine_v":null,"hadamard_v":[0.0,0.0],"count_v":2}"#;
    assert_eq!(computed(&every(&[1.0, 2.0]), &list, r#"{"v":[0,0]}"#).unwrap(), zero);
    assert_eq!(computed(&every(&[0.0, 0.0]), &list, r#"{"v":[1,2]}"#).unwrap(), zero);
}

#[test]
fn no_norm_is_zero_or_infinite_by_accident() {
    let cosine = |of: &str, json: &str, query: &[f32]| {
        let schema = schema(&format!(r#"{{"fields":[{{"name":"v","type":"{of}"}}]}}"#));
        computed(&one(ComputeFunction::Cosine(query.to_vec())), &schema, json).unwrap()
    };
    let same = r#"{"x":1.0}"#;
    assert_eq!(cosine("vector<f32,2>", r#"{"v":[1e-45,0]}"#, &[1e-45, 0.0]), same);
    assert_eq!(cosine("vector<f32,2>", r#"{"v":[3e38,0]}"#, &[3e38, 0.0]), same);
    assert_eq!(cosine("list<f64>", r#"{"v":[1e-300,0]}"#, &[2.0, 0.0]), same);
    assert_eq!(cosine("list<f64>", r#"{"v":[1e300,0]}"#, &[2.0, 0.0]), same);
    assert_eq!(cosine("list<f64>", r#"{"v":[5e-324,0]}"#, &[2.0, 0.0]), same);
    assert_eq!(cosine("list<f64>", r#"{"v":[0,0]}"#, &[2.0, 0.0]), r#"{"x":null}"#);
}

#[test]
fn what_is_not_finite_goes_through() {
    let vector = schema(r#"{"fields":[{"name":"v","type":"vector<f32,2>"}]}"#);
    let of = |query: [f32; 2]| computed(&every(&query), &vector, r#"{"v":[1,0]}"#).unwrap();
    assert_eq!(
        of([f32::INFINITY, 1.0]),
        r#"{"dot_v":"Infinity","cosine_v":"NaN","hadamard_v":["Infinity",0.0],"count_v":2}"#
    );
    assert_eq!(
        of([1.0, f32::INFINITY]),
        r#"{"dot_v":"NaN","cosine_v":"NaN","hadamard_v":[1.0,"NaN"],"count_v":2}"#
    );
    assert_eq!(
        of([1.0, f32::NEG_INFINITY]),
        r#"{"dot_v":"NaN","cosine_v":"NaN","hadamard_v":[1.0,"NaN"],"count_v":2}"#
    );
    let large = computed(&one(ComputeFunction::Hadamard(vec![1e38, -1e38])), &vector, r#"{"v":[10,10]}"#);
    assert_eq!(large.unwrap(), r#"{"x":["Infinity","-Infinity"]}"#);
    let bits =
        Query::new(&[-f32::NAN]).dot(kith_schema::compute::Elements::F32(&1.0f32.to_le_bytes())).to_bits();
    assert_eq!(bits, f64::NAN.to_bits(), "a NaN is always the same NaN");
}

#[test]
fn a_list_of_another_length_is_a_fault_of_its_record_with_all_lengths() {
    let list = schema(r#"{"fields":[{"name":"t","type":"text"},{"name":"v","type":"list<f64>"}]}"#);
    let plan = ComputePlan::new()
        .project("t")
        .operator(ComputeFunction::Count, "v", None)
        .operator(ComputeFunction::Dot(vec![1.0, 2.0, 3.0]), "v", None)
        .top_k("count_v", 3);
    let fault = NoResult::Fault(ComputeFault { operator: 1, want: 3, got: 2 });
    let json = r#"{"t":"a","v":[1,2]}"#;
    assert_eq!(computed(&plan, &list, json), Err(fault.clone()));
    let computation = Computation::new(&plan, &list).unwrap();
    let score = computation.over(&list).unwrap().score(&record(&list, json));
    assert_eq!(score, Err(fault), "ranked by something else, it is a fault all the same");
}

#[test]
fn older_records_have_the_readers_defaults_and_nulls_and_are_widened() {
    let writer = schema(r#"{"fields":[{"name":"n","type":"i32"},{"name":"a","type":"text"}]}"#);
    let reader = schema(
        r#"{"fields":[{"name":"a","type":"text"},{"name":"v","type":"list<f32>","nullable":true},{"name":"w","type":"vector<f32,2>","default":[3,4]},
            {"name":"tags","type":"list<text>","nullable":true},{"name":"never","type":"vector<f32,2>"},{"name":"n","type":"i64"}]}"#,
    );
    let plan = ComputePlan::new()
        .project("n")
        .project("never")
        .operator(ComputeFunction::Dot(vec![1.0, 2.0]), "v", None)
        .operator(ComputeFunction::Dot(vec![1.0, 2.0]), "w", None)
        .operator(ComputeFunction::Cosine(vec![1.0, 2.0]), "never", None)
        .operator(ComputeFunction::Count, "tags", None);
    let got = computed_over(&plan, &reader, &writer, r#"{"n":-7,"a":"x"}"#).unwrap();
    assert_eq!(got, r#"{"n":-7,"never":null,"dot_v":null,"dot_w":11.0,"cosine_never":null,"count_tags":0}"#);
    let brought = ComputePlan { reader: Some(reader.clone()), ..plan.clone() };
    assert_eq!(computed_over(&brought, &writer, &writer, r#"{"n":-7,"a":"x"}"#).unwrap(), got);
    let other = schema(r#"{"fields":[{"name":"n","type":"text"}]}"#);
    assert!(Computation::new(&plan, &reader).unwrap().over(&other).is_err(), "text does not widen to i64");
}

#[test]
fn scores_are_those_of_what_comes_out() {
    let people = schema(
        r#"{"fields":[{"name":"v","type":"vector<f32,2>"},{"name":"n","type":"i64","nullable":true},{"name":"t","type":"text"}]}"#,
    );
    let json = r#"{"v":[1,2],"n":-3,"t":"x"}"#;
    for by in ["dot_v", "n", "count_v"] {
        let plan = ComputePlan::new()
            .operator(ComputeFunction::Dot(vec![0.1, 0.2]), "v", None)
            .operator(ComputeFunction::Count, "v", None)
            .top_k(by, 5);
        let computation = Computation::new(&plan, &people).unwrap();
        let compute = computation.over(&people).unwrap();
        let bytes = record(&people, json);
        let mut out = Vec::new();
        compute.write(&bytes, &mut out).unwrap();
        let score = compute.score(&bytes).unwrap();
        assert!(score.is_some());
        assert_eq!(computation.score(&out).unwrap(), score);
        assert_eq!(computation.result().index_of("n").is_some(), by == "n", "what ranks is in the result");
        assert_eq!(computation.k(), Some(5));
        let uncut = Computation::new(&computation.uncut(&plan), &people).unwrap();
        assert_eq!((uncut.result(), uncut.k()), (computation.result(), None));
    }
    let null = ComputePlan::new().top_k("n", 1);
    let computation = Computation::new(&null, &people).unwrap();
    let score = computation.over(&people).unwrap().score(&record(&people, r#"{"v":[1,2],"t":"x"}"#));
    assert_eq!(score, Ok(None));
}

#[test]
fn plans_that_make_no_sense_are_refused_with_their_reason() {
    let people = schema(
        r#"{"fields":[{"name":"title","type":"text"},{"name":"v","type":"vector<f32,2>"},{"name":"ids","type":"list<i64>"}]}"#,
    );
    let refused = |plan: ComputePlan| {
        let error = Computation::new(&plan, &people).unwrap_err();
        (error.code(), error.to_string())
    };
    let (code, message) = refused(ComputePlan::new().project("titel"));
    assert_eq!(
        (code, message.as_str()),
        (ErrorCode::UnknownField, "the records have no field \"titel\"; did you mean \"title\"?")
    );
    assert_eq!(refused(one(ComputeFunction::Dot(vec![1.0]))).0, ErrorCode::DimensionMismatch);
    assert!(matches!(
        Computation::new(&dot(&[1.0; 3]), &people),
        Err(ComputeError::Dimensions { want: 2, got: 3, .. })
    ));
    let over = |function, field: &str| refused(ComputePlan::new().operator(function, field, None)).0;
    assert_eq!(over(ComputeFunction::Count, "title"), ErrorCode::WrongFieldType);
    assert_eq!(over(ComputeFunction::Dot(vec![1.0]), "title"), ErrorCode::WrongFieldType);
    assert_eq!(over(ComputeFunction::Cosine(vec![1.0]), "ids"), ErrorCode::WrongFieldType);
    assert_eq!(over(ComputeFunction::Hadamard(vec![1.0]), "w"), ErrorCode::UnknownField);
    assert_eq!(refused(ComputePlan::new().project("title").project("title")).0, ErrorCode::BadRequest);
    assert_eq!(refused(ComputePlan::new()).0, ErrorCode::BadRequest);
    assert_eq!(refused(dot(&[1.0, 2.0]).top_k("x", 0)).0, ErrorCode::OutOfRange);
    assert_eq!(refused(dot(&[1.0, 2.0]).top_k("y", 1)).0, ErrorCode::UnknownField);
    assert_eq!(refused(dot(&[1.0, 2.0]).top_k("title", 1)).0, ErrorCode::WrongFieldType);
    let operator = ComputeOperator { name: "x".into(), field: "v".into(), function: ComputeFunction::Count };
    let many = ComputePlan { operators: vec![operator; OPERATORS_MAX + 1], ..ComputePlan::new() };
    assert_eq!(refused(many).0, ErrorCode::OutOfRange);
}

#[test]
fn bytes_that_are_no_record_stop_it() {
    let vector = schema(r#"{"fields":[{"name":"v","type":"vector<f32,2>"}]}"#);
    let computation = Computation::new(&dot(&[1.0, 2.0]), &vector).unwrap();
    let compute = computation.over(&vector).unwrap();
    for bytes in [&[][..], &[0; 7], &[0; 9]] {
        assert!(matches!(compute.write(bytes, &mut Vec::new()), Err(NoResult::Damaged(_))), "{bytes:?}");
        assert!(matches!(compute.score(bytes), Err(NoResult::Damaged(_))), "{bytes:?}");
    }
}

#[test]
fn records_whose_writer_has_the_fields_in_another_order_are_the_same() {
    let reader = schema(r#"{"fields":[{"name":"t","type":"text"},{"name":"v","type":"vector<f16,3>"}]}"#);
    let writer = schema(
        r#"{"fields":[{"name":"v","type":"vector<f16,3>","nullable":true},{"name":"u","type":"bytes"},{"name":"t","type":"text"}]}"#,
    );
    let plan = every(&[1.0, -1.0, 0.5]).project("t");
    let here = computed(&plan, &reader, r#"{"t":"a","v":[1,2,3]}"#).unwrap();
    assert_eq!(computed_over(&plan, &reader, &writer, r#"{"u":"","t":"a","v":[1,2,3]}"#).unwrap(), here);
    assert_eq!(
        here,
        r#"{"t":"a","dot_v":0.5,"cosine_v":0.0890870806374748,"hadamard_v":[1.0,-2.0,1.5],"count_v":3}"#
    );
}
