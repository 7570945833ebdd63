//! Requests and answers over HTTP without a WebSocket, as Gremlin Server 3 has them. A request is the JSON object that is the
//! argument `args` of a request over a WebSocket, and an answer has the form of one over a WebSocket, with all results at once.

use super::{Credentials, MEDIA_TYPES, Parts, Request, Response, Serializer};
use crate::{
    error::{GremlinError, Result},
    graphson::{Version, read_value, read_value_within, to_text_of},
    room::Room,
    value::{Map, Value},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use uuid::Uuid;

/// The name of the argument that has the text of the traversal.
const GREMLIN: &str = "gremlin";
/// The names of arguments of the address whose values are whole numbers.
const NUMBERS: [&str; 3] = ["evaluationTimeout", "scriptEvaluationTimeout", "batchSize"];

/// The request that the body of a POST holds. It is answered with `id`, unless it has an id of its own. It takes no more memory
/// than there is room.
///
/// # Errors
///
/// The body is no JSON object, or its fields are not those of a request to evaluate a text.
pub fn decode_http(body: &[u8], id: Uuid, room: &mut Room) -> Result<Request> {
    let text = std::str::from_utf8(body)
        .map_err(|_| GremlinError::bad("the body of the request is not UTF-8, as JSON must be"))?;
    let Value::Map(fields) = read_value_within(text, room)? else {
        return Err(GremlinError::bad(
            "the body of the request is no JSON object; an example is {\"gremlin\":\"g.V().count()\"}",
        ));
    };
    let fields = Arc::unwrap_or_clone(fields);
    let id = match fields.get(&Value::text("requestId")) {
        Some(Value::Uuid(own)) => *own,
        Some(Value::String(text)) => text.parse().unwrap_or(id),
        _ => id,
    };
    Request::new(id, parts(fields))
}

/// The request that the query of an address holds: `gremlin`, `language`, `bindings.NAME`, `aliases.NAME`. `None` if it has no
/// `gremlin`.
///
/// # Errors
///
/// The query is no sequence of coded names and values, or they are not those of a request.
pub fn decode_query(query: &str, id: Uuid) -> Result<Option<Request>> {
    let (mut fields, mut bindings, mut aliases) = (Map::new(), Map::new(), Map::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decoded(name)?, decoded(value)?);
        let (fields, name, value) = match name.split_once('.') {
            Some(("bindings", name)) => {
                (&mut bindings, name, read_value(&value).unwrap_or_else(|_| Value::text(&*value)))
            }
            Some(("aliases", name)) => (&mut aliases, name, Value::text(&*value)),
            _ if NUMBERS.contains(&&*name) => {
                let wrong = |_| GremlinError::bad(format!("{name:?} is {value:?}, which is no whole number"));
                (&mut fields, &*name, Value::Long(value.parse().map_err(wrong)?))
            }
            _ => (&mut fields, &*name, Value::text(&*value)),
        };
        fields.insert(Value::text(name), value);
    }
    if !fields.contains_key(&Value::text(GREMLIN)) {
        return Ok(None);
    }
    fields.insert("bindings".into(), Value::Map(Arc::new(bindings)));
    fields.insert("aliases".into(), Value::Map(Arc::new(aliases)));
    Request::new(id, parts(fields)).map(Some)
}

fn parts(arguments: Map) -> Parts {
    Parts { operation: "eval".into(), processor: "".into(), arguments }
}

