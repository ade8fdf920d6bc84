//! Who calls and registers: made by a scheme or read from a file.

use std::{fs, io, path::Path};

/// One user of the server under test.
pub(crate) struct User {
    /// Left of the `@`.
    pub(crate) name: Box<[u8]>,
    /// Right of it.
    pub(crate) domain: Box<[u8]>,
    pub(crate) password: Box<[u8]>,
}

/// `count` users `user00000`, `user00001`, ... of `domain`. In `password`, `{user}` stands for the
/// user's name.
pub(crate) fn numbered(count: usize, domain: &str, password: &str) -> Vec<User> {
    (0..count)
        .map(|i| {
            let name = format!("user{i:05}");
            User {
                password: password.replace("{user}", &name).into_bytes().into(),
                name: name.into_bytes().into(),
                domain: domain.as_bytes().into(),
            }
        })
        .collect()
}

/// Reads users from a file whose first line names the columns: `user`, `password`, and `domain`
/// unless all are of `domain`. Fields are not quoted.
///
/// # Errors
/// The file can't be read, a column is missing, or a line is too short; the text says which.
pub(crate) fn from_csv(path: &Path, domain: &str) -> io::Result<Vec<User>> {
    let text = fs::read_to_string(path)
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
    parse_csv(&text, domain).map_err(|e| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{}: {e}", path.display()),
        )
    })
}

fn parse_csv(text: &str, domain: &str) -> Result<Vec<User>, String> {
    let mut lines = text.lines().enumerate();
    let (_, header) = lines
        .next()
        .ok_or("empty; the first line names the columns")?;
    let column = |name: &str| header.split(',').position(|c| c.trim() == name);
    let user = column("user").ok_or("no column `user` in the first line")?;
    let password = column("password").ok_or("no column `password` in the first line")?;
    let domain_column = column("domain");
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(i, line)| {
            let cell = |column: usize| {
                let cell = line.split(',').nth(column).map(str::trim);
                cell.ok_or_else(|| format!("line {}: too few columns", i + 1))
            };
            Ok(User {
                name: cell(user)?.as_bytes().into(),
                password: cell(password)?.as_bytes().into(),
                domain: domain_column.map_or(Ok(domain), cell)?.as_bytes().into(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_users_have_passwords_by_the_scheme() {
        let users = numbered(2, "example.com", "pw-{user}");
        assert_eq!(&*users[1].name, b"user00001");
        assert_eq!(&*users[1].password, b"pw-user00001");
        assert_eq!(&*users[1].domain, b"example.com");
    }

    #[test]
    fn columns_are_found_by_name_and_faults_by_line() {
        let users = parse_csv("password, user\nsecret,alice\n\n", "d").unwrap();
        assert_eq!(&*users[0].name, b"alice");
        assert_eq!(&*users[0].domain, b"d");
        assert!(parse_csv("user,domain\n", "d").is_err_and(|e| e.contains("`password`")));
        assert!(parse_csv("user,password\na,b\nc\n", "d").is_err_and(|e| e.contains("line 3")));
    }
}
