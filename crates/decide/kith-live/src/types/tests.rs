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
         adjacency, open); did you mean \"inverse\"?"
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
fn every_change_is_reported() {
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

const ACCOUNT: &str = "[object.account]\nfields = { email = { type = 'text', unique = true }, \
                       city = { type = 'text', nullable = true, index = true } }";

fn accounts() -> GraphTypes {
    GraphTypes::new(7, &parse(ACCOUNT)).unwrap()
}

#[test]
fn new_types_and_new_fields_have_indexes_and_numbers_are_not_used_again() {
    let types = accounts();
    let numbers = |types: &GraphTypes| -> Vec<(u32, String, bool)> {
        let indexes = &types.object("account").unwrap().1.indexes;
        indexes.iter().map(|index| (index.number.0, index.field.clone(), index.unique)).collect()
    };
    assert_eq!(numbers(&types), [(1, "city".to_owned(), false), (2, "email".to_owned(), true)]);
    let text = "[object.account]\nfields = { email = { type = 'text', index = true }, \
                city = { type = 'text', nullable = true }, age = { type = 'i32', nullable = true, index = true } }";
    let (changed, changes) = types.evolve(&parse(text)).unwrap();
    let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        changes,
        [
            "object type \"account\": field \"age\" (i32) is new",
            "object type \"account\": field \"city\" had an index and now has no index",
            "object type \"account\": field \"email\" had an index with unique values and now has an index",
            "object type \"account\": field \"age\" had no index and now has an index",
        ]
    );
    assert_eq!(numbers(&changed), [(2, "email".to_owned(), false), (3, "age".to_owned(), false)]);
    let document = TypesDocument::from(&changed);
    assert_eq!(GraphTypes::try_from(document), Ok(changed));
}

#[test]
fn an_index_that_would_lack_values_is_refused() {
    let refused = |from: &str, to: &str| {
        assert!(ACCOUNT.contains(from), "{from}");
        accounts().evolve(&parse(&ACCOUNT.replace(from, to))).unwrap_err().to_string()
    };
    let old = "objects may already have values in the field";
    let plain = ACCOUNT.replace(", index = true", "");
    let types = GraphTypes::new(7, &parse(&plain)).unwrap();
    assert!(types.evolve(&parse(ACCOUNT)).unwrap_err().to_string().contains(old));
    assert!(refused("index = true", "unique = true").contains(old));
    let with_default = "index = true }, age = { type = 'i32', default = 7, index = true }";
    assert!(refused("index = true }", with_default).contains(old));
    assert!(refused("nullable = true", "default = ''").contains("would get the default"));
    // A field that comes back may have values from before.
    let without = "[object.account]\nfields = { email = { type = 'text', unique = true } }";
    let (types, _) = accounts().evolve(&parse(without)).unwrap();
    assert!(types.evolve(&parse(ACCOUNT)).unwrap_err().to_string().contains(old));
}

#[test]
fn wrong_indexes_are_named_with_their_line() {
    let field = |keys: &str| error(&format!("[object.a.fields]\nx = {{ {keys} }}"));
    assert_eq!(
        field("type = 'list<text>', index = true"),
        "line 2: object type \"a\", field \"x\": values of type list<text> cannot have an index: only single values can"
    );
    assert!(field("type = 'text', unique = true, index = false").contains("unique values need an index"));
    assert!(field("type = 'text', index = 1").contains("must be true or false"));
    let association = error("[association.a.fields]\nx = { type = 'text', unique = true }");
    assert!(association.ends_with("only fields of object types can have an index: remove \"unique\""));
}

