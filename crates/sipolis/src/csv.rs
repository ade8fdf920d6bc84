use std::io::{self, BufRead};

/// Bytes of one line at most.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// A comma-separated file whose first line names its columns; fields may be in double quotes (RFC 4180), lines may not break inside them.
pub(crate) struct Reader<R> {
    input: R,
    /// Number of the line last read, from 1.
    line: u64,
    text: Vec<u8>,
    columns: Columns,
}

/// Which column is where.
#[derive(Clone, Copy, Default)]
struct Columns {
    user: usize,
    domain: Option<usize>,
    password: Option<usize>,
    ha1: Option<usize>,
    ha1_sha256: Option<usize>,
    count: usize,
}

/// One line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Row {
    pub(crate) user: String,
    pub(crate) domain: String,
    pub(crate) password: String,
    pub(crate) ha1: String,
    pub(crate) ha1_sha256: String,
}

/// A line that can't be taken.
#[derive(Debug)]
pub(crate) struct LineError {
    pub(crate) line: u64,
    pub(crate) message: String,
}

impl std::fmt::Display for LineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads the header line.
    pub(crate) fn new(input: R) -> Result<Self, LineError> {
        let mut reader = Self {
            input,
            line: 0,
            text: Vec::new(),
            columns: Columns::default(),
        };
        let text = reader.next_line()?.unwrap_or_default();
        let columns = columns(&text).map_err(|message| reader.wrong(message))?;
        reader.columns = columns;
        Ok(reader)
    }

    /// The next line's number and fields; `None` at the end. After an error the next call goes on with the next line.
    pub(crate) fn next_row(&mut self) -> Option<Result<(u64, Row), LineError>> {
        let text = loop {
            match self.next_line() {
                Err(error) => return Some(Err(error)),
                Ok(None) => return None,
                Ok(Some(text)) if text.trim().is_empty() => {}
                Ok(Some(text)) => break text,
            }
        };
        Some(
            row(&text, &self.columns)
                .map(|row| (self.line, row))
                .map_err(|message| self.wrong(message)),
        )
    }

    fn next_line(&mut self) -> Result<Option<String>, LineError> {
        self.text.clear();
        self.line += 1;
        let limit = LINE_BYTES_MAX as u64;
        let count = io::Read::take(&mut self.input, limit)
            .read_until(b'\n', &mut self.text)
            .map_err(|error| self.wrong(error.to_string()))?;
        if count == LINE_BYTES_MAX && self.text.last() != Some(&b'\n') {
            // Nothing after it can be read as lines.
            self.skip_rest();
            return Err(self.wrong(format!("more than {LINE_BYTES_MAX} bytes long")));
        }
        if count == 0 {
            return Ok(None);
        }
        let line = std::str::from_utf8(&self.text)
            .map_err(|_| self.wrong(String::from("not UTF-8 text")))?;
        Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()))
    }

    fn skip_rest(&mut self) {
        while let Ok(buffer) = self.input.fill_buf() {
            let len = buffer.len();
            if len == 0 {
                return;
            }
            self.input.consume(len);
        }
    }

    fn wrong(&self, message: String) -> LineError {
        LineError {
            line: self.line,
            message,
        }
    }
}

fn columns(header: &str) -> Result<Columns, String> {
    let names = fields(header.trim_start_matches('\u{feff}'))?;
    let at = |wanted: &[&str]| {
        names
            .iter()
            .position(|name| wanted.contains(&name.trim().to_ascii_lowercase().as_str()))
    };
    let expected = "the first line has to name the columns: user,domain,password or user,domain,ha1,ha1_sha256";
    let columns = Columns {
        user: at(&["user", "username"]).ok_or(expected)?,
        domain: at(&["domain", "realm"]),
        password: at(&["password"]),
        ha1: at(&["ha1"]),
        ha1_sha256: at(&["ha1_sha256"]),
        count: names.len(),
    };
    if columns.password.is_none() && columns.ha1.is_none() && columns.ha1_sha256.is_none() {
        return Err(format!("there is no password and no ha1; {expected}"));
    }
    Ok(columns)
}

