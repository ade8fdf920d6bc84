/// The candidate that `word` was probably meant to be; `None` when none is near.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|&(d, candidate)| d <= (candidate.len().max(word.len()) / 3).max(2))
        .min_by_key(|&(d, _)| d)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_key_and_nonsense_finds_none() {
        let keys = ["listen", "data", "domains", "workers", "auth"];
        for (word, expected) in [
            ("lisetn", Some("listen")),
            ("domain", Some("domains")),
            ("worker_count", None),
            ("xyzzy", None),
            ("auht", Some("auth")),
        ] {
            assert_eq!(nearest(word, keys.into_iter()), expected, "{word}");
        }
    }
}