#[test]
fn equal_values_have_one_key_and_different_values_have_two() {
    let text =
        |kind: &str| format!("[object.a.fields]\nx = {{ type = '{kind}', nullable = true, index = true }}");
    let key = |kind: &str, value: &str| {
        let types = GraphTypes::new(1, &parse(&text(kind))).unwrap();
        let data = types.encode(TypeId(1), Some(&format!("{{\"x\":{value}}}"))).unwrap();
        let entries = types.entries(TypeId(1), 5, &data).unwrap();
        let found = types.find_key("a", "x", value).ok();
        assert_eq!(entries.first().map(|entry| (entry.index, entry.key.clone())), found, "{kind} {value}");
        found.map(|(_, key)| key)
    };
    assert_eq!(key("f64", "0.0"), key("f64", "-0.0"));
    assert_eq!(
        (key("i32", "-7"), key("f32", "0.5")),
        (key("i64", "-7"), key("f64", "0.5")),
        "widened fields"
    );
    assert_eq!(key("text", "null"), None);
    let values = ["true", "false"].map(|value| key("bool", value));
    assert_ne!(values[0], values[1]);
    assert_ne!(key("u64", "18446744073709551615"), key("u64", "0"));
    assert!(key("bytes", "\"AAEC\"").is_some() && key("timestamp", "-1").is_some());
    let texts = ["x".repeat(64), "x".repeat(65), "x".repeat(66), String::new()];
    let keys = texts.map(|text| key("text", &format!("\"{text}\"")).unwrap());
    assert!(keys.iter().all(|key| key.len() <= INDEX_KEY_BYTES_MAX));
    assert_eq!(keys.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
}

#[test]
fn what_cannot_be_found_is_explained() {
    let types = accounts();
    let why =
        |kind: &str, field: &str, value: &str| types.find_key(kind, field, value).unwrap_err().to_string();
    assert!(why("acount", "email", "1").contains("did you mean \"account\""));
    assert_eq!(
        why("account", "mail", "1"),
        "object type \"account\" has no field \"mail\"; did you mean \"email\"?"
    );
    assert_eq!(why("account", "email", "1"), "field \"email\": expected text, got number 1");
    assert!(why("account", "city", "null").contains("null is not part of an index"));
    let plain = GraphTypes::new(7, &parse(&ACCOUNT.replace(", index = true", ""))).unwrap();
    let error = plain.find_key("account", "city", "\"Ulm\"").unwrap_err();
    assert_eq!(error.to_string(), "field \"city\" of object type \"account\" has no index");
}

#[test]
fn no_graph_has_more_types_than_numbers() {
    let mut types = village();
    types.objects.insert(TypeId(u16::MAX), types.objects[&TypeId(2)].clone());
    let (name, indexes) = ("late".to_owned(), Default::default());
    let kind = DeclaredObject { name, fields: None, indexes, open: false, text_ids: false };
    let mut declared = types.declared();
    declared.objects.push(kind);
    let refused = types.evolve(&declared).unwrap_err();
    assert_eq!(*refused.fault, TypesFault::TooMany { got: 65_536 });
}

#[test]
fn an_open_graph_takes_labels_as_they_come() {
    let types = GraphTypes::new(1, &parse("open = true")).unwrap();
    let label = |kind, name: &str| Label { kind, name: name.to_owned() };
    let labels = [label(TypeKind::Object, "a person"), label(TypeKind::Association, "knows")];
    let (types, changes) = types.with_labels(&labels).unwrap();
    let messages: Vec<String> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "object type \"a person\" is new and gets number 1",
            "association type \"knows\" is new and gets number 2",
            "association type \"~knows\" is new and gets number 3",
        ]
    );
    let text = "open = true\n\n[object.\"a person\"]\nopen = true\n\n[association.knows]\nopen = true\n";
    assert_eq!((types.revision, types.declared().to_string().as_str()), (2, text));
    assert_eq!(parse(text), types.declared());
    assert_eq!(types.with_labels(&labels).unwrap(), (types.clone(), vec![]), "labels are added once");
    assert!(types.associations[&TypeId(3)].adjacency && types.associations[&TypeId(3)].open);
    let refused =
        |name: &str| types.with_labels(&[label(TypeKind::Association, name)]).unwrap_err().to_string();
    assert!(refused("~knows else").ends_with("does not begin with '~'"), "{}", refused("~knows else"));
    assert!(refused("").ends_with("does not begin with '~'"));
    assert!(refused(&"x".repeat(1 << 20)).len() < 400);
}