fn row(text: &str, columns: &Columns) -> Result<Row, String> {
    let mut fields = fields(text)?;
    if fields.len() != columns.count {
        return Err(format!(
            "{} fields where the first line names {}",
            fields.len(),
            columns.count
        ));
    }
    let mut take =
        |at: Option<usize>| at.map_or_else(String::new, |at| std::mem::take(&mut fields[at]));
    let mut row = Row {
        user: take(Some(columns.user)),
        domain: take(columns.domain),
        password: take(columns.password),
        ha1: take(columns.ha1),
        ha1_sha256: take(columns.ha1_sha256),
    };
    if columns.domain.is_none()
        && let Some((user, domain)) = row.user.rsplit_once('@')
    {
        (row.user, row.domain) = (user.to_owned(), domain.to_owned());
    }
    Ok(row)
}

/// Cuts a line at its commas.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].trim().to_owned(), &rest[end..])
            }
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None if after.is_empty() => return Ok(fields),
            None => return Err(String::from("text behind a closing quote")),
        }
    }
}

/// The field up to the closing quote, and what follows it. Two quotes in a row are one.
fn unquote(text: &str) -> Result<(String, &str), String> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"').ok_or("a quote is not closed")?;
        field.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                field.push('"');
                rest = after;
            }
            None => return Ok((field, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let mut reader = match Reader::new(text.as_bytes()) {
            Ok(reader) => reader,
            Err(error) => return vec![error.to_string()],
        };
        let mut out = Vec::new();
        while let Some(row) = reader.next_row() {
            out.push(match row {
                Ok((line, r)) => format!(
                    "{line} {}@{} {}|{}|{}",
                    r.user, r.domain, r.password, r.ha1, r.ha1_sha256
                ),
                Err(error) => error.to_string(),
            });
        }
        out
    }

    #[test]
    fn the_header_says_which_column_is_which() {
        for (text, expected) in [
            (
                "user,domain,password\nalice,a.example,x",
                "2 alice@a.example x||",
            ),
            (
                "password,domain,user\nx,a.example,alice",
                "2 alice@a.example x||",
            ),
            (
                "user,domain,ha1\nalice,a.example,aa",
                "2 alice@a.example |aa|",
            ),
            (
                "id,username,realm,ha1,ha1_sha256\n7,alice,a.example,aa,bb",
                "2 alice@a.example |aa|bb",
            ),
            ("user,password\nalice@a.example,x", "2 alice@a.example x||"),
            (
                "\u{feff}User, Domain ,PASSWORD\r\nalice,a.example,x\r\n",
                "2 alice@a.example x||",
            ),
        ] {
            assert_eq!(read(text), [expected], "{text:?}");
        }
    }

    #[test]
    fn quotes_hold_commas_and_quotes() {
        assert_eq!(
            read("user,domain,password\n\"a\",b,\"x,\"\"y\"\" \"\n"),
            ["2 a@b x,\"y\" ||"]
        );
    }

    #[test]
    fn a_wrong_line_is_named_and_the_others_are_read() {
        let text = "user,domain,password\na,b\n\na,b,\"x\na,b,\"x\"y\nc,d,e\n";
        assert_eq!(
            read(text),
            [
                "line 2: 2 fields where the first line names 3",
                "line 4: a quote is not closed",
                "line 5: text behind a closing quote",
                "6 c@d e||",
            ]
        );
    }

    #[test]
    fn a_file_without_a_header_is_refused() {
        for text in ["", "alice,a.example,x\n", "user,domain\na,b\n"] {
            let lines = read(text);
            assert!(lines[0].starts_with("line 1: "), "{lines:?}");
            assert!(lines[0].contains("user,domain,password"), "{lines:?}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_refused_within_bounded_memory() {
        let text = format!("user,domain,password\n{}", "x".repeat(10 * LINE_BYTES_MAX));
        let lines = read(&text);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("line 2: more than"), "{lines:?}");
    }
}
