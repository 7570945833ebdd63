//! Tests of declared types, their evolution, and their two written forms.

use super::*;
use kith_schema::{Field, FieldType};
use proptest::prelude::*;

const VILLAGE: &str = r#"
[object.person]
fields = { name = "text", born = { type = "timestamp", nullable = true } }

[object.post]

[association.follows]
inverse = "followed_by"
fields = { weight = { type = "f32", default = 1.0 } }

[association.followed_by]
cap = 100

[association.friend]
symmetric = true
adjacency = false
"#;

fn parse(text: &str) -> DeclaredTypes {
    text.parse().unwrap()
}

fn error(text: &str) -> String {
    text.parse::<DeclaredTypes>().unwrap_err().to_string()
}

fn village() -> GraphTypes {
    GraphTypes::new(7, &parse(VILLAGE)).unwrap()
}

/// Applies a text to the types of [`village`]. Returns one line for each change, or the error.
fn apply(text: &str) -> String {
    match village().evolve(&parse(text)) {
        Ok((_, changes)) => changes.iter().map(|change| format!("{change}\n")).collect(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn types_are_numbered_in_the_order_of_the_text_and_inverses_follow_their_types() {
    let types = village();
    assert_eq!(types.revision, 1);
    let number = |name| types.association(name).map(|(number, _)| number.0);
    assert_eq!(types.object("person").map(|(number, _)| number), Some(TypeId(1)));
    assert_eq!((number("follows"), number("followed_by"), number("friend")), (Some(3), Some(4), Some(5)));
    let (_, follows) = types.association("follows").unwrap();
    let (_, followed_by) = types.association("followed_by").unwrap();
    assert_eq!(follows.inverse, Inverse::Named { kind: TypeId(4), forward: true });
    assert_eq!(followed_by.inverse, Inverse::Named { kind: TypeId(3), forward: false });
    assert_eq!((follows.cap, followed_by.cap), (AssociationType::CAP_DEFAULT, 100));
    assert_eq!(follows.schemas, followed_by.schemas);
    assert!(followed_by.adjacency && !types.association("friend").unwrap().1.adjacency);
    assert!(types.object("post").unwrap().1.schemas.is_empty(), "a type without fields has no schema");
}

#[test]
fn fields_keep_the_order_of_the_text() {
    let declared = parse("[object.a]\nfields = { z = 'text', a = 'i64', m = 'bool' }");
    let names = declared.objects[0].fields.as_ref().unwrap().fields().iter().map(Field::name);
    assert_eq!(names.collect::<Vec<_>>(), ["z", "a", "m"]);
}

#[test]
fn an_inverse_without_a_table_is_bounded_as_its_forward_type() {
    let declared = parse("[association.likes]\ninverse = 'liked_by'\ncap = 10\nadjacency = false");
    let DeclaredInverse::Named { name, cap, adjacency } = &declared.associations[0].inverse else { panic!() };
    assert_eq!((name.as_str(), *cap, *adjacency), ("liked_by", 10, false));
}

#[test]
fn errors_name_the_line_the_type_and_what_was_meant() {
    let got = error("[object.person]\n\n[association.follows]\ninvers = 'followed_by'");
    assert_eq!(
        got,
        "line 4: association type \"follows\": key \"invers\" is unknown (known: fields, inverse, symmetric, cap, \
         adjacency); did you mean \"inverse\"?"
    );
    assert!(error("[objects.person]").starts_with("line 1: key \"objects\" is unknown"));
    assert!(error("[object.person]\nfields = { name = 'string' }").ends_with("did you mean \"text\"?"));
    assert!(
        error("[object.person.fields]\nname = { type = 'text', nulable = true }")
            .starts_with("line 2: object type \"person\", field \"name\": key \"nulable\"")
    );
    assert!(error("[object.person.fields]\nname = {}").ends_with("has no \"type\""));
    assert!(error("[object.'a b']").contains("letters, digits"));
    assert!(error("[object.a]\nfields = 3").ends_with("\"fields\" must be a table, not an integer"));
    assert!(error("[association.a]\ncap = 0").contains("from 1 to 100000"));
    assert!(error("[association.a]\ncap = 1.5").contains("from 1 to 100000"));
    assert!(error("[object.a").starts_with("line 1: the text is not valid TOML: "));
    assert!(error("[object.a]\n[object.a]").starts_with("line 2: the text is not valid TOML: "));
    assert!(error("[object.a.fields]\nx = { type = 'i32', default = 3000000000 }").contains("default"));
    assert!(
        error("[object.a.fields]\nx = { type = 'timestamp', default = 2026-01-01 }").contains("milliseconds")
    );
    assert!(error(&"#".repeat(TEXT_BYTES_MAX + 1)).contains("at most 1048576"));
}

#[test]
fn an_inverse_is_declared_once() {
    assert!(error("[association.a]\ninverse = 'b'\nsymmetric = true").starts_with("line 2: "));
    assert!(error("[association.a]\ninverse = 'a'").contains("symmetric = true"));
    assert!(
        error("[association.a]\ninverse = 'c'\n[association.b]\ninverse = 'c'")
            .contains("\"c\" is already the inverse of \"a\"")
    );
    assert!(
        error("[association.a]\ninverse = 'b'\n[association.b]\nfields = { x = 'i64' }")
            .starts_with("line 4: association type \"b\": the type is the inverse of \"a\"")
    );
    assert!(
        error("[association.a]\ninverse = 'b'\n[association.b]\ninverse = 'a'").contains("the inverse of")
    );
}

#[test]
fn a_text_that_declares_the_same_changes_nothing() {
    let types = village();
    let (same, changes) = types.evolve(&parse(VILLAGE)).unwrap();
    assert_eq!((&same, changes), (&types, vec![]));
    assert_eq!(types.evolve(&types.declared()).unwrap(), (types, vec![]));
}

#[test]
fn every_change_is_told() {
    let text = VILLAGE
        .replace("name = \"text\"", "name = \"text\", city = { type = \"text\", nullable = true }")
        .replace("cap = 100", "cap = 200\nadjacency = false")
        .replace("[object.post]", "[object.post]\nfields = { title = { type = \"text\", default = \"\" } }")
        + "[association.likes]\ninverse = \"liked_by\"";
    assert_eq!(
        apply(&text),
        "object type \"person\": field \"city\" (text) is new\n\
         object type \"post\": field \"title\" (text) is new\n\
         association type \"followed_by\": the cap was 100 and is now 200\n\
         association type \"followed_by\": graph queries can no longer follow it\n\
         association type \"likes\" is new and gets number 6\n\
         association type \"liked_by\" is new and gets number 7\n"
    );
    let (types, _) = village().evolve(&parse(&text)).unwrap();
    assert_eq!((types.revision, types.objects[&TypeId(1)].schemas.len()), (2, 2));
}

#[test]
fn what_would_lose_data_is_refused() {
    assert_eq!(
        apply(&VILLAGE.replace("[object.post]", "[object.posts]")),
        "object type \"post\": the type is missing from the new text, and a type cannot be removed: keep its table, \
         and delete its data instead; did you mean \"posts\"?"
    );
    let inverse = apply(&VILLAGE.replace("symmetric = true", "inverse = \"befriended\""));
    assert!(
        inverse.contains("the type is symmetric, and the new text says that it has the inverse"),
        "{inverse}"
    );
    let inverse = apply(&VILLAGE.replace("followed_by", "followers"));
    assert!(inverse.contains("the type has the inverse \"followed_by\""), "{inverse}");
    let friend = "[association.friend]\nsymmetric = true\nadjacency = false\n";
    let inverse = apply(&VILLAGE.replace(friend, "[association.likes]\ninverse = \"friend\""));
    assert!(
        inverse.contains("the type is symmetric, and the new text says that it is the inverse of"),
        "{inverse}"
    );
    assert!(apply(&VILLAGE.replace("name = \"text\"", "name = \"i64\"")).contains("was text and is now i64"));
    let first = VILLAGE.replace("[object.post]", "[object.post]\nfields = { title = \"text\" }");
    assert!(apply(&first).contains("is new to a type without fields"));
    let none = VILLAGE.replace("fields = { weight = { type = \"f32\", default = 1.0 } }", "");
    assert!(apply(&none).contains("at least one must remain"));
}

#[test]
fn a_field_that_comes_back_has_the_type_that_it_had() {
    let field = |kind| {
        format!("[object.a]\nfields = {{ k = \"text\", x = {{ type = \"{kind}\", nullable = true }} }}")
    };
    let types = GraphTypes::new(1, &parse(&field("i64"))).unwrap();
    let (types, _) = types.evolve(&parse("[object.a]\nfields = { k = \"text\" }")).unwrap();
    assert_eq!(types.objects[&TypeId(1)].schemas.len(), 2);
    let refused = types.evolve(&parse(&field("text"))).unwrap_err().to_string();
    assert!(refused.contains("an earlier schema of the type does not allow this change"), "{refused}");
    assert_eq!(types.evolve(&parse(&field("i64"))).unwrap().0.objects[&TypeId(1)].schemas.len(), 3);
}

#[test]
fn a_change_of_fields_reaches_the_inverse() {
    let text =
        VILLAGE.replace("default = 1.0 }", "default = 1.0 }, note = { type = \"text\", nullable = true }");
    let (types, _) = village().evolve(&parse(&text)).unwrap();
    assert_eq!(types.associations[&TypeId(4)].schemas, types.associations[&TypeId(3)].schemas);
    assert_eq!(types.associations[&TypeId(4)].schemas.len(), 2);
}

#[test]
fn a_document_is_read_as_it_was_written_and_damage_is_found() {
    let json = serde_json::to_string(&TypesDocument::from(&village())).unwrap();
    assert!(
        json.starts_with(r#"{"identity":"0000000000000007","revision":1,"objects":[{"number":1,"#),
        "{json}"
    );
    let read = |json: &str| GraphTypes::try_from(serde_json::from_str::<TypesDocument>(json).unwrap());
    assert_eq!(read(&json), Ok(village()));
    for (from, to) in [
        ("\"number\":2", "\"number\":1"),
        ("\"number\":2", "\"number\":0"),
        ("\"inverse_of\":3", "\"inverse_of\":5"),
        ("\"inverse\":4", "\"inverse\":9"),
        ("\"symmetric\":true", "\"symmetric\":true,\"inverse\":3"),
        ("\"post\"", "\"person\""),
        ("\"cap\":100", "\"cap\":0"),
        ("kith_schema", "keith_schema"),
        ("0000000000000007", "x"),
    ] {
        assert!(json.contains(from), "{from}");
        assert!(read(&json.replacen(from, to, 1)).is_err(), "{to}");
    }
}

#[test]
fn no_graph_has_more_types_than_numbers() {
    let mut types = village();
    types.objects.insert(TypeId(u16::MAX), types.objects[&TypeId(2)].clone());
    let kind = DeclaredObject { name: "late".to_owned(), fields: None };
    let mut declared = types.declared();
    declared.objects.push(kind);
    let refused = types.evolve(&declared).unwrap_err();
    assert_eq!(*refused.fault, TypesFault::TooMany { got: 65_536 });
}

fn fields() -> impl Strategy<Value = Option<Schema>> {
    let kinds = ["text", "i32", "u64", "f64", "bool", "bytes", "timestamp", "list<text>", "map<text,f64>"];
    let field = (
        0..kinds.len(),
        any::<bool>(),
        any::<bool>(),
        "[ -~é\"\\\\\n\u{7f}]{0,6}",
        any::<u64>(),
        any::<f64>(),
    );
    let name = "[a-z_\" .é-]{1,6}";
    proptest::collection::btree_map(name, field, 0..5).prop_map(move |fields| {
        let fields = fields.into_iter().map(|(name, (kind, nullable, default, text, number, fraction))| {
            let kind: FieldType = kinds[kind].parse().expect("every kind is a field type");
            let fraction = if fraction.is_finite() { fraction } else { 0.5 };
            let value = match kind.to_string().as_str() {
                "text" => text.into(),
                "i32" => (number as i32).into(),
                "u64" => number.into(),
                "timestamp" => (number as i64).into(),
                "f64" => fraction.into(),
                "bool" => (number % 2 == 0).into(),
                "bytes" => "AAEC".into(),
                "list<text>" => serde_json::json!([text, "x"]),
                _ => serde_json::json!({ text: fraction }),
            };
            let field = Field::new(name, kind);
            let field = if nullable { field.nullable() } else { field };
            if default { field.with_default(value) } else { field }
        });
        Schema::new(fields.collect()).ok()
    })
}

fn declared() -> impl Strategy<Value = DeclaredTypes> {
    let objects = proptest::collection::btree_map("[A-Za-z0-9_-]{1,8}", fields(), 0..4);
    let association = (fields(), 1..=CAP_MAX, any::<bool>(), 0..3u8, 1..=CAP_MAX, any::<bool>());
    let associations = proptest::collection::btree_map("[a-m]{1,8}", association, 0..5);
    (objects, associations).prop_map(|(objects, associations)| DeclaredTypes {
        objects: objects.into_iter().map(|(name, fields)| DeclaredObject { name, fields }).collect(),
        associations: associations
            .into_iter()
            .map(|(name, (fields, cap, adjacency, inverse, other_cap, other_adjacency))| {
                DeclaredAssociation {
                    inverse: match inverse {
                        0 => DeclaredInverse::None,
                        1 => DeclaredInverse::Symmetric,
                        _ => DeclaredInverse::Named {
                            name: format!("{name}_of"),
                            cap: other_cap,
                            adjacency: other_adjacency,
                        },
                    },
                    name,
                    fields,
                    cap,
                    adjacency,
                }
            })
            .collect(),
    })
}

proptest! {
    #[test]
    fn the_canonical_text_declares_the_same(declared in declared()) {
        let text = declared.to_string();
        let again: DeclaredTypes = text.parse().map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(&again, &declared, "{}", text);
        prop_assert_eq!(again.to_string(), text);
    }

    #[test]
    fn applying_a_text_twice_changes_nothing(old in declared(), new in declared()) {
        let types = GraphTypes::new(3, &old).expect("the types are few and small");
        prop_assert_eq!(types.declared().to_string().parse::<DeclaredTypes>(), Ok(types.declared()));
        prop_assert_eq!(types.evolve(&old), Ok((types.clone(), vec![])));
        // The later text declares all types that exist, and more.
        let mut later = types.declared();
        later.objects.extend(new.objects.into_iter().filter(|it| types.object(&it.name).is_none()));
        later.associations.extend(new.associations.into_iter().filter(|it| types.association(&it.name).is_none()));
        if let Ok((evolved, changes)) = types.evolve(&later) {
            prop_assert_eq!(evolved.revision, types.revision + u64::from(!changes.is_empty()));
            prop_assert_eq!(evolved.evolve(&later), Ok((evolved.clone(), vec![])));
            for (number, kind) in &types.associations {
                prop_assert_eq!(&evolved.associations[number].name, &kind.name, "types keep their numbers");
            }
            let document = TypesDocument::from(&evolved);
            prop_assert_eq!(GraphTypes::try_from(document), Ok(evolved));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z\\[\\]{}=.\"'0-9\n ]{0,80}") {
        let _ = text.parse::<DeclaredTypes>();
    }
}
