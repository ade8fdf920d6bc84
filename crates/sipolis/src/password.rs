use crate::failure::{Failure, Result};

/// A password of 80 random bits, easy to read out and to type on a phone: `k7mq-t3xw-9hpd-r4ny`.
pub(crate) fn make() -> Result<String> {
    // 32 characters, none of which looks like another.
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut random = [0; 16];
    fill(&mut random)?;
    let mut password = String::new();
    for (index, byte) in random.iter().enumerate() {
        if index > 0 && index % 4 == 0 {
            password.push('-');
        }
        password.push(char::from(LETTERS[usize::from(byte % 32)]));
    }
    Ok(password)
}

/// Bytes from the system's random source.
pub(crate) fn fill(bytes: &mut [u8]) -> Result {
    getrandom::fill(bytes).map_err(|e| Failure::during("the system gives no random bytes", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_password_can_be_typed_and_is_never_the_same() {
        let (one, other) = (make().unwrap(), make().unwrap());
        assert_eq!(one.len(), 19);
        assert!(one.bytes().all(|b| b == b'-' || b.is_ascii_alphanumeric()));
        assert_ne!(one, other);
    }
}
