//! Reads items from a file of any size one by one: lines, elements of a JSON array, BSON documents.
//!
//! The server validates the items; this module only finds where each ends. A line that is not JSON is an item that will
//! be refused, and the next line follows; a broken array or BSON file has no next item.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use super::files::Form;

/// The longest text of one item. The largest document has 16 MiB, and Extended JSON may take three times that.
const TEXT_BYTES_MAX: usize = 48 * 1024 * 1024;

/// The largest document of a BSON file: the largest that a collection stores.
const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;

/// The byte order mark that some editors put before UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// A position in a file, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// Both from 1.
    Text { line: u64, column: u64 },
    /// The number of the document, from 1, and the byte at which it begins.
    Document { number: u64, byte: u64 },
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Text { line, column } => write!(out, "line {line} column {column}"),
            Position::Document { number, byte } => write!(out, "document {number} at byte {byte}"),
        }
    }
}

/// One item as stored in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) bytes: Vec<u8>,
    /// Where it begins.
    pub(crate) position: Position,
    /// The position after it: the byte, and the lines or documents before that.
    pub(crate) end: (u64, u64),
}

impl Record {
    /// Returns the position of a column of the item's text once it is on one line.
    pub(crate) fn column(&self, column: u64) -> Position {
        let Position::Text { line, column: first } = self.position else { return self.position };
        let before = &self.bytes[..self.bytes.len().min(column.saturating_sub(1) as usize)];
        let breaks = before.split(|byte| *byte == b'\n').count() as u64 - 1;
        let column = match before.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => (before.len() - last) as u64,
            None => first + before.len() as u64,
        };
        Position::Text { line: line + breaks, column }
    }

    /// Returns the item's text on one line: strings contain no line breaks, so all of them are whitespace.
    pub(crate) fn into_line(self) -> Vec<u8> {
        let mut bytes = self.bytes;
        bytes.iter_mut().filter(|byte| matches!(**byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        bytes
    }
}

/// Why a file has no next item.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// It cannot be read.
    Read(io::Error),
    /// It is malformed.
    Form(Position, String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Read(error) => write!(out, "cannot be read: {error}"),
            ReadError::Form(position, words) => write!(out, "{position}: {words}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        ReadError::Read(error)
    }
}

/// A reader of items.
pub(crate) struct Records<R> {
    source: BufReader<R>,
    form: Form,
    byte: u64,
    /// Lines, or documents, before the current position.
    lines: u64,
    column: u64,
    /// Whether an element of the array was read before.
    inside: bool,
}

impl<R: Read> Records<R> {
    /// Reads a file whose first bytes are done: `source` begins after them.
    pub(crate) fn new(source: R, form: Form, (byte, lines): (u64, u64)) -> Records<R> {
        let source = BufReader::with_capacity(256 * 1024, source);
        Records { source, form, byte, lines, column: 1, inside: byte > 0 }
    }

    /// Returns the next item; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Record>, ReadError> {
        if self.byte == 0 && self.form != Form::Bson {
            self.skip_mark()?;
        }
        match self.form {
            Form::Lines => self.line(),
            Form::Array => self.element(),
            Form::Bson => self.document(),
        }
    }

    fn skip_mark(&mut self) -> Result<(), ReadError> {
        if self.source.fill_buf()?.starts_with(MARK) {
            self.source.consume(MARK.len());
            self.byte += MARK.len() as u64;
        }
        Ok(())
    }

    fn line(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            let (mut bytes, position) = (Vec::new(), Position::Text { line: self.lines + 1, column: 1 });
            let limit = TEXT_BYTES_MAX as u64 + 1;
            if self.source.by_ref().take(limit).read_until(b'\n', &mut bytes)? == 0 {
                return Ok(None);
            }
            if bytes.len() > TEXT_BYTES_MAX {
                return Err(ReadError::Form(position, format!("a line of more than {TEXT_BYTES_MAX} bytes")));
            }
            self.byte += bytes.len() as u64;
            self.lines += 1;
            if bytes.last() == Some(&b'\n') {
                bytes.pop();
            }
            if !bytes.trim_ascii().is_empty() {
                return Ok(Some(Record { bytes, position, end: (self.byte, self.lines) }));
            }
        }
    }

    fn document(&mut self) -> Result<Option<Record>, ReadError> {
        let position = Position::Document { number: self.lines + 1, byte: self.byte };
        if self.source.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let cut = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::Form(position, "the file ends within it".to_owned()),
            _ => ReadError::Read(error),
        };
        let mut length = [0; 4];
        self.source.read_exact(&mut length).map_err(cut)?;
        let length = i32::from_le_bytes(length);
        let size = usize::try_from(length).ok().filter(|size| (5..=DOCUMENT_BYTES_MAX).contains(size));
        let size = size.ok_or_else(|| {
            ReadError::Form(
                position,
                format!("no document has {length} bytes; the file is not BSON, or damaged"),
            )
        })?;
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(&length.to_le_bytes());
        let rest = (size - 4) as u64;
        if self.source.by_ref().take(rest).read_to_end(&mut bytes)? as u64 != rest {
            return Err(ReadError::Form(position, "the file ends within it".to_owned()));
        }
        self.byte += size as u64;
        self.lines += 1;
        Ok(Some(Record { bytes, position, end: (self.byte, self.lines) }))
    }

    /// Returns the next element of the array, by counting brackets outside of strings.
    fn element(&mut self) -> Result<Option<Record>, ReadError> {
        let opening = if self.inside { b',' } else { b'[' };
        match self.visible()? {
            Some(byte) if byte == opening => self.pass()?,
            Some(b']') if self.inside => return self.end(),
            Some(_) if self.inside => return Err(self.broken("a comma or the end of the array is missing")),
            Some(_) => return Err(self.broken("the file is not a JSON array")),
            None if self.inside => return Err(self.broken("the file ends within the array")),
            None => return Ok(None),
        }
        match self.visible()? {
            None => return Err(self.broken("the file ends within the array")),
            Some(b']') if !self.inside => return self.end(),
            Some(b']' | b',') => return Err(self.broken("an item is missing")),
            Some(_) => {}
        }
        let position = self.position();
        let bytes = self.value()?;
        self.inside = true;
        Ok(Some(Record { bytes, position, end: (self.byte, self.lines) }))
    }

    /// Returns the bytes of one value.
    fn value(&mut self) -> Result<Vec<u8>, ReadError> {
        let (mut bytes, mut depth, mut text, mut escape) = (Vec::new(), 0_usize, false, false);
        loop {
            let Some(byte) = self.peek()? else {
                return Err(self.broken("the file ends within an item"));
            };
            let is_outside = !text && depth == 0;
            if is_outside
                && !bytes.is_empty()
                && matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r')
            {
                return Ok(bytes);
            }
            if bytes.len() >= TEXT_BYTES_MAX {
                return Err(self.broken(&format!("an item of more than {TEXT_BYTES_MAX} bytes")));
            }
            bytes.push(byte);
            self.pass()?;
            match byte {
                _ if escape => escape = false,
                b'\\' if text => escape = true,
                b'"' => text = !text,
                _ if text => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Ok(bytes);
                    }
                }
                _ => {}
            }
        }
    }

    /// Checks that nothing follows the array.
    fn end(&mut self) -> Result<Option<Record>, ReadError> {
        self.pass()?;
        match self.visible()? {
            None => {
                // Later calls return the same.
                (self.form, self.inside) = (Form::Lines, true);
                Ok(None)
            }
            Some(_) => Err(self.broken("data follows the array")),
        }
    }

    /// Returns the next byte that is not whitespace.
    fn visible(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            match self.peek()? {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.pass()?,
                other => return Ok(other),
            }
        }
    }

    fn peek(&mut self) -> Result<Option<u8>, ReadError> {
        Ok(self.source.fill_buf()?.first().copied())
    }

    fn pass(&mut self) -> Result<(), ReadError> {
        let byte = self.peek()?;
        self.source.consume(1);
        self.byte += 1;
        if byte == Some(b'\n') {
            (self.lines, self.column) = (self.lines + 1, 1);
        } else {
            self.column += 1;
        }
        Ok(())
    }

    fn position(&self) -> Position {
        Position::Text { line: self.lines + 1, column: self.column }
    }

    fn broken(&self, words: &str) -> ReadError {
        ReadError::Form(self.position(), words.to_owned())
    }
}

