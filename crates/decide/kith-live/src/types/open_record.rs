//! Records of open types: the properties as JSON (`docs/formats/open-record.md`).

use crate::{Data, FieldsFault};
use kith_gremlin::property::Properties;

/// Encodes a JSON object as a record of at most `max` bytes. Members that are `null` are left out.
pub(super) fn encode(fields: &str, max: usize) -> Result<Data, FieldsFault> {
    record(Properties::from_json(fields)?.changed_by(Properties::default()), max)
}

/// Encodes the properties of `base` after a change.
pub(super) fn encode_over(base: &Data, change: &str, max: usize) -> Result<Data, FieldsFault> {
    let base = Properties::from_json(&decode(base)?)?;
    record(base.changed_by(Properties::from_json(change)?), max)
}

/// Decodes a record into a JSON object.
pub(super) fn decode(data: &Data) -> Result<String, FieldsFault> {
    if data.bytes.is_empty() {
        return Ok("{}".to_owned());
    }
    let text = std::str::from_utf8(&data.bytes).map_err(|_| FieldsFault::NotText)?;
    Ok(text.to_owned())
}

/// Checks that a type with fields, of which `kept` knows the names, has a field for every key of a record.
pub(super) fn check_kept(data: &Data, kept: impl Fn(&str) -> bool) -> Result<(), FieldsFault> {
    let properties = Properties::from_json(&decode(data)?)?;
    match properties.iter().find(|(key, _)| !kept(key)) {
        Some((key, _)) => Err(FieldsFault::FieldLost { field: key.to_string() }),
        None => Ok(()),
    }
}

fn record(properties: Properties, max: usize) -> Result<Data, FieldsFault> {
    if properties.iter().len() == 0 {
        return Ok(Data::default());
    }
    limited(0, properties.to_json()?.into_bytes(), max)
}

/// The bytes of fields, if they are no more than `max`.
pub(super) fn limited(schema: u16, bytes: Vec<u8>, max: usize) -> Result<Data, FieldsFault> {
    if max < bytes.len() {
        return Err(FieldsFault::TooLarge { bytes: bytes.len(), max });
    }
    Ok(Data { schema, bytes: bytes.into() })
}

#[cfg(test)]
mod tests {
    use crate::{GraphTypes, TypeId};

    const PERSON: TypeId = TypeId(1);
    const KNOWS: TypeId = TypeId(2);
    const LIKES: TypeId = TypeId(4);
    const RATES: TypeId = TypeId(6);

    fn types() -> GraphTypes {
        let text = "[object.person]\nopen = true\n[association.knows]\nopen = true\n[association.likes]\nopen = true\n\
                    [association.rates]\ninverse = 'rated'\nfields = { stars = 'i32', note = { type = 'text', nullable = true } }";
        GraphTypes::new(1, &text.parse().expect("a declaration")).expect("types")
    }

    #[test]
    fn records_take_any_keys_and_are_normalized() {
        let types = types();
        let read = |data| types.decode(PERSON, data).expect("a record");
        let data = types
            .encode(PERSON, Some(r#"{"z": 1, "a": {"@type":"g:Int64","@value":3000000000}, "n": null}"#));
        let data = data.expect("any keys");
        assert_eq!(read(&data), r#"{"a":3000000000,"z":1}"#);
        let changed = types.encode_over(PERSON, &data, r#"{"a":null,"b":1.0}"#).expect("a change");
        assert_eq!(read(&changed), r#"{"b":1.0,"z":1}"#);
        let none = types.encode_over(PERSON, &changed, r#"{"b":null,"z":null}"#).expect("a change");
        assert_eq!((read(&none).as_str(), none), ("{}", types.encode(PERSON, None).expect("no fields")));
        let wrong =
            types.encode(PERSON, Some(r#"{"k":{"@type":"g:Vertex","@value":{"id":1}}}"#)).unwrap_err();
        assert_eq!(wrong.to_string(), "key \"k\": a property cannot have a value of the type Vertex");
    }

    #[test]
    fn records_of_associations_are_smaller() {
        let long = format!(r#"{{"k":"{}"}}"#, "x".repeat(70_000));
        assert!(types().encode(PERSON, Some(&long)).is_ok());
        let why = types().encode(KNOWS, Some(&long)).unwrap_err().to_string();
        assert!(why.ends_with("at most 65536 are allowed"), "{why}");
    }

    #[test]
    fn associations_change_between_open_and_declared_types() {
        let types = types();
        let encode = |kind, text| types.encode(kind, Some(text)).expect("a record");
        let converted = |from, text, to| {
            let data = types.convert(from, &encode(from, text), to).map_err(|error| error.to_string())?;
            types.decode(to, &data).map_err(|error| error.to_string())
        };
        assert_eq!(converted(KNOWS, r#"{"since":1}"#, LIKES).as_deref(), Ok(r#"{"since":1}"#));
        assert_eq!(converted(RATES, r#"{"stars":5}"#, KNOWS).as_deref(), Ok(r#"{"stars":5}"#));
        assert_eq!(converted(KNOWS, r#"{"stars":5}"#, RATES).as_deref(), Ok(r#"{"stars":5,"note":null}"#));
        let lost = converted(KNOWS, r#"{"stars":5,"why":"x"}"#, RATES).unwrap_err();
        assert!(lost.starts_with("field \"why\" would be lost"), "{lost}");
        assert!(converted(KNOWS, r#"{"stars":"five"}"#, RATES).is_err());
    }
}
