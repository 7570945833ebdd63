//! Quoted strings and their escapes.

/// Reads the string that begins with a quote at the begin of `rest`. Returns its value and its length in the text.
///
/// # Errors
///
/// The offset from the begin, and what is wrong there.
pub fn string(rest: &str) -> Result<(String, usize), (usize, String)> {
    let mut characters = rest.char_indices();
    let Some((_, quote)) = characters.next() else {
        return Err((0, "expected a string".into()));
    };
    let mut value = String::new();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => {
                let length = escape(&rest[at..], &mut value).map_err(|message| (at, message))?;
                while characters.offset() < at + length && characters.next().is_some() {}
            }
            _ if character == quote => return Ok((value, at + 1)),
            _ => value.push(character),
        }
    }
    Err((0, "this string has no closing quote".into()))
}

/// Appends what the escape at the begin of `rest` stands for. Returns the length of the escape.
fn escape(rest: &str, value: &mut String) -> Result<usize, String> {
    let Some(kind) = rest.chars().nth(1) else {
        return Err("the text ends within an escape".into());
    };
    let plain = match kind {
        'b' => '\u{8}',
        't' => '\t',
        'n' => '\n',
        'f' => '\u{c}',
        'r' => '\r',
        '"' | '\'' | '\\' | '$' => kind,
        'u' => return unicode(rest, value),
        '0'..='7' => return octal(rest, value),
        // A line break after a backslash is no part of the string.
        '\n' => return Ok(2),
        '\r' if rest[2..].starts_with('\n') => return Ok(3),
        _ => return Err(format!(r"unknown escape \{kind}; write \\ for a backslash")),
    };
    value.push(plain);
    Ok(2)
}

/// `\u0041`, or two such escapes for a character beyond 16 bits.
fn unicode(rest: &str, value: &mut String) -> Result<usize, String> {
    let (first, length) = unit(rest).ok_or(r"expected four hexadecimal digits after \u")?;
    let mut units = vec![first];
    let mut total = length;
    if (0xd800..0xdc00).contains(&first)
        && let Some((second, length)) = unit(&rest[total..])
    {
        units.push(second);
        total += length;
    }
    let decoded = String::from_utf16(&units).map_err(|_| r"this \u escape is half of a surrogate pair")?;
    value.push_str(&decoded);
    Ok(total)
}

/// The code unit of the escape at the begin of `rest`, and the length of the escape. As in Java, `u` can be repeated.
fn unit(rest: &str) -> Option<(u16, usize)> {
    let digits = rest.strip_prefix(r"\u")?.trim_start_matches('u');
    let begin = rest.len() - digits.len();
    let digits = digits.get(..4).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    Some((u16::from_str_radix(digits, 16).ok()?, begin + 4))
}

/// `\0` to `\377`.
fn octal(rest: &str, value: &mut String) -> Result<usize, String> {
    let digits = rest[1..].bytes().take(3).take_while(|digit| (b'0'..=b'7').contains(digit)).count();
    let digits = if digits == 3 && rest.as_bytes()[1] > b'3' { 2 } else { digits };
    let code = u8::from_str_radix(&rest[1..=digits], 8).map_err(|_| "this octal escape is too large")?;
    value.push(char::from(code));
    Ok(1 + digits)
}