/// A name or value of the query of an address.
fn decoded(text: &str) -> Result<String> {
    let wrong = || GremlinError::bad(format!("{text:.100?} in the address is not percent-encoded UTF-8"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut left = text.bytes();
    while let Some(byte) = left.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || left.next().and_then(|digit| char::from(digit).to_digit(16));
                let (high, low) = (digit().ok_or_else(wrong)?, digit().ok_or_else(wrong)?);
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// The media type of an answer, and how it is coded, unless the request says anything about it.
pub const DEFAULT: (&str, Serializer) = ("application/json", Serializer::GraphSon);

/// The media type of an answer, and how it is coded, for a client that accepts these media types (header `Accept`) and whose
/// request has this one (header `Content-Type`). If it accepts any, the answer is coded as its request. `None` if it accepts none
/// of those that there are.
pub fn accepted(accept: Option<&str>, content: Option<&str>) -> Option<(&'static str, Serializer)> {
    let known = |wanted: &str| {
        let is_meant =
            |(name, serializer): &(&str, Serializer)| *name == wanted && serializer.version().is_some();
        MEDIA_TYPES.into_iter().find(is_meant)
    };
    let own = || {
        let content = content?.split(';').next()?.trim().to_ascii_lowercase();
        known(&content)
    };
    accept.unwrap_or("*/*").split(',').find_map(|range| {
        let range = range.to_ascii_lowercase();
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        // Values without their types are another form, which there is not.
        if parts.any(|parameter| parameter == "types=false") {
            return None;
        }
        match name {
            "*/*" | "application/*" | "" => Some(own().unwrap_or(DEFAULT)),
            name => known(name),
        }
    })
}

/// The credentials in a header `Authorization`: the password of the scheme Basic, or the token of the scheme Bearer.
pub fn credentials_of_header(header: &str) -> Option<Credentials> {
    let (scheme, value) = header.split_once(' ')?;
    let value = value.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Credentials { user: String::new(), password: value.to_owned() });
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(value).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some(Credentials { user: user.to_owned(), password: password.to_owned() })
}

/// The answer to a request that failed. The message is also at the top level, where HTTP clients look for it.
///
/// # Errors
///
/// An attribute cannot be coded.
pub fn encode_failure(response: &Response, serializer: Serializer) -> Result<Vec<u8>> {
    let mut answer: Json = serde_json::from_slice(&response.encode(serializer)?)
        .map_err(|error| GremlinError::bad(format!("an answer is no JSON: {error}")))?;
    answer["message"] = json!(response.message);
    Ok(answer.to_string().into_bytes())
}

/// One result, as it stands in the list of results.
///
/// # Errors
///
/// The coding cannot express the value.
pub fn encode_result(value: &Value, serializer: Serializer) -> Result<Vec<u8>> {
    Ok(to_text_of(serializer.version().unwrap_or_default(), value)?.into_bytes())
}

/// The text before and after the results of an answer; these are separated by commas.
///
/// # Errors
///
/// An attribute cannot be coded.
pub fn encode_around(response: &Response, serializer: Serializer) -> Result<(Vec<u8>, Vec<u8>)> {
    let frame: Json =
        serde_json::from_slice(&Response { data: None, ..response.clone() }.encode(serializer)?)
            .map_err(|error| GremlinError::bad(format!("an answer is no JSON: {error}")))?;
    let (before, after) = match serializer.version().unwrap_or_default() {
        Version::Two => ("[", "]"),
        Version::Three => ("{\"@type\":\"g:List\",\"@value\":[", "]}"),
    };
    let head = format!(
        "{{\"requestId\":{},\"status\":{},\"result\":{{\"data\":{before}",
        frame["requestId"], frame["status"]
    );
    let tail = format!("{after},\"meta\":{}}}}}", frame["result"]["meta"]);
    Ok((head.into_bytes(), tail.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Operation;

    const ID: Uuid = Uuid::from_u128(7);

    fn eval(request: Request) -> (String, Map, Map) {
        let Operation::Eval { gremlin, bindings, .. } = request.operation else { panic!("no text") };
        (gremlin.to_string(), bindings, request.options.aliases)
    }

    #[test]
    fn a_body_and_a_query_hold_the_same_request() {
        let body = br#"{"gremlin":"g.V(x).has('a b')","bindings":{"x":7},"aliases":{"g":"people"},"language":"gremlin-groovy"}"#;
        let query = "gremlin=g.V(x).has(%27a+b%27)&bindings.x=7&aliases.g=people&language=gremlin-groovy";
        let of_body = decode_http(body, ID, &mut Room::unbounded()).expect("a request");
        let of_query = decode_query(query, ID).expect("a request").expect("a traversal");
        assert_eq!(of_body, of_query);
        assert_eq!(of_body.id, ID);
        let (gremlin, bindings, aliases) = eval(of_body);
        assert_eq!(
            (&*gremlin, &bindings[&Value::text("x")], &aliases[&Value::text("g")]),
            ("g.V(x).has('a b')", &Value::Int(7), &Value::text("people"))
        );
        assert_eq!(decode_query("a=b", ID), Ok(None));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (body, expected) in [
            (&b"\xff"[..], "not UTF-8"),
            (b"[]", "no JSON object"),
            (b"{", "not JSON"),
            (b"{}", "\"gremlin\" is missing"),
            (b"{\"gremlin\":7}", "\"gremlin\""),
        ] {
            let error = decode_http(body, ID, &mut Room::unbounded()).expect_err("refused");
            assert!(error.message.contains(expected), "{}", error.message);
        }
        assert!(decode_query("gremlin=%g1", ID).is_err() && decode_query("gremlin=%ff", ID).is_err());
        assert!(decode_query("gremlin=g&evaluationTimeout=x", ID).is_err());
    }

    #[test]
    fn an_answer_is_graphson_3_unless_the_client_accepts_something_else() {
        let json = Some(("application/json", Serializer::GraphSon));
        let vendor = "application/vnd.gremlin-v3.0+json";
        for accept in [None, Some("*/*"), Some("text/html, application/json;q=0.9"), Some("application/*")] {
            assert_eq!(accepted(accept, None), json, "{accept:?}");
        }
        assert_eq!(accepted(Some(vendor), None), Some((vendor, Serializer::GraphSon)));
        let older = "application/vnd.gremlin-v2.0+json";
        let two = Some((older, Serializer::GraphSon2));
        assert_eq!([Some(older), Some("*/*"), None].map(|accept| accepted(accept, Some(older))), [two; 3]);
        assert_eq!(accepted(Some(older), None), two);
        assert_eq!(accepted(Some("application/json"), Some(older)), json);
        assert_eq!(accepted(None, Some("application/x-www-form-urlencoded")), json);
        let untyped = format!("{vendor};types=false");
        assert_eq!([Some("text/html"), Some(&*untyped)].map(|accept| accepted(accept, None)), [None, None]);
    }

    #[test]
    fn credentials_are_a_password_or_a_token() {
        let password = |header| credentials_of_header(header).map(|credentials| credentials.password);
        assert_eq!(password("Basic dXNlcjphOmI="), Some("a:b".to_owned()));
        assert_eq!(password("bearer  token"), Some("token".to_owned()));
        assert!(
            ["Basic !", "Digest x", "Bearer", "Basic dXNlcg=="].map(password).iter().all(Option::is_none)
        );
    }

    #[test]
    fn results_go_between_the_two_parts_of_an_answer() {
        let parsed = |bytes: &[u8]| serde_json::from_slice::<Json>(bytes).expect("JSON");
        for serializer in [Serializer::GraphSon, Serializer::GraphSon2] {
            let response = Response::success(ID, vec![Value::Int(1), Value::list([Value::text("a")])]);
            let (head, tail) = encode_around(&response, serializer).expect("short");
            let results: Vec<_> = [Value::Int(1), Value::list([Value::text("a")])]
                .iter()
                .map(|value| encode_result(value, serializer).expect("short"))
                .collect();
            let whole = [head, results.join(&b","[..]), tail].concat();
            assert_eq!(parsed(&whole), parsed(&response.encode(serializer).expect("short")));
            let failed = Response::failure(Some(ID), &GremlinError::bad("no"));
            let failed = parsed(&encode_failure(&failed, serializer).expect("short"));
            assert_eq!((&failed["message"], &failed["status"]["code"]), (&json!("no"), &json!(499)));
        }
    }
}