#[test]
fn open_types_need_no_declaration_and_stay_as_they_are() {
    let types = GraphTypes::new(1, &parse("open = true\n[object.page]")).unwrap();
    let (types, _) =
        types.with_labels(&[Label { kind: TypeKind::Association, name: "knows".into() }]).unwrap();
    let apply = |text: &str| types.evolve(&parse(text)).map_err(|error| error.to_string());
    assert_eq!(apply("open = true\n[object.page]").unwrap(), (types.clone(), vec![]));
    let (closed, changes) = apply("[object.page]").unwrap();
    assert_eq!(changes, [TypeChange::Open { now: false }]);
    assert_eq!(closed.associations, types.associations);
    let label = Label { kind: TypeKind::Object, name: "late".into() };
    let refused = closed.with_labels(&[label]).unwrap_err().to_string();
    assert!(refused.starts_with("object type \"late\": the graph is not open"), "{refused}");
    assert_eq!(
        closed.with_labels(&[Label { kind: TypeKind::Object, name: "page".into() }]).unwrap().1,
        vec![]
    );
    let (_, changes) =
        apply("open = true\n[object.page]\n[association.knows]\nopen = true\ncap = 7").unwrap();
    assert_eq!(changes.len(), 2, "the cap of the type and of its inverse");
    assert!(apply("open = true").unwrap_err().contains("\"page\": the type is missing"));
    assert!(apply("[object.page]\nopen = true").unwrap_err().contains("the type is not open"));
    assert!(apply("[object.page]\n[association.knows]").unwrap_err().contains("the type is open"));
    let one_sided = apply("[object.page]\n[association.knows]\nopen = true\nsymmetric = true").unwrap_err();
    assert!(one_sided.contains("the type has the inverse \"~knows\""), "{one_sided}");
}

