//! Golden bytes of the formats, for the tests of the crates that own them: the bytes that the encoder writes must be those
//! in `testdata/formats`, and the decoder must read those. `BLESS=1` writes the files again, which is a change of the format.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn is_blessing() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// The path of a file or folder of golden bytes.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../testdata/formats").join(name)
}

/// Compares the bytes of an encoder with a file. Returns the bytes of the file, for the decoder.
///
/// # Panics
/// If they differ, or if the file cannot be read.
pub fn file(name: &str, made: &[u8]) -> Vec<u8> {
    let path = path(name);
    if is_blessing() && fs::read(&path).ok().as_deref() != Some(made) {
        fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder can be made");
        fs::write(&path, made).expect("a golden file can be written");
    }
    let golden = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let at = made.iter().zip(&golden).position(|(made, golden)| made != golden);
    let at = at.unwrap_or_else(|| made.len().min(golden.len()));
    assert!(made == golden, "{name} differs from what is made today, from byte {at} on; see its README.md");
    golden
}

/// Does the same with every file of a folder, which must have no others. Returns the golden folder.
///
/// # Panics
/// As [`file()`].
pub fn folder(name: &str, made: &Path) -> PathBuf {
    let names = |folder: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_str().expect("a name of ours").to_owned()).collect()
    };
    let golden = path(name);
    let made_names = names(made);
    for stray in names(&golden).difference(&made_names).filter(|_| is_blessing()) {
        fs::remove_file(golden.join(stray)).expect("what is left over can be removed");
    }
    for file_name in &made_names {
        let bytes = fs::read(made.join(file_name)).expect("what was just made can be read");
        file(&format!("{name}/{file_name}"), &bytes);
    }
    assert_eq!(names(&golden), made_names, "the files of {name}");
    golden
}

/// Does the same with bytes that are kept as text: a line for each part, `its name: its bytes in hexadecimal`, below a few
/// lines of comment. Returns the parts of the golden file.
///
/// # Panics
/// As [`file()`], or if the file has another form.
pub fn hex(name: &str, comment: &str, made: &[(String, Vec<u8>)]) -> Vec<(String, Vec<u8>)> {
    let mut text = String::new();
    for line in comment.lines() {
        let _ = writeln!(text, "# {line}");
    }
    for (what, bytes) in made {
        let _ = write!(text, "\n{what}:");
        for byte in bytes {
            let _ = write!(text, " {byte:02x}");
        }
    }
    text.push('\n');
    let golden = String::from_utf8(file(name, text.as_bytes())).expect("it is text");
    let lines = golden.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (what, bytes) = line.rsplit_once(':').expect("what it is, and its bytes");
            let byte = |byte| u8::from_str_radix(byte, 16).expect("a byte in hexadecimal");
            (what.to_owned(), bytes.split_whitespace().map(byte).collect())
        })
        .collect()
}