/// Determines the format of a JSON file by its beginning: an array, or lines, whatever its name.
pub(crate) fn form_of(beginning: &[u8]) -> Form {
    let text = beginning.strip_prefix(MARK).unwrap_or(beginning);
    if text.trim_ascii_start().first() == Some(&b'[') { Form::Array } else { Form::Lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: Form, text: &[u8]) -> Result<Vec<Record>, ReadError> {
        let mut records = Records::new(text, form, (0, 0));
        let mut all = Vec::new();
        while let Some(record) = records.next()? {
            all.push(record);
        }
        assert!(matches!(records.next(), Ok(None)));
        Ok(all)
    }

    fn texts(form: Form, text: &[u8]) -> Vec<String> {
        let all = read(form, text).unwrap_or_else(|broken| panic!("{broken}"));
        all.into_iter().map(|record| String::from_utf8(record.bytes).unwrap()).collect()
    }

    #[test]
    fn an_array_is_taken_apart_at_its_elements() {
        for (text, expected) in [
            ("", &[][..]),
            ("[]", &[]),
            (" [ ] \n", &[]),
            ("[{}]", &["{}"]),
            (
                "\u{feff}[{\"a\":\"]},{\\\"\"},\n {\"b\":[1,{}]} ]\n",
                &["{\"a\":\"]},{\\\"\"}", "{\"b\":[1,{}]}"],
            ),
            ("[1,\"x\" , null]", &["1", "\"x\"", "null"]),
        ] {
            assert_eq!(texts(Form::Array, text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_broken_array_is_named_by_line_and_column() {
        for (text, position) in [
            ("{}", "line 1 column 1: the file is not"),
            ("[{}", "line 1 column 4: the file ends within the array"),
            ("[{},\n{\"a\":", "line 2 column 6: the file ends within an item"),
            ("[{}\n {}]", "line 2 column 2: a comma"),
            ("[{},]", "line 1 column 5: an item is missing"),
            ("[,{}]", "line 1 column 2: an item is missing"),
            ("[{}] x", "line 1 column 6: data follows"),
            ("[{}]]", "line 1 column 5: data follows"),
        ] {
            let broken = read(Form::Array, text.as_bytes()).unwrap_err().to_string();
            assert!(broken.starts_with(position), "{text}: {broken}");
        }
    }

    #[test]
    fn lines_without_items_are_passed_over_and_counted() {
        let all = read(Form::Lines, b"\n{}\n  \r\n{\"a\":1}\r\nlast").unwrap();
        let spots: Vec<_> = all.iter().map(|record| (record.position.to_string(), record.end)).collect();
        let position = |line: u64| format!("line {line} column 1");
        assert_eq!(spots, [(position(2), (4, 2)), (position(4), (17, 4)), (position(5), (21, 5))]);
    }

    #[test]
    fn reading_goes_on_behind_any_item() {
        let array: &[u8] = b"[\n{\"id\":\"1\"},\n{\"id\":\"2\"},{\"id\":\"3\"}\n]";
        let lines: &[u8] = b"{\"id\":\"1\"}\n\n{\"id\":\"2\"}\n{\"id\":\"3\"}";
        let bson: &[u8] = b"\x05\0\0\0\0\x09\0\0\0\x08a\0\x01\0\x05\0\0\0\0";
        for (form, text) in [(Form::Array, array), (Form::Lines, lines), (Form::Bson, bson)] {
            let all = read(form, text).unwrap();
            assert_eq!(all.len(), 3, "{form:?}");
            for (at, record) in all.iter().enumerate() {
                let mut rest = Records::new(&text[record.end.0 as usize..], form, record.end);
                for expected in &all[at + 1..] {
                    let record = rest.next().unwrap().unwrap();
                    assert_eq!((&record.bytes, record.end), (&expected.bytes, expected.end), "{form:?}");
                }
                assert!(rest.next().unwrap().is_none(), "{form:?}");
            }
        }
    }

    #[test]
    fn bson_that_is_none_is_named() {
        for (bytes, words) in [
            (&b"\x05\0\0\0\0\x05\0\0"[..], "document 2 at byte 5: the file ends within it"),
            (b"\x04\0\0\0", "document 1 at byte 0: no document has 4 bytes"),
            (b"{\"id\":1}", "document 1 at byte 0: no document has"),
            (b"\x09\0\0\0\x08a\0", "document 1 at byte 0: the file ends within it"),
        ] {
            assert!(read(Form::Bson, bytes).unwrap_err().to_string().starts_with(words), "{bytes:?}");
        }
    }

    #[test]
    fn a_column_of_an_item_is_found_in_the_file() {
        let text = "[\n  {\"id\": \"1\",\n   \"a\": tru}]";
        let record = read(Form::Array, text.as_bytes()).unwrap().remove(0);
        assert_eq!(record.column(2).to_string(), "line 2 column 4");
        assert_eq!(record.column(21).to_string(), "line 3 column 9");
        assert_eq!(record.into_line(), b"{\"id\": \"1\",    \"a\": tru}");
    }

    #[test]
    fn the_beginning_of_a_file_tells_its_form() {
        assert_eq!(form_of(b"\xEF\xBB\xBF \n[{"), Form::Array);
        assert_eq!(form_of(b"{}"), Form::Lines);
        assert_eq!(form_of(b""), Form::Lines);
    }
}