#[test]
fn objects_of_open_types_have_no_entries_in_indexes() {
    let types = GraphTypes::new(1, &parse("[object.a]\nopen = true")).unwrap();
    let data = types.encode(TypeId(1), Some(r#"{"x":1}"#)).unwrap();
    assert!(!data.bytes.is_empty());
    assert_eq!(types.entries(TypeId(1), 5, &data), Ok(vec![]));
    assert!(matches!(types.find_key("a", "x", "1"), Err(FindFault::NoField { .. })));
}

#[test]
fn names_and_keys_of_open_types_are_checked() {
    for text in [
        "[object.'a b']\nopen = true",
        "[association.'é']\nopen = true\ninverse = 'of é'",
        "[association.a]\nopen = true\n[association.'~a']\ncap = 5",
        "[association.'a b']\nopen = true\nsymmetric = true",
    ] {
        assert_eq!(parse(text).to_string().parse(), Ok(parse(text)), "{text}");
    }
    assert_eq!(
        error("[object.a]\nopen = true\nfields = { x = 'i64' }"),
        "line 3: object type \"a\": an open type takes any fields, so it declares none: remove \"fields\" or \"open\""
    );
    assert!(error("[association.a]\nopen = true\nfields = {}").contains("declares none"));
    assert!(error("open = 3").ends_with("\"open\" must be true or false, not an integer"));
    assert!(error("[object.'~a']\nopen = true").contains("does not begin with '~'"));
    assert!(error("[association.a]\nopen = true\ninverse = '~b'").contains("named after the '~'"));
    assert!(error("[association.a]\ninverse = '~a'").contains("letters, digits"));
    let inverse = error("[association.a]\nopen = true\n[association.'~a']\nopen = true");
    assert!(inverse.contains("which decides \"open\""), "{inverse}");
    assert!(error("[object.\"a\\n\"]\nopen = true").contains("no control characters"));
}

#[test]
fn writes_cannot_add_types_without_end() {
    let mut types = GraphTypes::new(1, &parse("open = true")).unwrap();
    for number in 0..OPEN_TYPES_MAX as u16 - 1 {
        let kind = ObjectType { name: format!("t{number}"), open: true, ..ObjectType::default() };
        types.objects.insert(TypeId(number + 1), kind);
    }
    let label = |kind| vec![Label { kind, name: "late".to_owned() }];
    let refused = types.with_labels(&label(TypeKind::Association)).unwrap_err();
    assert_eq!(*refused.fault, TypesFault::OpenTooMany { got: OPEN_TYPES_MAX - 1 });
    let (full, _) = types.with_labels(&label(TypeKind::Object)).unwrap();
    let late = vec![Label { kind: TypeKind::Object, name: "later".to_owned() }];
    assert!(full.with_labels(&late).unwrap_err().to_string().contains("only up to 2000"));
    assert_eq!(full.with_labels(&label(TypeKind::Object)).unwrap().1, vec![], "it exists");
}

#[test]
fn a_document_of_open_types_is_checked() {
    let text = "open = true\n[object.'a b']\nopen = true\n[association.knows]\nopen = true";
    let types = GraphTypes::new(7, &parse(text)).unwrap();
    let json = serde_json::to_string(&TypesDocument::from(&types)).unwrap();
    let read = |json: &str| GraphTypes::try_from(serde_json::from_str::<TypesDocument>(json).unwrap());
    assert_eq!(read(&json), Ok(types));
    for (from, to) in [
        ("\"a b\"", "\"~a\""),
        ("\"~knows\"", "\"~likes\""),
        ("\"inverse_of\":2,\"cap\":6000,\"adjacency\":true,\"open\":true", "\"inverse_of\":2,\"cap\":6000"),
        ("\"name\":\"a b\",\"open\":true", "\"name\":\"a b\""),
    ] {
        assert!(json.contains(from), "{from} {json}");
        assert!(read(&json.replacen(from, to, 1)).is_err(), "{to}");
    }
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

/// Returns an index for every other field that can have one.
fn some_indexes(fields: Option<&Schema>) -> std::collections::BTreeMap<String, bool> {
    let fields = fields.into_iter().flat_map(Schema::fields).enumerate();
    let indexed =
        fields.filter(|(at, field)| at % 2 == 0 && index::check_indexable(field.field_type()).is_ok());
    indexed.map(|(at, field)| (field.name().to_owned(), at % 4 == 0)).collect()
}

fn declared() -> impl Strategy<Value = DeclaredTypes> {
    let objects = proptest::collection::btree_map("[A-Za-z0-9_-]{1,8}", fields(), 0..4);
    let association = || (fields(), 1..=CAP_MAX, any::<bool>(), 0..3u8, 1..=CAP_MAX, any::<bool>());
    let associations = proptest::collection::btree_map("[a-m]{1,8}", association(), 0..5);
    // Names of open types that no other type has.
    let label = "[é .\"\\\\\\[=][ -~]{0,6}";
    let open_objects = proptest::collection::btree_set(label, 0..3);
    let open_associations = proptest::collection::btree_map(label, association(), 0..3);
    let closed = |(name, (fields, cap, adjacency, inverse, other_cap, other_adjacency))| {
        let named = |name, (cap, adjacency)| DeclaredInverse::Named { name, cap, adjacency };
        let inverse = match inverse {
            0 => DeclaredInverse::None,
            1 => DeclaredInverse::Symmetric,
            _ => named(format!("{name}_of"), (other_cap, other_adjacency)),
        };
        DeclaredAssociation { name, fields, cap, adjacency, inverse, open: false }
    };
    let opened = |declared: DeclaredAssociation| {
        let inverse = match declared.inverse {
            DeclaredInverse::None => {
                let (cap, adjacency) = (declared.cap, declared.adjacency);
                DeclaredInverse::Named { name: format!("~{}", declared.name), cap, adjacency }
            }
            inverse => inverse,
        };
        DeclaredAssociation { open: true, fields: None, inverse, ..declared }
    };
    (any::<bool>(), objects, associations, open_objects, open_associations).prop_map(
        move |(open, objects, associations, open_objects, open_associations)| {
            let object = |(name, fields): (String, Option<Schema>)| DeclaredObject {
                text_ids: name.len() % 2 == 0,
                name,
                indexes: some_indexes(fields.as_ref()),
                fields,
                open: false,
            };
            let objects = objects.into_iter().map(object);
            let open_objects = open_objects.into_iter().map(|name| DeclaredObject {
                name,
                fields: None,
                indexes: Default::default(),
                open: true,
                text_ids: false,
            });
            let open_associations = open_associations.into_iter().map(closed).map(opened);
            DeclaredTypes {
                open,
                objects: objects.chain(open_objects).collect(),
                associations: associations.into_iter().map(closed).chain(open_associations).collect(),
            }
        },
    )
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

#[test]
fn ids_that_are_texts_are_declared_with_the_type() {
    let text = "[object.person]\nids = \"text\"\n";
    let types = GraphTypes::new(1, &parse(text)).unwrap();
    assert_eq!(types.declared().to_string(), text);
    assert!(types.objects[&TypeId(1)].takes_text_ids() && types.take_text_ids());
    let document = serde_json::to_string(&TypesDocument::from(&types)).unwrap();
    assert!(document.contains(r#""text_ids":true"#), "{document}");
    assert_eq!(
        GraphTypes::try_from(serde_json::from_str::<TypesDocument>(&document).unwrap()),
        Ok(types.clone())
    );
    let changed = types.evolve(&parse("[object.person]")).unwrap_err().to_string();
    assert!(changed.contains("the ids of the type are texts"), "{changed}");
    assert_eq!(
        error("[object.a]\nids = 'number'"),
        "line 2: object type \"a\": \"ids\" can only be \"text\": without this key, ids are whole numbers"
    );
    assert!(error("[object.a]\nopen = true\nids = 'text'").contains("remove \"ids\""));
    assert!(error("[association.a]\nids = 'text'").contains("unknown"));
}
