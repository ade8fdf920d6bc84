//! Who calls and registers: made by a rule or read from a file.

use std::{borrow::Cow, fs, io, ops::Deref, ops::Range, path::Path, sync::Arc};

/// Users of the server under test, in order. A copy shares them.
#[derive(Clone)]
pub(crate) struct Users {
    source: Source,
    range: Range<usize>,
}

/// A rule costs nothing for each user; a listed one costs its text and 24 bytes.
#[derive(Clone)]
enum Source {
    Rule(Arc<Rule>),
    List(Arc<List>),
}

struct Rule {
    domain: Box<[u8]>,
    /// `{user}` in it stands for the user's name.
    password: Box<[u8]>,
}

struct List {
    text: Box<[u8]>,
    /// Name, password and domain of each.
    users: Vec<[Span; 3]>,
}

/// Part of a list's text.
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    end: u32,
}

/// One user.
pub(crate) struct User<'a> {
    /// Left of the `@`.
    pub(crate) name: Name<'a>,
    /// Right of it.
    pub(crate) domain: &'a [u8],
    password: &'a [u8],
}

/// The bytes of a user's name.
pub(crate) enum Name<'a> {
    Made([u8; NAME_BYTES], usize),
    Listed(&'a [u8]),
}

/// `user` and the digits of the largest number.
const NAME_BYTES: usize = 4 + 20;
/// Digits of a number at least: names sort as they count.
const DIGITS_MIN: usize = 5;

impl Users {
    /// `count` users `user00000`, `user00001`, ... of `domain`, from number `first` on. In
    /// `password`, `{user}` stands for the user's name.
    pub(crate) fn numbered(first: usize, count: usize, domain: &str, password: &str) -> Self {
        let rule = Rule {
            domain: domain.as_bytes().into(),
            password: password.as_bytes().into(),
        };
        Self {
            source: Source::Rule(Arc::new(rule)),
            range: first..first + count,
        }
    }

    /// Reads users from a file whose first line names the columns: `user`, `password`, and
    /// `domain` unless all are of `domain`. Fields are not quoted.
    ///
    /// # Errors
    /// The file can't be read, a column is missing, or a line is too short; the text says which.
    pub(crate) fn from_csv(path: &Path, domain: &str) -> io::Result<Self> {
        let text = fs::read_to_string(path)
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
        Self::parse_csv(text, domain).map_err(|e| {
            let text = format!("{}: {e}", path.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// One of them.
    ///
    /// # Panics
    /// There are not so many.
    pub(crate) fn get(&self, index: usize) -> User<'_> {
        assert!(index < self.len(), "user {index} of {}", self.len());
        let number = self.range.start + index;
        match &self.source {
            Source::Rule(rule) => User {
                name: Name::numbered(number),
                domain: &rule.domain,
                password: &rule.password,
            },
            Source::List(list) => {
                let [name, password, domain] = list.users[number];
                User {
                    name: Name::Listed(list.part(name)),
                    domain: list.part(domain),
                    password: list.part(password),
                }
            }
        }
    }

    /// Some of them, counted from 0 again.
    pub(crate) fn share(&self, range: Range<usize>) -> Self {
        assert!(range.end <= self.len(), "{range:?} of {}", self.len());
        Self {
            source: self.source.clone(),
            range: self.range.start + range.start..self.range.start + range.end,
        }
    }

    fn parse_csv(mut text: String, domain: &str) -> Result<Self, String> {
        let header = text
            .lines()
            .next()
            .ok_or("empty; the first line names the columns")?;
        let column = |name: &str| header.split(',').position(|c| c.trim() == name);
        let user = column("user").ok_or("no column `user` in the first line")?;
        let password = column("password").ok_or("no column `password` in the first line")?;
        let domain_column = column("domain");
        let end = text.len();
        text.push_str(domain);
        if u32::try_from(text.len()).is_err() {
            return Err(String::from("larger than 4 GiB"));
        }
        let span = |part: &str| {
            let start = (part.as_ptr() as usize - text.as_ptr() as usize) as u32;
            let end = start + part.len() as u32;
            Span { start, end }
        };
        let common = span(&text[end..]);
        let mut users = Vec::new();
        for (number, line) in text[..end].lines().enumerate().skip(1) {
            if line.trim().is_empty() {
                continue;
            }
            let cell = |column: usize| {
                let cell = line.split(',').nth(column).map(|c| span(c.trim()));
                cell.ok_or_else(|| format!("line {}: too few columns", number + 1))
            };
            let domain = domain_column.map_or(Ok(common), cell)?;
            users.push([cell(user)?, cell(password)?, domain]);
        }
        let range = 0..users.len();
        let text = text.into_bytes().into();
        Ok(Self {
            source: Source::List(Arc::new(List { text, users })),
            range,
        })
    }
}

impl List {
    fn part(&self, span: Span) -> &[u8] {
        &self.text[span.start as usize..span.end as usize]
    }
}

impl<'a> User<'a> {
    pub(crate) fn password(&self) -> Cow<'a, [u8]> {
        match &self.name {
            Name::Listed(_) => Cow::Borrowed(self.password),
            Name::Made(..) => {
                let name = String::from_utf8_lossy(&self.name);
                let rule = String::from_utf8_lossy(self.password);
                Cow::Owned(rule.replace("{user}", &name).into_bytes())
            }
        }
    }
}

impl Name<'_> {
    fn numbered(number: usize) -> Self {
        let mut digits = [b'0'; 20];
        let (mut rest, mut start) = (number, digits.len());
        while rest > 0 || digits.len() - start < DIGITS_MIN {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let mut name = *b"user....................";
        let length = 4 + digits.len() - start;
        name[4..length].copy_from_slice(&digits[start..]);
        Self::Made(name, length)
    }
}

impl Deref for Name<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Made(bytes, length) => &bytes[..*length],
            Self::Listed(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_users_have_passwords_by_the_rule() {
        let users = Users::numbered(0, 2, "example.com", "pw-{user}");
        assert_eq!(&*users.get(1).name, b"user00001");
        assert_eq!(&*users.get(1).password(), b"pw-user00001");
        assert_eq!(users.get(1).domain, b"example.com");
    }

    #[test]
    fn shares_of_numbered_users_do_not_overlap() {
        let users = Users::numbered(99_990, 20, "d", "{user}");
        let (low, high) = (users.share(0..10), users.share(10..20));
        assert_eq!(&*low.get(9).name, b"user99999");
        assert_eq!(&*high.get(0).name, b"user100000");
        assert_eq!((low.len(), high.len()), (10, 10));
    }

    #[test]
    fn the_largest_number_has_a_name() {
        let users = Users::numbered(usize::MAX - 1, 1, "d", "");
        let name = format!("user{}", usize::MAX - 1);
        assert_eq!(&*users.get(0).name, name.as_bytes());
    }

    #[test]
    fn columns_are_found_by_name_and_faults_by_line() {
        let parse = |text: &str| Users::parse_csv(text.to_owned(), "d");
        let users = parse("password, user\nsecret,alice\n\n{user},bob").expect("is right");
        assert_eq!(users.len(), 2);
        assert_eq!(&*users.get(0).name, b"alice");
        assert_eq!(&*users.get(0).password(), b"secret");
        assert_eq!(users.get(0).domain, b"d");
        assert_eq!(&*users.get(1).password(), b"{user}");
        let fault = |text| parse(text).err().expect("is refused");
        assert!(fault("user,domain\n").contains("`password`"));
        assert!(fault("user,password\na,b\nc\n").contains("line 3"));
        assert!(fault("").contains("first line"));
    }
}
